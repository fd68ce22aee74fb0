/* Options from the command line and from the config file. */
#include "cli/options/options.h"
#include "tests/rigs/test.h"

#define ARGS(...) ((char *[]){"specscope", __VA_ARGS__, NULL})

static bool
read_args(struct options *o, enum command command, char **argv, struct err *err)
{
    int argc = 0;
    while (argv[argc] != NULL)
        argc++;
    return options_read(o, command, argc, argv, err);
}

/* Writes config.json into the folder that XDG_CONFIG_HOME names, or removes it if the text is NULL. */
static void
config(const char *home, const char *json)
{
    char path[300];
    snprintf(path, sizeof path, "%s/specscope/config.json", home);
    if (json == NULL) {
        remove(path);
        return;
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(json, f);
    assert_int_equal(fclose(f), 0);
}

static int
make_home(void **state)
{
    char *home = strdup("/tmp/specscope-options-XXXXXX"), command[100];
    if (home == NULL || mkdtemp(home) == NULL)
        return -1;
    snprintf(command, sizeof command, "mkdir %s/specscope", home);
    *state = home;
    return setenv("XDG_CONFIG_HOME", home, 1) != 0 || system(command) != 0;
}

static int
delete_home(void **state)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", (char *)*state);
    free(*state);
    return system(command);
}

TEST(missing_values_are_the_documented_defaults)
{
    config(*state, NULL);
    struct options o;
    struct err err = {0};
    assert_ok(read_args(&o, COMMAND_RUN, (char *[]){"run", NULL}, &err), err);
    assert_int_equal(o.tokens, 256);
    assert_int_equal(o.ctx, 0);
    assert_int_equal(o.seed, 1);
    assert_int_equal(o.sampling.top_k, 0);
    assert_at_most(o.sampling.temperature, 0);
    assert_at_least(o.sampling.top_p, 1);
    assert_int_equal(o.policies.n, 0);
    assert_int_equal(o.n_set, 0);
    assert_null(o.model);
    assert_null(o.prompt);
    assert_null(o.backend);
    assert_int_equal(o.probe, PROBE_POLICY);
    options_free(&o);
    assert_ok(read_args(&o, COMMAND_SCOPE, (char *[]){"specscope", NULL}, &err), err);
    assert_int_equal(o.probe, PROBE_SHARE);
    assert_int_equal(o.probe_percent, 10);
    assert_less(o.pace, 0); /* not given */
    options_free(&o);
    assert_ok(read_args(&o, COMMAND_BENCH, (char *[]){"bench", NULL}, &err), err);
    assert_int_equal(o.repeat, 3);
    assert_int_equal(o.probe, PROBE_OFF);
    options_free(&o);
    assert_ok(read_args(&o, COMMAND_TRAIN_HEADS, (char *[]){"train heads", NULL}, &err), err);
    assert_int_equal(o.train.kind, HEAD_AFFINE);
    assert_int_equal(o.train.tokens, 200000);
    assert_int_equal(o.train.batch, 256);
    assert_int_equal(o.seed, 1);
    assert_number_equal(o.train.rate, 0.0003);
    assert_int_equal(o.train.window, 0);
    assert_int_equal(o.backend_options.gpu, -1);
    options_free(&o);
    assert_ok(read_args(&o, COMMAND_TRAIN_EAGLE, (char *[]){"train eagle", NULL}, &err), err);
    assert_number_equal(o.train.minutes, 30);
    assert_int_equal(o.train.tokens, 0);
    assert_int_equal(o.train.draft_vocab, 4096);
    assert_number_equal(o.train.rate, 0.002);
    options_free(&o);
}

TEST(every_option_is_read)
{
    config(*state, NULL);
    struct options o;
    struct err err = {0};
    assert_true(read_args(&o, COMMAND_RUN,
                          ARGS("-p", "hi", "-n", "12", "-c", "99", "--policy", "dv", "--set", "th=0.5", "--temp",
                               "0.25", "--top-k", "7", "--top-p", "0.5", "--seed", "18446744073709551615",
                               "--ignore-eos", "--backend", "cpu", "--isa", "avx2", "--exact", "--gpu", "1", "--probe",
                               "off", "-t", "3", "--trace", "T", "--json", "J", "M"),
                          &err));
    assert_string_equal(o.prompt, "hi");
    assert_int_equal(o.prompt_len, 2);
    assert_int_equal(o.tokens, 12);
    assert_int_equal(o.ctx, 99);
    assert_int_equal(o.policies.n, 1);
    assert_string_equal(o.policies.at[0], "dv");
    assert_int_equal(o.n_set, 1);
    assert_string_equal(o.set[0].name, "th");
    assert_string_equal(o.set[0].text, "0.5");
    assert_number_equal(o.sampling.temperature, 0.25f);
    assert_int_equal(o.sampling.top_k, 7);
    assert_number_equal(o.sampling.top_p, 0.5f);
    assert_int_equal(o.seed, UINT64_MAX);
    assert_true(o.ignore_eos && o.backend_options.exact);
    assert_string_equal(o.backend, "cpu");
    assert_string_equal(o.backend_options.isa, "avx2");
    assert_int_equal(o.backend_options.gpu, 1);
    assert_int_equal(o.backend_options.threads, 3);
    assert_int_equal(o.probe, PROBE_OFF);
    assert_string_equal(o.trace, "T");
    assert_string_equal(o.json, "J");
    assert_string_equal(o.model, "M");
    options_free(&o);
}

