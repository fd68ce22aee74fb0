/* Traces that specscope did not write, or not alone: valid parts are read, and no value is trusted. */
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/rigs/small_trace.h"
#include "tests/rigs/test.h"
#include "tests/rigs/trace_checks.h"

/* Replaces the first `old` in a file; returns false if there is none. */
static bool
edit(const char *path, const char *file, const char *old, const char *new)
{
    char *text = read_text(path, file), *at = strstr(text, old);
    if (at != NULL) {
        char *edited = malloc(strlen(text) + strlen(new) + 1);
        assert_non_null(edited);
        sprintf(edited, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
        write_text(path, file, edited);
        free(edited);
    }
    free(text);
    return at != NULL;
}

/* Reads the whole trace; returns true if there was no error. */
static bool
read_all(const char *path, struct err *err)
{
    struct trace_reader *r;
    struct event e;
    *err = (struct err){0};
    if (!trace_reader_open(&r, path, false, err))
        return false;
    while (trace_reader_next(r, &e, err))
        ;
    trace_reader_close(r);
    return err->kind == ERR_NONE;
}

TEST_WITH(the_lines_of_a_trace_are_those_that_the_format_describes, folder_set_up, folder_tear_down)
{
    const char *folder = *state;
    static const struct {
        const char *file, *text;
    } expected[] = {
        {"tokens.csv",
         "event,t_us,run,seq,round,pos,parent,candidate,token_id,source,exit_layer,confidence,annealed,head,accepted,"
         "committed\n3,1002,1,0,1,3,0,1,7,draft,2,0.5,0.25,0,1,1\n"},
        {"layers.csv", "event,t_us,run,seq,round,pos,model,layer,token_id,confidence,annealed,entropy,kl_final,"
                       "rank_final,final_agrees,top,head,probed_by,acceptance,temperature,draft_vocab\n"
                       "4,1003,1,0,1,3,,2,7,0.5,0.25,1.5,,,,7:0.5 8:0.125,0,policy,,1.25,4100\n"},
        {"experts.csv", "event,t_us,run,seq,round,pos,layer,experts\n"
                        "7,1006,1,0,1,3,6,39:0.5 0:0.375 7:0.100000001\n"},
        {"series.csv", "event,t_us,run,seq,round,key,index,value\n5,1004,1,0,1,\"tau\",0,0.5\n"},
        {"controls.csv", "event,t_us,run,seq,round,name,old,new,applied_round\n1,1000,1,0,0,\"run\",,\"start\",1\n"},
        {"vocab.csv", "event,t_us,run,seq,token_id,text\n2,1001,1,0,7,\"seven\"\n"},
        {"rounds.csv",
         "event,t_us,run,seq,round,policy,draft_us,verify_us,probe_us,drafted,verified,accepted,emitted,exit_layer,"
         "threshold,d_max,w_max,layers_loaded,heads_loaded,stop_reason,heads_us,wait_us,learning_us,"
         "verify_experts,reject_rank,cut\n"
         "8,1007,1,0,1,\"specbound\",10,20,0,1,1,1,1,,0.5,3,4,6,2,\"w_max\",2.5,,1.5,3.25,2,3\n"},
    };
    char path[256];
    write_small_trace(folder, path);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char *text = read_text(path, expected[i].file);
        assert_string_equal(text, expected[i].text);
        free(text);
    }
}

