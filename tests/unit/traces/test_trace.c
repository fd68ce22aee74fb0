/* A trace that is written is read back equal. */
#include "base/utf8.h"
#include "tests/rigs/test.h"
#include "tests/rigs/trace_checks.h"
#include "traces/run_json.h"
#include "traces/schema.h"

/* ---- writing and reading ---- */

TEST_WITH(a_closed_trace_reads_back_event_for_event, folder_set_up, folder_tear_down)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        print_message("seed %d\n", (int)seed);
        struct stream s;
        stream_begin(&s, seed);
        stream_fill(&s);
        assert_comes_back(*state, &s, true, s.n);
    }
}

TEST_WITH(a_trace_that_was_not_closed_ends_with_its_last_round, folder_set_up, folder_tear_down)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        print_message("seed %d\n", (int)seed);
        struct stream s;
        stream_begin(&s, seed);
        stream_start_run(&s);
        for (uint32_t i = 1 + stream_below(&s, 5); i > 0; i--)
            stream_round(&s);
        const uint64_t last = s.n;
        stream_control(&s, "end", "tokens");
        assert_comes_back(*state, &s, false, last);
    }
}

TEST_WITH(a_torn_trace_reads_up_to_the_last_whole_round, folder_set_up, folder_tear_down)
{
    const char *folder = *state;
    struct stream s;
    char path[256];
    stream_begin(&s, 5);
    stream_start_run(&s);
    uint64_t ends[6] = {0};
    for (int i = 1; i < 6; i++) {
        stream_round(&s);
        ends[i] = s.n;
    }
    write_trace(folder, &s, false, path);
    char *rounds = read_text(path, "rounds.csv");
    size_t header = (size_t)(strchr(rounds, '\n') - rounds) + 1;
    /* Cuts rounds.csv at every byte: the rounds of all whole lines are read. */
    for (size_t cut = strlen(rounds); cut >= header; cut--) {
        rounds[cut] = '\0';
        write_text(path, "rounds.csv", rounds);
        uint64_t whole = 0;
        for (const char *c = rounds + header; *c != '\0'; c++)
            whole += *c == '\n';
        struct trace_reader *r = open_trace(path);
        assert_int_equal(trace_reader_state(r).rounds, whole);
        if (whole > 0) {
            assert_reads_back(r, &s, ends[whole]);
        } else {
            struct event e;
            assert_false(trace_reader_next(r, &e, NULL));
        }
        trace_reader_close(r);
    }
    free(rounds);
    stream_free(&s);
}

TEST_WITH(lines_ascend_in_every_file, folder_set_up, folder_tear_down)
{
    const char *folder = *state;
    struct stream s;
    char path[256];
    stream_begin(&s, 77);
    stream_fill(&s);
    write_trace(folder, &s, true, path);
    for (unsigned t = 0; t < TABLES; t++) {
        char *text = read_text(path, trace_tables[t].file), *line = strchr(text, '\n');
        unsigned long long before = 0;
        while (line != NULL && line[1] != '\0') {
            unsigned long long number = strtoull(line + 1, NULL, 10);
            assert_greater(number, before);
            before = number;
            line = strchr(line + 1, '\n');
        }
        free(text);
    }
    stream_free(&s);
}

TEST_WITH(drafts_of_a_cancelled_round_leave_no_line, folder_set_up, folder_tear_down)
{
    const char *folder = *state;
    struct stream s;
    char path[256];
    stream_begin(&s, 1);
    stream_start_run(&s);
    s.round = 1;
    struct event *e = stream_add(&s, EVENT_TOKEN);
    e->token =
        (struct token_event){.candidate = 1, .token = 7, .source = SOURCE_DRAFT, .accepted = -1, .committed = -1};
    stream_start_run(&s);
    stream_round(&s);
    write_trace(folder, &s, true, path);
    struct trace_reader *r = open_trace(path);
    struct event got;
    while (trace_reader_next(r, &got, NULL))
        assert_false(got.type == EVENT_TOKEN && got.token.source == SOURCE_DRAFT && got.run == 1);
    trace_reader_close(r);
    stream_free(&s);
}