TEST(operands_and_options_mix_and_two_dashes_end_options)
{
    config(*state, NULL);
    struct options o;
    struct err err = {0};
    assert_ok(read_args(&o, COMMAND_RUN, ARGS("M", "-n", "4", "--temp=0.5"), &err), err);
    assert_string_equal(o.model, "M");
    assert_int_equal(o.tokens, 4);
    assert_number_equal(o.sampling.temperature, 0.5f);
    options_free(&o);
    assert_ok(read_args(&o, COMMAND_RUN, ARGS("-n", "4", "--", "-odd-name"), &err), err);
    assert_string_equal(o.model, "-odd-name");
    options_free(&o);
    assert_false(read_args(&o, COMMAND_RUN, ARGS("M", "-n", "4", "N"), &err));
    assert_int_equal(err.kind, ERR_USAGE);
    options_free(&o);
}

TEST(an_unknown_option_is_named)
{
    config(*state, NULL);
    static const struct {
        char *argv[8];
        const char *named;
    } cases[] = {
        {{"run", "--bogus", NULL}, "--bogus"},
        {{"run", "-n", "4", "--bogus", "x", NULL}, "--bogus"},
        {{"run", "M", "--bogus=3", "-n", "4", NULL}, "--bogus=3"},
        {{"run", "-x", "M", NULL}, "-x"},
        {{"run", "-n", "4", "-x", NULL}, "-x"},
        {{"run", "--theme", "dark", NULL}, "--theme"}, /* an option of the scope only */
        {{"run", "-n", NULL}, "-n"},
        {{"run", "M", "--json", NULL}, "--json"},
        {{"run", "--ignore-eos=yes", NULL}, "--ignore-eos"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options o;
        struct err err = {0};
        char *argv[8];
        memcpy(argv, cases[i].argv, sizeof argv); /* getopt reorders */
        assert_false(read_args(&o, COMMAND_RUN, argv, &err));
        assert_int_equal(err.kind, ERR_USAGE);
        if (strstr(err.text, cases[i].named) == NULL)
            fail_msg("'%s' does not name %s", err.text, cases[i].named);
        options_free(&o);
    }
}

TEST(the_last_of_a_repeated_option_counts)
{
    config(*state, NULL);
    struct options o;
    struct err err = {0};
    assert_true(read_args(&o, COMMAND_RUN,
                          ARGS("-p", "one", "-p", "two", "--policy", "ar", "--policy", "del", "--set", "omega=0.1",
                               "--set", "window=8", "--set", "omega=0.2"),
                          &err));
    assert_string_equal(o.prompt, "two");
    assert_int_equal(o.policies.n, 1);
    assert_string_equal(o.policies.at[0], "del");
    assert_int_equal(o.n_set, 2);
    assert_string_equal(o.set[0].name, "window");
    assert_string_equal(o.set[1].text, "0.2");
    options_free(&o);
}

TEST(bench_collects_policies)
{
    config(*state, NULL);
    struct options o;
    struct err err = {0};
    assert_ok(read_args(&o, COMMAND_BENCH, ARGS("--policy", "ar", "--policy", "del"), &err), err);
    assert_int_equal(o.policies.n, 2);
    options_free(&o);
}

TEST(too_many_settings_are_refused)
{
    config(*state, NULL);
    char names[OPTIONS_MOST + 1][24], *argv[2 * (OPTIONS_MOST + 1) + 2];
    int argc = 0;
    argv[argc++] = "run";
    for (int i = 0; i <= OPTIONS_MOST; i++) {
        snprintf(names[i], sizeof names[i], "knob%d=1", i);
        argv[argc++] = "--set";
        argv[argc++] = names[i];
    }
    argv[argc] = NULL;
    struct options o;
    struct err err = {0};
    assert_false(options_read(&o, COMMAND_RUN, argc, argv, &err));
    assert_int_equal(err.kind, ERR_USAGE);
    options_free(&o);
    argc -= 2;
    argv[argc] = NULL;
    assert_ok(options_read(&o, COMMAND_RUN, argc, argv, &err), err);
    assert_int_equal(o.n_set, OPTIONS_MOST);
    options_free(&o);
}

TEST(settings_of_the_config_file_stay_with_its_policy)
{
    struct options o;
    struct err err = {0};
    config(*state, "{\"policy\": \"layerskip\", \"set\": [\"gamma=3\", \"exit_layer=2\"]}");
    assert_ok(read_args(&o, COMMAND_RUN, ARGS("--set", "gamma=4"), &err), err);
    assert_string_equal(o.policies.at[0], "layerskip");
    assert_int_equal(o.n_set, 2);
    assert_string_equal(o.set[0].name, "exit_layer");
    assert_string_equal(o.set[1].text, "4");
    options_free(&o);
    assert_ok(read_args(&o, COMMAND_RUN, ARGS("--policy", "layerskip"), &err), err);
    assert_int_equal(o.n_set, 2);
    options_free(&o);
    assert_ok(read_args(&o, COMMAND_RUN, ARGS("--set", "gamma=4", "--policy", "fsm"), &err), err);
    assert_string_equal(o.policies.at[0], "fsm");
    assert_int_equal(o.n_set, 1);
    assert_string_equal(o.set[0].text, "4");
    options_free(&o);
    assert_ok(read_args(&o, COMMAND_RUN, ARGS("--policy", "fsm", "--policy", "layerskip"), &err), err);
    assert_int_equal(o.n_set, 0);
    options_free(&o);
    config(*state, "{\"set\": [\"tau=0.4\"]}"); /* tau is a knob of the default policy, specbound */
    assert_ok(read_args(&o, COMMAND_RUN, ARGS("--policy", "specbound"), &err), err);
    assert_int_equal(o.n_set, 1);
    options_free(&o);
    assert_ok(read_args(&o, COMMAND_RUN, ARGS("--policy", "ar"), &err), err);
    assert_int_equal(o.n_set, 0);
    options_free(&o);
}

TEST(a_config_file_serves_every_command)
{
    struct options o;
    struct err err = {0};
    config(*state, "{\"theme\": \"light\", \"tokens\": 9, \"repeat\": 2, \"pace\": 3.5, \"json\": \"x\"}");
    assert_ok(read_args(&o, COMMAND_RUN, ARGS("-n", "8"), &err), err);
    assert_int_equal(o.tokens, 8);
    assert_null(o.theme);
    assert_less(o.pace, 0);
    assert_string_equal(o.json, "x");
    options_free(&o);
    assert_ok(read_args(&o, COMMAND_REPLAY, ARGS("T"), &err), err);
    assert_string_equal(o.theme, "light");
    assert_int_equal(o.tokens, 0); /* replay does not have the option */
    options_free(&o);
    assert_ok(read_args(&o, COMMAND_BENCH, (char *[]){"bench", NULL}, &err), err);
    assert_int_equal(o.repeat, 2);
    assert_int_equal(o.tokens, 9);
    options_free(&o);
}

TEST(a_broken_config_file_names_itself)
{
    static const char *const broken[] = {
        "",
        "{",
        "[]",
        "null",
        "{\"tokens\": -1}",
        "{\"tokens\": 1.5}",
        "{\"tokens\": 1e99}",
        "{\"tokens\": null}",
        "{\"tokens\": {}}",
        "{\"temp\": \"warm\"}",
        "{\"version\": true}",
        "{\"policy\": [\"del\", \"magic\"]}",
        "{\"set\": \"tau\"}",
        "{\"exact\": \"yes\"}",
        "{\"nothing\": 1}",
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct options o;
        struct err err = {0};
        config(*state, broken[i]);
        assert_false(read_args(&o, COMMAND_BENCH, (char *[]){"bench", NULL}, &err));
        assert_int_equal(err.kind, ERR_USAGE);
        assert_contains(err.text, "/specscope/config.json: ");
        options_free(&o);
    }
}

TEST(prompts_lose_their_last_newlines_only)
{
    char path[300];
    snprintf(path, sizeof path, "%s/prompt", (const char *)*state);
    config(*state, NULL);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("\none\n\ntwo\n\n", f);
    fclose(f);
    struct options o;
    struct err err = {0};
    assert_ok(read_args(&o, COMMAND_RUN, ARGS("-f", path), &err), err);
    assert_string_equal(o.prompt, "\none\n\ntwo");
    options_free(&o);
}

FIXTURE(make_home, delete_home);