static const struct {
    const char *file, *old, *new, *where, *what;
} bad_fields[] = {
    {"tokens.csv", ",7,draft", ",300,draft", "tokens.csv, line 2, column token_id", "vocabulary"},
    {"tokens.csv", ",7,draft", ",-7,draft", "column token_id", "whole number"},
    {"tokens.csv", ",7,draft", ",7 x,draft", "column token_id", "whole number"},
    {"tokens.csv", ",7,draft", ",,draft", "column token_id", "empty"},
    {"tokens.csv", ",7,draft", ",7,sketch", "column source", "source"},
    {"tokens.csv", ",draft,2,", ",draft,7,", "column exit_layer", "layers"},
    {"tokens.csv", "3,1002,1,0,1,3,", "3,1002,1,0,1,513,", "column pos", "context"},
    {"tokens.csv", ",0,1,7,draft", ",0,64,7,draft", "column candidate", "candidates"},
    {"tokens.csv", ",0.5,0.25", ",0.5f,0.25", "column confidence", "not a number"},
    {"tokens.csv", ",0.5,0.25", ",nan,0.25", "column confidence", "not a number"},
    {"tokens.csv", ",0.5,0.25", ",0x1p3,0.25", "column confidence", "not a number"},
    {"tokens.csv", ",1,1\n", ",2,1\n", "column accepted", "neither 0 nor 1"},
    {"tokens.csv", ",1,1\n", ",1,1,1\n", "tokens.csv, line 2", "fields"},
    {"tokens.csv", ",1,1\n", ",1\n", "tokens.csv, line 2", "fields"},
    {"tokens.csv", "3,1002", "0,1002", "column event", "not above"},
    {"tokens.csv", "3,1002", "2,1002", "column event", "another file"},
    {"tokens.csv", "3,1002,1,0,", "3,1002,4294967296,0,", "column run", "too large"},
    {"tokens.csv", "3,1002,1,0,", "3,1002,0,0,", "column run", "earlier run"},
    {"tokens.csv", "3,1002,1,0,", "3,1002,1,70000,", "column seq", "too large"},
    {"tokens.csv", "3,1002", "3,99999999999999999999", "column t_us", "whole number"},
    {"layers.csv", ",3,,2,7,", ",3,,0,7,", "column layer", "no layer"},
    {"layers.csv", ",3,,2,7,", ",3,,7,7,", "column layer", "no layer"},
    {"layers.csv", ",3,,2,7,", ",3,draft,3,7,", "column layer", "no layer"},
    {"layers.csv", ",3,,2,7,", ",3,companion,1,7,", "column layer", "does not give"},
    {"layers.csv", ",3,,2,7,", ",3,nobody,2,7,", "column model", "no model"},
    {"layers.csv", "8:0.125", "300:0.125", "column top", "vocabulary"},
    {"layers.csv", "8:0.125", "8:", "column top", "list"},
    {"layers.csv", "8:0.125", "8:0.1:2", "column top", "list"},
    {"layers.csv", "8:0.125", "1:0 2:0 3:0 4:0 5:0 6:0", "column top", "more tokens"},
    {"layers.csv", ",policy,,1.25,4100\n", ",nobody,,1.25,4100\n", "column probed_by", "reason of a probe"},
    {"experts.csv", ",3,6,", ",513,6,", "column pos", "context"},
    {"experts.csv", ",3,6,", ",3,0,", "experts.csv, line 2, column layer", "no layer"},
    {"experts.csv", ",3,6,", ",3,7,", "column layer", "no layer"},
    {"experts.csv", "39:0.5", "40:0.5", "column experts", "beyond those"},
    {"experts.csv", "39:0.5", "-1:0.5", "column experts", "list"},
    {"experts.csv", "39:0.5", "39", "column experts", "list"},
    {"experts.csv", "39:0.5", "39:nan", "column experts", "list"},
    {"experts.csv", "39:0.5 0:0.375 7:0.100000001", "", "column experts", "empty"},
    {"experts.csv", "39:0.5", "1:0 1:0 1:0 1:0 1:0 1:0 1:0 1:0 1:0 1:0 1:0 1:0 1:0 1:0 39:0.5", "column experts",
     "more than 16"},
    {"run.json", "\"experts\":\t40", "\"experts\":\t8", "column experts", "beyond those"},
    {"run.json", "\"experts\":\t40", "\"layer_kinds\":\t\"aarrrx\"", "\"layer_kinds\"", "letter"},
    {"run.json", "\"experts\":\t40", "\"layer_kinds\":\t\"aarrr\"", "\"layer_kinds\"", "letter"},
    {"run.json", "\"experts\":\t40", "\"experts_\":\t40", "\"experts_used\"", "more than"},
    {"run.json", "\"experts\":\t40", "\"experts\":\t4097", "\"experts\"", "range"},
    {"series.csv", "\"tau\",0", "\"tau\",1048576", "column index", "too large"},
    {"series.csv", "\"tau\"", "\"a key that is longer than keys can be\"", "column key", "too long"},
    {"series.csv", "\"tau\"", "\"ta\"u", "series.csv, line 2", "quote"},
    {"controls.csv", "\"start\"", "\"st\\art\"", "column new", "backslash"},
    {"controls.csv", "\"start\"", "\"st\\x00art\"", "column new", "NUL"},
    {"controls.csv", "\"run\",,\"start\"", "\"policy\",,\"nonesuch\"", "column new", "policy"},
    {"vocab.csv", "\"seven\"", "\"sev\\x0gen\"", "column text", "backslash"},
    {"rounds.csv", "\"specbound\"", "\"nonesuch\"", "rounds.csv, line 2, column policy", "declares"},
    {"rounds.csv", ",1,1,1,1,", ",70000,1,1,1,", "column drafted", "too large"},
    {"rounds.csv", "0.5,3,4", "0.5,7,4", "column d_max", "layers"},
    {"tokens.csv", "source,", "other,", "tokens.csv, line 1, column source", "missing"},
    {"rounds.csv", "event,", "number,", "rounds.csv, line 1, column event", "missing"},
    {"run.json", "\"format\":\t1", "\"format\":\t2", "run.json", "newer"},
    {"run.json", "\"vocab\":\t300", "\"vocab\":\t0", "\"vocab\"", "range"},
    {"run.json", "\"layers\":\t6", "\"layers\":\t1e9", "\"layers\"", "range"},
    {"run.json", "\"layers\":\t6", "\"layers\":\t6.5", "\"layers\"", "range"},
    {"run.json", "\"sampling\":", "\"sampler\":", "\"sampling\"", "missing"},
    {"run.json", "\"18446744073709551615\"", "\"18446744073709551616\"", "\"seed\"", "whole number"},
    {"run.json", "\"policy\":\t\"specbound\"", "\"policy\":\t\"none\"", "\"policy\"", "declared"},
    {"run.json", "\"dynamic\", ", "", "\"choices\"", "bounds"},
    {"run.json", "\"name\":\t\"tau\"", "\"name\":\t\"prompt\"", "\"knobs\"", "control"},
    {"run.json", "\"default\":\t0.55", "\"default\":\t1.55", "\"knobs\"", "default"},
    {"run.json", "\"cols\":\t6", "\"cols\":\t0", "\"cols\"", "range"},
    {"run.json", "\"needs\":\t[\"draft\"", "\"needs\":\t[\"drift\"", "\"needs\"", "no policy needs"},
    {"run.json", "\"layers\":\t2", "\"layers\":\t-2", "\"layers\"", "range"},
    {"run.json", "{", "[", "run.json", "JSON"},
};