static void
assert_same_policy(const struct policy_info *a, const struct policy_info *b)
{
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->title, b->title);
    assert_string_equal(a->paper, b->paper);
    assert_int_equal(a->needs, b->needs);
    assert_int_equal(a->n_knobs, b->n_knobs);
    assert_int_equal(a->n_series, b->n_series);
    for (uint32_t i = 0; i < a->n_knobs; i++) {
        const struct knob *k = &a->knobs[i], *l = &b->knobs[i];
        assert_string_equal(k->name, l->name);
        assert_string_equal(k->symbol, l->symbol);
        assert_string_equal(k->help, l->help);
        assert_int_equal(k->kind, l->kind);
        assert_number_equal(k->min, l->min);
        assert_number_equal(k->max, l->max);
        assert_number_equal(k->step, l->step);
        assert_number_equal(k->def, l->def);
        for (int c = 0; k->kind == KNOB_CHOICE && c <= (int)k->max; c++)
            assert_string_equal(k->choices[c], l->choices[c]);
    }
    for (uint32_t i = 0; i < a->n_series; i++) {
        assert_string_equal(a->series[i].key, b->series[i].key);
        assert_string_equal(a->series[i].title, b->series[i].title);
        assert_int_equal(a->series[i].form, b->series[i].form);
        assert_int_equal(a->series[i].rows, b->series[i].rows);
        assert_int_equal(a->series[i].cols, b->series[i].cols);
    }
}

static void
assert_same_aux(const struct run_info *run, const struct run_info *got)
{
    for (enum aux_role role = 0; role < AUX_MODELS; role++) {
        assert_string_equal(got->aux[role].name, run->aux[role].name);
        assert_string_equal(got->aux[role].path, run->aux[role].path);
        assert_int_equal(got->aux[role].hash, run->aux[role].hash);
        assert_int_equal(got->aux[role].layers, run->aux[role].layers);
    }
}

static void
assert_same_asked(const struct run_info *run, const struct run_info *got)
{
    assert_string_equal(got->exit_heads.path, run->exit_heads.path);
    assert_int_equal(got->exit_heads.hash, run->exit_heads.hash);
    assert_string_equal(got->vocab_counts.path, run->vocab_counts.path);
    assert_int_equal(got->vocab_counts.hash, run->vocab_counts.hash);
    assert_string_equal(got->vocab_last, run->vocab_last);
    assert_true(got->asked.chat && got->asked.ignore_eos && !got->asked.quantize && !got->asked.no_heads);
    assert_string_equal(got->asked.system, run->asked.system);
    assert_string_equal(got->asked.chat_vars, run->asked.chat_vars);
    assert_string_equal(got->asked.lora, run->asked.lora);
    assert_string_equal(got->asked.tools, run->asked.tools);
    assert_string_equal(got->asked.chat_template, run->asked.chat_template);
    assert_int_equal(got->asked.chat_special, run->asked.chat_special);
    assert_string_equal(got->asked.chat_date, run->asked.chat_date);
    assert_string_equal(got->asked.isa, run->asked.isa);
    assert_string_equal(got->asked.gpu, run->asked.gpu);
    assert_string_equal(got->asked.prompts, "");
    assert_int_equal(got->asked.threads, run->asked.threads);
    assert_int_equal(got->asked.batch, 0);
}

