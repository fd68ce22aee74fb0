/* A trace stores the lengths of its tables when it is closed. If a table is cut or extended later, the reader reads as
 * far as it can and then fails. */
#include "tests/rigs/test.h"
#include "tests/rigs/trace_checks.h"
#include "traces/schema.h"

/* Reads all events. Returns the number of those of the table's kind, and the final error in *err. */
static uint64_t
read_through(const char *path, enum table_id id, bool brief, struct err *err)
{
    struct trace_reader *r = open_trace(path);
    struct event e;
    uint64_t n = 0;
    if (brief)
        assert_true(trace_reader_rewind(r, true, NULL));
    memset(err, 0, sizeof *err);
    while (trace_reader_next(r, &e, err))
        n += table_of(e.type) == id;
    struct err again = {0};
    assert_false(trace_reader_next(r, &e, &again)); /* another call at the end fails again */
    assert_string_equal(again.text, err->text);
    trace_reader_close(r);
    return n;
}

TEST_WITH(a_closed_trace_that_was_cut_is_read_as_far_as_it_goes_and_said_to_be_cut, folder_set_up, folder_tear_down)
{
    struct stream s;
    char path[256], says[80];
    struct err err;
    stream_begin(&s, 9);
    stream_start_run(&s);
    for (int i = 0; i < 2; i++)
        stream_round(&s);
    stream_control(&s, "end", "tokens");
    write_trace(*state, &s, true, path);
    for (unsigned t = 0; t < TABLES; t++) {
        char *text = read_text(path, trace_tables[t].file), *whole = strdup(text);
        const size_t header = (size_t)(strchr(text, '\n') - text) + 1;
        uint64_t lines = 0, left = 0;
        for (const char *c = text + header; *c != '\0'; c++)
            lines += *c == '\n';
        read_through(path, (enum table_id)t, false, &err);
        assert_int_equal(err.kind, ERR_NONE);
        for (size_t cut = strlen(text) - 1; cut >= header; cut--) {
            text[cut] = '\0';
            write_text(path, trace_tables[t].file, text);
            left = 0;
            for (const char *c = text + header; *c != '\0'; c++)
                left += *c == '\n';
            assert_int_equal(read_through(path, (enum table_id)t, false, &err), left);
            snprintf(says, sizeof says, "%s: has fewer than the %d lines that it had", trace_tables[t].file,
                     (int)lines);
            assert_contains(err.text, says);
        }
        const bool passed_over = t == TABLE_LAYERS || t == TABLE_EXPERTS || t == TABLE_SERIES;
        read_through(path, (enum table_id)t, true, &err);
        assert_int_equal(err.kind == ERR_NONE, passed_over);
        write_text(path, trace_tables[t].file, whole);
        free(text);
        free(whole);
    }
    stream_free(&s);
}

TEST_WITH(lines_that_came_after_closing_are_said_and_older_traces_are_taken_as_they_are, folder_set_up,
          folder_tear_down)
{
    struct stream s;
    char path[256];
    struct err err;
    stream_begin(&s, 3);
    stream_fill(&s);
    write_trace(*state, &s, true, path);
    char *controls = read_text(path, "controls.csv"), *json = read_text(path, "run.json");
    const size_t n = strlen(controls);
    const uint64_t whole = read_through(path, TABLE_CONTROLS, false, &err);
    controls = realloc(controls, n + 100);
    snprintf(controls + n, 100, "%llu,1,9,0,1,\"note\",,\"more\",1\n", (unsigned long long)s.n + 1);
    write_text(path, "controls.csv", controls);
    assert_int_equal(read_through(path, TABLE_CONTROLS, false, &err), whole);
    assert_contains(err.text, "controls.csv: has more than the ");
    char *lines = strstr(json, ",\n\t\"lines\"");
    assert_non_null(lines);
    strcpy(lines, "\n}\n");
    write_text(path, "run.json", json);
    assert_int_equal(read_through(path, TABLE_CONTROLS, false, &err), whole);
    assert_int_equal(err.kind, ERR_NONE);
    free(controls);
    free(json);
    stream_free(&s);
}