TEST_WITH(a_bad_field_is_refused_with_file_line_and_column, folder_set_up, folder_tear_down)
{
    const char *folder = *state;
    char path[256];
    struct err err;
    write_small_trace(folder, path);
    assert_ok(read_all(path, &err), err);
    for (size_t i = 0; i < sizeof bad_fields / sizeof *bad_fields; i++) {
        char *before = read_text(path, bad_fields[i].file);
        if (!edit(path, bad_fields[i].file, bad_fields[i].old, bad_fields[i].new))
            fail_msg("%s holds no %s", bad_fields[i].file, bad_fields[i].old);
        bool ok = read_all(path, &err);
        if (ok || strstr(err.text, bad_fields[i].where) == NULL || strstr(err.text, bad_fields[i].what) == NULL)
            fail_msg("%s: %s for %s: %s", bad_fields[i].file, bad_fields[i].new, bad_fields[i].old,
                     ok ? "no error" : err.text);
        assert_int_equal(err.kind, ERR_WORK);
        write_text(path, bad_fields[i].file, before);
        free(before);
    }
    assert_ok(read_all(path, &err), err);
}

TEST_WITH(rewinding_after_a_bad_line_starts_afresh, folder_set_up, folder_tear_down)
{
    const char *folder = *state;
    static const char *const bad[] = {
        "\"0.5", ",,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,", "\"a\"b"};
    char path[256];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct event e;
        struct err first = {0}, second = {0};
        uint64_t before = 0, after = 0;
        char line[200];
        snprintf(line, sizeof line, "0.5\n6,1005,1,0,1,\"tau\",0,%s\n", bad[i]);
        write_small_trace(folder, path);
        assert_true(edit(path, "series.csv", "0.5\n", line));
        struct trace_reader *r = open_trace(path);
        while (trace_reader_next(r, &e, &first))
            before++;
        assert_true(trace_reader_rewind(r, false, NULL));
        while (trace_reader_next(r, &e, &second))
            after++;
        assert_int_equal(before, after);
        assert_greater(before, 0);
        assert_string_equal(first.text, second.text);
        trace_reader_close(r);
        remove_folder(path);
    }
}

