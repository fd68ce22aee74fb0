/* Results files: a failure to write is reported, at any point at which it occurs. */
#include <fcntl.h>
#include <unistd.h>

#include "cli/generation/generation.h"
#include "tests/rigs/test.h"

TEST(an_error_of_close_is_reported)
{
    struct err err = {0};
    struct output o;
    assert_ok(output_open(&o, "/dev/null", &results_json_file, &err), err);
    fputs("all", o.f);
    assert_int_equal(fflush(o.f), 0);
    assert_int_equal(close(fileno(o.f)), 0); /* no data is left to write, but closing fails */
    assert_false(output_close(&o, true, &err));
    assert_string_equal(err.text, "/dev/null: Bad file descriptor");
}

TEST(a_full_disk_is_reported)
{
    struct err err = {0};
    struct output o;
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_ok(output_open(&o, "/dev/full", &results_json_file, &err), err);
    fputs("one", o.f);
    assert_false(output_close(&o, true, &err));
    assert_string_equal(err.text, "/dev/full: No space left on device");
    err = (struct err){0};
    assert_false(json_write(cJSON_CreateObject(), "/dev/full", &err));
    assert_string_equal(err.text, "/dev/full: No space left on device");
}

TEST(a_write_that_failed_long_ago_is_an_error_still)
{
    struct err err = {0};
    struct output o;
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_ok(output_open(&o, "/dev/full", &results_json_file, &err), err);
    for (int i = 0; i < 100000; i++)
        fputc('x', o.f);
    fflush(o.f);
    assert_false(output_close(&o, true, &err));
    assert_contains(err.text, "/dev/full: ");
}

TEST(an_unwritable_path_is_refused_before_the_work)
{
    struct err err = {0};
    char folder[] = "/tmp/results.XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/new", folder);
    assert_true(output_possible(NULL, &results_json_file, &err) && output_possible("-", &results_json_file, &err) &&
                output_possible(path, &results_json_file, &err));
    assert_int_equal(access(path, F_OK), -1); /* the check leaves no file */
    assert_false(output_possible("/nowhere/results", &results_json_file, &err));
    assert_string_equal(err.text, "/nowhere/results: cannot be created: No such file or directory");
    assert_false(output_possible(folder, &results_json_file, &err));
    assert_contains(err.text, ": cannot be written: Is a directory");
    rmdir(folder);
}

TEST(closing_the_results_leaves_stdout_open)
{
    struct err err = {0};
    struct output o;
    assert_ok(output_open(&o, "-", &results_json_file, &err), err);
    assert_ptr_equal(o.f, stdout);
    assert_ok(output_close(&o, true, &err), err);
    assert_int_not_equal(fcntl(STDOUT_FILENO, F_GETFD), -1);
    assert_false(output_open(&o, "/nowhere/results", &results_json_file, &err));
    assert_string_equal(err.text, "/nowhere/results: cannot be created: No such file or directory");
}