TEST_WITH(run_json_brings_everything_back, folder_set_up, folder_tear_down)
{
    const char *folder = *state;
    struct stream s;
    struct run_info run;
    char path[256];
    stream_begin(&s, 3);
    stream_fill(&s);
    write_trace(folder, &s, true, path);
    fake_run(&run);
    struct trace_reader *r = open_trace(path);
    const struct run_info *got = trace_reader_info(r);
    assert_int_equal(got->format, TRACE_FORMAT);
    assert_string_equal(got->version, run.version);
    assert_string_equal(got->model_path, run.model_path);
    assert_string_equal(got->model_name, run.model_name);
    assert_string_equal(got->arch, run.arch);
    assert_string_equal(got->types, run.types);
    assert_int_equal(got->layers, run.layers);
    assert_int_equal(got->width, run.width);
    assert_int_equal(got->heads, run.heads);
    assert_int_equal(got->kv_heads, run.kv_heads);
    assert_int_equal(got->ffn, run.ffn);
    assert_int_equal(got->vocab, run.vocab);
    assert_int_equal(got->ctx, run.ctx);
    assert_int_equal(got->parameters, run.parameters);
    assert_int_equal(got->model_hash, run.model_hash);
    assert_number_equal(got->rho, run.rho);
    assert_same_aux(&run, got);
    assert_string_equal(got->accept_head.path, "");
    assert_string_equal(got->profile.path, run.profile.path);
    assert_int_equal(got->profile.hash, run.profile.hash);
    assert_same_asked(&run, got);
    assert_string_equal(got->backend, run.backend);
    assert_string_equal(got->isa, run.isa);
    assert_string_equal(got->host, run.host);
    assert_int_equal(got->threads, run.threads);
    assert_true(got->exact);
    assert_int_equal(got->prompt_len, run.prompt_len);
    assert_string_equal(got->prompt, run.prompt);
    assert_number_equal(got->sampling.temperature, run.sampling.temperature);
    assert_int_equal(got->sampling.top_k, run.sampling.top_k);
    assert_number_equal(got->sampling.top_p, run.sampling.top_p);
    assert_int_equal(got->seed, run.seed);
    assert_int_equal(got->tokens, run.tokens);
    assert_int_equal(got->sequences, run.sequences);
    assert_int_equal(got->prompts, run.prompts);
    assert_string_equal(got->policy, run.policy);
    assert_string_equal(got->started, run.started);
    assert_int_equal(got->n_policies, run.n_policies);
    for (uint32_t p = 0; p < run.n_policies; p++) {
        assert_same_policy(&run.policies[p], &got->policies[p]);
        for (uint32_t i = 0; i < run.policies[p].n_knobs; i++)
            assert_number_equal(run.start_values[p * POLICY_KNOBS + i], got->start_values[p * POLICY_KNOBS + i]);
    }
    trace_reader_close(r);
    run_info_free(&run);
    stream_free(&s);
}

/* The hash of a missing file has no defined value. */
TEST_WITH(run_json_leaves_out_a_model_that_is_not_there, folder_set_up, folder_tear_down)
{
    struct run_info run;
    struct err err;
    char *text;
    fake_run(&run);
    run.aux[AUX_COMPANION].hash = run.accept_head.hash = 7;
    assert_ok(run_json_print(&run, &text, &err), err);
    assert_contains(text, "\"draft\":\t{");
    assert_lacks(text, "\"companion\":\t{");
    assert_lacks(text, "\"accept_head\":\t{");
    free(text);
    run_info_free(&run);
}

TEST(run_json_keeps_the_costs_of_steps)
{
    struct run_info run, back;
    struct trace_end end;
    struct err err;
    char *text;
    fake_run(&run);
    run.costs = (struct cost_model){.draft = 1.5, .round = 2.25, .context = 3, .far = {{0.125}}};
    for (int a = 0; a <= COST_OF_PROBE; a++)
        for (int i = 0; i < COST_ROWS; i++)
            run.costs.us[a][i] = 10.5 * (a + 1) + i;
    cost_reset(&run.costs);
    assert_ok(run_json_print(&run, &text, &err), err);
    assert_ok(run_json_parse("run.json", text, strlen(text), &back, &end, &err), err);
    assert_memory_equal(&run.costs, &back.costs, sizeof run.costs);
    run_info_free(&back);
    memcpy(strstr(text, "\"layer\":\t["), "\"lager\"", 7);
    assert_false(run_json_parse("run.json", text, strlen(text), &back, &end, &err));
    assert_string_equal(err.text, "run.json: \"cost\" has no 'layer'");
    free(text);
    run_info_free(&run);
}