TEST_WITH(unknown_columns_any_order_and_spreadsheet_habits_are_fine, folder_set_up, folder_tear_down)
{
    const char *folder = *state;
    static const char *const variants[] = {
        "event,t_us,run,seq,round,key,index,value\n5,1004,1,0,1,tau,0,0.5\n",
        "\"event\",\"t_us\",\"run\",\"seq\",\"round\",\"key\",\"index\",\"value\"\r\n\"5\",1004,1,0,1,tau,0,0.5\r\n",
        "\357\273\277event,t_us,run,seq,round,key,index,value\n\n5,1004,1,0,1,tau,0,5e-1\n\n",
        "value,index,key,note,round,seq,run,t_us,event\n0.5,0,\"tau\",\"a \"\"b\"\",\nc\",1,0,1,1004,5\n",
        "event,t_us,run,seq,round,key,index,value\n 5 , 1004,1,0,1,tau ,0,0.500000\n",
    };
    char path[256];
    write_small_trace(folder, path);
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        write_text(path, "series.csv", variants[i]);
        struct trace_reader *r = open_trace(path);
        struct event e;
        struct err err = {0};
        int found = 0;
        while (trace_reader_next(r, &e, &err)) {
            if (e.type != EVENT_SERIES)
                continue;
            found++;
            assert_int_equal(e.number, 5);
            assert_string_equal(e.series.key, "tau");
            assert_number_equal(e.series.value, 0.5f);
        }
        if (err.kind != ERR_NONE)
            fail_msg("%s", err.text);
        assert_int_equal(found, 1);
        trace_reader_close(r);
    }
}

TEST_WITH(columns_that_came_later_may_be_missing, folder_set_up, folder_tear_down)
{
    const char *folder = *state;
    char path[256], experts[300];
    write_small_trace(folder, path);
    assert_true(edit(path, "rounds.csv", ",heads_us,wait_us,learning_us,verify_experts,reject_rank,cut\n", "\n"));
    assert_true(edit(path, "rounds.csv", ",2.5,,1.5,3.25,2,3\n", "\n"));
    assert_true(edit(path, "layers.csv", ",temperature,draft_vocab\n", "\n") &&
                edit(path, "layers.csv", ",1.25,4100\n", "\n"));
    assert_true(edit(path, "layers.csv", ",model,", ","));
    assert_true(edit(path, "layers.csv", ",3,,2,7,", ",3,2,7,"));
    assert_true(edit(path, "run.json", ",\n\t\t\"layers\":\t2", ""));
    assert_true(edit(path, "run.json", ",\n\t\"sequences\":\t3,\n\t\"prompts\":\t17", ""));
    assert_true(edit(path, "run.json", ",\n\t\t\"experts\":\t40,\n\t\t\"experts_used\":\t3", ""));
    snprintf(experts, sizeof experts, "%s/experts.csv", path);
    assert_int_equal(unlink(experts), 0);
    assert_true(edit(path, "run.json", "\"lines\":", "\"other\":")); /* older traces have no tables' lengths */
    for (int policy = 0; policy < 2; policy++)
        assert_true(edit(path, "run.json", "\"needs\":", "\"other\":"));
    struct trace_reader *r = open_trace(path);
    assert_int_equal(run_info_layers(trace_reader_info(r), MODEL_DRAFT), 0);
    assert_int_equal(run_info_policy(trace_reader_info(r), "ar")->needs, 0);
    assert_int_equal(trace_reader_info(r)->experts, 0);
    assert_int_equal(trace_reader_info(r)->experts_used, 0);
    assert_int_equal(trace_reader_info(r)->sequences, 1);
    assert_int_equal(trace_reader_info(r)->prompts, 1);
    struct event e;
    struct err err = {0};
    int rounds = 0, layers = 0;
    while (trace_reader_next(r, &e, &err)) {
        layers += e.type == EVENT_LAYER && e.layer.model == MODEL_TARGET && e.layer.layer == 2 &&
                  isnan(e.layer.temperature) && e.layer.draft_vocab == 0;
        rounds += e.type == EVENT_ROUND;
        assert_true(e.type != EVENT_ROUND ||
                    (isnan(e.round_end.heads_us) && isnan(e.round_end.wait_us) && isnan(e.round_end.learning_us) &&
                     isnan(e.round_end.verify_experts) && e.round_end.reject_rank == -1 && e.round_end.cut == 0));
    }
    if (err.kind != ERR_NONE)
        fail_msg("%s", err.text);
    assert_int_equal(rounds, 1);
    assert_int_equal(layers, 1);
    trace_reader_close(r);
}

TEST_WITH(a_column_is_read_by_its_former_name, folder_set_up, folder_tear_down)
{
    char path[256];
    write_small_trace(*state, path);
    assert_true(edit(path, "rounds.csv", ",learning_us,", ",aside_us,"));
    struct trace_reader *r = open_trace(path);
    struct event e;
    struct err err = {0};
    while (trace_reader_next(r, &e, &err) && e.type != EVENT_ROUND) {}
    assert_int_equal(e.type, EVENT_ROUND);
    assert_true(e.round_end.learning_us == 1.5f);
    trace_reader_close(r);
}

TEST_WITH(what_lies_beyond_the_last_round_is_not_even_looked_at, folder_set_up, folder_tear_down)
{
    const char *folder = *state;
    char path[256];
    struct err err;
    write_small_trace(folder, path);
    char *json = read_text(path, "run.json");
    assert_true(edit(path, "run.json", ",\n\t\"closed_event\":\t8", ""));
    assert_true(edit(path, "series.csv", "0.5\n", "0.5\n9,nonsense,,,,,,\n"));
    assert_true(edit(path, "tokens.csv", ",1,1\n", ",1,1\n9,1,1,0,1,3,0,1,"));
    assert_ok(read_all(path, &err), err);
    write_text(path, "run.json", json);
    assert_false(read_all(path, &err)); /* later events are not read, but reported as an error */
    assert_contains(err.text, "series.csv: has more than the ");
    free(json);
}

TEST_WITH(names_from_a_trace_cannot_drive_a_terminal, folder_set_up, folder_tear_down)
{
    const char *folder = *state;
    char path[256];
    write_small_trace(folder, path);
    assert_true(edit(path, "run.json", "confidence threshold", "\\\\x1b[2J\\u001b]0;\\u202e"));
    assert_true(edit(path, "rounds.csv", "\"w_max\"", "\"a\x1b[2Jb\""));
    struct trace_reader *r = open_trace(path);
    assert_string_equal(trace_reader_info(r)->policies[1].knobs[0].help, "?[2J?]0;???");
    struct event e = {0};
    while (trace_reader_next(r, &e, NULL))
        if (e.type == EVENT_ROUND)
            assert_string_equal(e.round_end.stop_reason, "a?[2Jb");
    trace_reader_close(r);
}

TEST_WITH(a_folder_without_a_trace_is_refused, folder_set_up, folder_tear_down)
{
    const char *folder = *state;
    char path[256];
    struct trace_reader *r;
    struct err err;
    assert_false(trace_reader_open(&r, "/nonesuch/folder", false, &err));
    assert_contains(err.text, "/nonesuch/folder");
    assert_false(trace_reader_open(&r, folder, false, &err));
    assert_contains(err.text, "run.json");
    write_small_trace(folder, path);
    char file[300];
    snprintf(file, sizeof file, "%s/layers.csv", path);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkfifo(file, 0600), 0); /* opening must not wait for a writer */
    assert_false(trace_reader_open(&r, path, false, &err));
    assert_contains(err.text, "not a file");
    assert_int_equal(unlink(file), 0);
    write_text(path, "layers.csv", "");
    assert_false(trace_reader_open(&r, path, false, &err));
    assert_contains(err.text, "header");
    assert_null(r);
}