TEST_WITH(files_hold_no_control_characters, folder_set_up, folder_tear_down)
{
    const char *folder = *state;
    struct stream s;
    char path[256];
    stream_begin(&s, 11);
    stream_fill(&s);
    write_trace(folder, &s, true, path);
    for (unsigned t = 0; t < TABLES; t++) {
        char *text = read_text(path, trace_tables[t].file);
        char *again = malloc(ESCAPE_LONGEST * strlen(text) + 1);
        assert_non_null(again);
        for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
            text_escape(again, line, strlen(line)); /* escapes only backslashes */
            for (char *at = again; (at = strchr(at, '\\')) != NULL; at += 2)
                assert_int_equal(at[1], '\\');
        }
        free(again);
        free(text);
    }
    stream_free(&s);
}

TEST_WITH(events_of_several_runs_lie_one_after_another_in_time, folder_set_up, folder_tear_down)
{
    const char *folder = *state;
    struct stream s;
    char path[256];
    stream_begin(&s, 9);
    stream_fill(&s);
    write_trace(folder, &s, true, path);
    struct trace_reader *r = open_trace(path);
    uint64_t expected = 0;
    for (size_t i = 0; i < s.n; i++)
        if (i + 1 == s.n || s.events[i + 1].run != s.events[i].run)
            expected += s.events[i].t_us;
    assert_int_equal(trace_reader_state(r).duration_us, expected);
    struct event e;
    uint64_t before = 0;
    while (trace_reader_next(r, &e, NULL)) {
        if (e.type == EVENT_VERDICT)
            continue;
        assert_at_least(trace_reader_time(r, &e), before);
        before = trace_reader_time(r, &e);
    }
    assert_int_equal(before, expected);
    trace_reader_close(r);
    stream_free(&s);
}

/* ---- escaping ---- */

TEST_WITH(escaped_text_is_printable_and_comes_back, folder_set_up, folder_tear_down)
{
    static const struct {
        const char *bytes, *text;
    } known[] = {
        {"plain", "plain"},
        {"a\\b", "a\\\\b"},
        {"\x1b[2J", "\\x1b[2J"},
        {"\n\t\x7f", "\\x0a\\x09\\x7f"},
        {"\xc2\x85", "\\xc2\\x85"},                   /* C1 */
        {"\xc3\xa4\xe2\x82\xac", "ä€"},               /* printable */
        {"\xe2\x80\xae", "\\xe2\\x80\\xae"},          /* right-to-left override */
        {"\xe2\x82", "\\xe2\\x82"},                   /* half a character */
        {"a\xc2\xad", "a\\xc2\\xad"},                 /* not assigned */
        {"\xf4\x8f\xbf\xbf", "\\xf4\\x8f\\xbf\\xbf"}, /* assigned to nothing */
        {"\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80", "\\xc0\\xaf\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80"},
        {"\xf0\x9f\x99\x82", "🙂"},
    };
    char text[4096], back[4096];
    size_t n;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        text_escape(text, known[i].bytes, strlen(known[i].bytes));
        assert_string_equal(text, known[i].text);
    }
    print_message("seed 1\n");
    struct stream s;
    stream_begin(&s, 1);
    for (int round = 0; round < 20000; round++) {
        char bytes[64];
        size_t len = stream_below(&s, sizeof bytes);
        for (size_t i = 0; i < len; i++)
            bytes[i] = (char)(stream_below(&s, 2) == 0 ? 0x80 + stream_below(&s, 128) : stream_below(&s, 256));
        size_t size = text_escape(text, bytes, len);
        for (size_t i = 0; i < size; i++) {
            assert_at_least((unsigned char)text[i], 0x20);
            assert_int_not_equal(text[i], 0x7f);
        }
        assert_true(text_unescape(back, &n, text, size));
        assert_int_equal(n, len);
        assert_memory_equal(back, bytes, len);
    }
    static const char raw[] = "\xc2\xad\xf4\x8f\xbf\xbf\xff"; /* another version escapes less */
    assert_true(text_unescape(back, &n, raw, sizeof raw));
    assert_int_equal(n, sizeof raw);
    assert_memory_equal(back, raw, n);
    assert_false(text_unescape(back, &n, "a\\", 2));
    assert_false(text_unescape(back, &n, "\\x1", 3));
    assert_false(text_unescape(back, &n, "\\n", 2));
    stream_free(&s);
}
