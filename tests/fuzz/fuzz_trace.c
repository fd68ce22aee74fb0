/* A trace in which the input replaces one file, wholly or in part. The reader may refuse it, but all that it returns
 * must satisfy the guarantees of traces/reader.h.
 *
 * Input: a byte that selects the file, then a byte whose lowest bit selects whether the rest is the whole file or is
 * put into a valid one. In the latter case two bytes for the offset follow, and two for the number of bytes to
 * replace. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_replace.h"
#include "tests/fuzz/fuzz.h"
#include "traces/reader.h"
#include "traces/run_json.h"
#include "traces/schema.h"
#include "traces/trace_pair.h"
#include "traces/writer.h"

#define LAYERS 4
#define VOCAB  64
#define CTX    32
#define FILES  (TABLES + 1)

struct base {
    char folder[64], path[80];
    char *text[FILES]; /* of a good trace */
    int fd[FILES];
};

static const char *const choices[] = {"dynamic", "tpl"};

static void
declare(struct run_info *run, struct policy *p, char *prompt)
{
    *run = (struct run_info){.format = TRACE_FORMAT,
                             .version = "0.1.0",
                             .model_name = "tiny",
                             .layers = LAYERS,
                             .width = 8,
                             .heads = 1,
                             .kv_heads = 1,
                             .ffn = 8,
                             .experts = 8,
                             .experts_used = 2,
                             .vocab = VOCAB,
                             .ctx = CTX,
                             .rho = 0.5,
                             .prompt = prompt,
                             .prompt_len = strlen(prompt),
                             .sequences = 2,
                             .prompts = 3,
                             .policy = "specbound",
                             .n_policies = 1};
    run->aux[AUX_DRAFT] = (struct aux_info){.name = "small", .path = "small.gguf", .layers = 1};
    snprintf(p->info.name, sizeof p->info.name, "specbound");
    p->info.needs = NEEDS(AUX_DRAFT);
    MUST(policy_knob(p, &(struct knob){"tau", "τ", "help", KNOB_REAL, 0, 1, 0.05, 0.55, NULL}));
    MUST(policy_knob(p, &(struct knob){"mode", "", "", KNOB_CHOICE, 0, 1, 1, 0, choices}));
    MUST(policy_series(p, "tau", "threshold", SERIES_LINE, 1, 1));
    run->policies = &p->info;
}

static void
append_events(struct event_log *log)
{
    for (uint32_t round = 0; round < 3; round++) {
        struct event e[] = {
            {.type = EVENT_CONTROL, .control = {.kind = RECORDED_RUN, .new_text = "start \x1b\xff\"\\"}},
            {.type = EVENT_VOCAB, .vocab = {.token = 5, .bytes = "\0\x80x", .n_bytes = 3}},
            {.type = EVENT_TOKEN,
             .token = {.pos = 3, .candidate = 1, .token = 5, .source = SOURCE_DRAFT, .exit_layer = 2}},
            {.type = EVENT_TOKEN, .token = {.pos = 4, .parent = 1, .candidate = 2, .token = 6, .source = SOURCE_DRAFT}},
            {.type = EVENT_LAYER,
             .layer = {.pos = 3, .layer = 2, .token = 5, .top = {5, 6, -1, -1, -1}, .kl_final = 1e-9f}},
            {.type = EVENT_LAYER, .layer = {.pos = 3, .model = MODEL_DRAFT, .layer = 1, .token = 6, .top = {-1}}},
            {.type = EVENT_SERIES, .series = {.key = "tau", .value = 0.1f}},
            {.type = EVENT_EXPERTS,
             .experts = {.pos = 3, .layer = 2, .n = 2, .expert = {7, 0}, .weight = {0.75f, 0.25f}}},
            {.type = EVENT_VERDICT, .verdict = {1, 1, 1}},
            {.type = EVENT_VERDICT, .verdict = {2, 0, 0}},
            {.type = EVENT_TOKEN, .token = {.pos = 4, .candidate = -1, .token = 7, .source = SOURCE_CORRECTION}},
            {.type = EVENT_ROUND,
             .round_end = {.policy = "specbound",
                           .drafted = 2,
                           .verified = 2,
                           .accepted = 1,
                           .emitted = 2,
                           .d_max = 3,
                           .w_max = 2,
                           .stop_reason = "w_max"}},
        };
        for (size_t i = round == 0 ? 0 : 1; i < sizeof e / sizeof *e; i++) {
            e[i].run = 1;
            e[i].round = round;
            e[i].t_us = 1000 * round + i;
            for (e[i].seq = 0; e[i].seq < (i < 2 ? 1 : 2); e[i].seq++) /* two sequences alternate */
                event_log_append(log, &e[i]);
        }
    }
}

static const char *
file_name(unsigned i)
{
    return i < TABLES ? trace_tables[i].file : RUN_JSON;
}

static struct base *
write_base(void)
{
    static struct base base;
    struct run_info run;
    struct policy p = {0};
    char prompt[] = "a\\b\n";
    struct event_log *log;
    struct trace_writer *writer;
    scratch_folder(base.folder, sizeof base.folder, "trace");
    snprintf(base.path, sizeof base.path, "%s/t", base.folder);
    declare(&run, &p, prompt);
    MUST(event_log_open(&log, 0, NULL));
    MUST(trace_writer_open(&writer, base.path, NULL, &run, log, NULL));
    append_events(log);
    MUST(trace_writer_close(writer, NULL));
    event_log_close(log);
    struct trace_reader *reader;
    MUST(trace_reader_open(&reader, base.path, false, NULL));
    trace_reader_close(reader);
    for (unsigned i = 0; i < FILES; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s/%s", base.path, file_name(i));
        FILE *f = fopen(name, "r+");
        base.text[i] = calloc(1, 1 << 16);
        MUST(f != NULL && base.text[i] != NULL && fread(base.text[i], 1, (1 << 16) - 1, f) > 0);
        base.fd[i] = dup(fileno(f));
        MUST(base.fd[i] >= 0);
        fclose(f);
    }
    return &base;
}

static struct base *the_base; /* static, because the fuzzer's entry has no parameter for it */

static void
put(const struct base *b, unsigned file, const char *bytes, size_t n)
{
    MUST(ftruncate(b->fd[file], 0) == 0 && lseek(b->fd[file], 0, SEEK_SET) == 0 && file_put(b->fd[file], bytes, n));
}

static void
put_together(const struct base *b, unsigned file, const uint8_t *data, size_t n)
{
    const char *good = b->text[file];
    size_t len = strlen(good), at = ((size_t)data[0] << 8 | data[1]) % (len + 1), gone = (size_t)data[2] << 8 | data[3];
    gone = gone > len - at ? len - at : gone;
    char *text = malloc(len + n);
    MUST(text != NULL);
    memcpy(text, good, at);
    memcpy(text + at, data + 4, n - 4);
    memcpy(text + at + n - 4, good + at + gone, len - at - gone);
    put(b, file, text, len - gone + n - 4);
    free(text);
}

/* ---- the guarantees of reader.h ---- */

static void
check_token(token_t t, bool may_be_none, const struct run_info *run)
{
    MUST((t >= 0 && (uint32_t)t < run->vocab) || (may_be_none && t == TOKEN_NONE));
}

static void
check_name(const char *name, size_t size)
{
    MUST(memchr(name, '\0', size) != NULL);
    for (; *name != '\0'; name++)
        MUST((unsigned char)*name >= 0x20 && *name != 0x7f);
}

static void
check_event(const struct event *e, const struct run_info *run)
{
    const struct token_event *t = &e->token;
    const struct layer_event *l = &e->layer;
    const struct experts_event *x = &e->experts;
    const struct round_event *r = &e->round_end;
    int32_t layers = (int32_t)run->layers;
    switch (e->type) {
    case EVENT_TOKEN:
        check_token(t->token, false, run);
        MUST(t->pos <= run->ctx && t->exit_layer >= -1 && t->exit_layer <= layers && t->source < TOKEN_SOURCES);
        MUST(t->candidate >= -1 && t->candidate < VERIFY_NODES && t->parent >= -1 && t->parent < VERIFY_NODES);
        MUST(t->accepted >= -1 && t->accepted <= 1 && t->committed >= -1 && t->committed <= 1);
        break;
    case EVENT_LAYER:
        check_token(l->token, true, run);
        MUST(l->pos <= run->ctx && l->layer >= 1 && l->layer <= (int32_t)run_info_layers(run, l->model) &&
             l->probed_by < PROBED_BY);
        for (int i = 0; i < PREDICTION_TOP; i++)
            check_token(l->top[i], true, run);
        break;
    case EVENT_EXPERTS:
        MUST(x->pos <= run->ctx && x->layer >= 1 && x->layer <= layers && x->n >= 1 && x->n <= EXPERTS_REPORTED);
        for (uint32_t i = 0; i < x->n; i++)
            MUST(x->expert[i] < run->experts);
        break;
    case EVENT_SERIES: check_name(e->series.key, sizeof e->series.key); break;
    case EVENT_CONTROL:
        check_name(e->control.knob, sizeof e->control.knob);
        MUST(strlen(e->control.old_text) + strlen(e->control.new_text) < SIZE_MAX);
        MUST(e->control.kind != RECORDED_POLICY || run_info_policy(run, e->control.new_text) != NULL);
        break;
    case EVENT_VOCAB:
        check_token(e->vocab.token, false, run);
        MUST(e->vocab.bytes[e->vocab.n_bytes] == '\0');
        break;
    case EVENT_ROUND:
        check_name(r->stop_reason, sizeof r->stop_reason);
        MUST(run_info_policy(run, r->policy) != NULL);
        MUST(r->drafted <= 65535 && r->verified <= 65535 && r->accepted <= 65535 && r->emitted <= 65535);
        MUST(r->d_max <= layers && r->exit_layer <= layers && r->w_max <= 65535);
        break;
    case EVENT_VERDICT: MUST(e->verdict.candidate >= -1 && e->verdict.candidate < VERIFY_NODES); break;
    default: MUST(false);
    }
}

static void
check_run(const struct run_info *run)
{
    MUST(run->layers >= 1 && run->vocab >= 1 && run->ctx >= 1 && run->n_policies >= 1);
    MUST(run->prompt != NULL && strlen(run->prompt) == run->prompt_len && run_info_policy(run, run->policy) != NULL);
    for (uint32_t p = 0; p < run->n_policies; p++) {
        const struct policy_info *policy = &run->policies[p];
        MUST(policy->n_knobs <= POLICY_KNOBS && policy->n_series <= POLICY_SERIES);
        check_name(policy->title, sizeof policy->title);
        for (uint32_t i = 0; i < policy->n_knobs; i++) {
            char text[64];
            const struct knob *k = &policy->knobs[i];
            check_name(k->name, sizeof k->name);
            check_name(k->help, sizeof k->help);
            MUST(knob_valid(k, NULL));
            knob_format(k, run->start_values[p * POLICY_KNOBS + i], text, sizeof text);
            check_name(text, sizeof text);
        }
        for (uint32_t i = 0; i < policy->n_series; i++)
            MUST(series_valid(&policy->series[i], NULL));
    }
}

static void
check_trace(const char *path)
{
    struct trace_reader *r;
    struct event e;
    struct err err = {0};
    if (!trace_reader_open(&r, path, false, &err)) {
        must_refuse(&err);
        return;
    }
    check_run(trace_reader_info(r));
    uint64_t first = 0, second = 0, number = 0, run = 0;
    for (; trace_reader_next(r, &e, &err); first++) {
        MUST(e.number >= number && e.run >= run);
        number = e.number;
        run = e.run;
        check_event(&e, trace_reader_info(r));
        MUST(trace_reader_time(r, &e) <= trace_reader_state(r).duration_us);
    }
    MUST(err.kind == ERR_NONE || err.text[0] != '\0');
    if (trace_reader_rewind(r, false, NULL)) /* must return the same events again */
        while (trace_reader_next(r, &e, NULL))
            second++;
    MUST(first == second);
    trace_reader_close(r);
}

/* Reads its two sequences in parallel with trace_pair.h. */
static void
check_pair(const char *path)
{
    const struct saved_choice two[2] = {{path, 0, 0}, {path, 0, 1}};
    struct trace_pair *p;
    struct event e;
    struct err err = {0};
    if (!trace_pair_open(&p, two, &err)) {
        MUST(p == NULL && err.text[0] != '\0');
        return;
    }
    const struct run_info *info = trace_pair_info(p);
    uint64_t number = 0, t_us = 0, rounds = 0;
    check_run(info);
    check_run(run_info_of(info, 1));
    while (trace_pair_next(p, &e, &err)) {
        MUST(e.number > number && e.run == 1 && e.seq < 2 && e.t_us >= t_us && e.t_us <= trace_pair_duration_us(p));
        number = e.number;
        t_us = e.t_us;
        check_event(&e, run_info_of(info, e.seq));
        rounds += e.type == EVENT_ROUND;
    }
    MUST(err.kind == ERR_NONE ? rounds == trace_pair_rounds(p) : err.text[0] != '\0');
    trace_pair_close(p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (the_base == NULL) {
        the_base = write_base();
        check_trace(the_base->path);
        check_pair(the_base->path);
    }
    if (n < 6)
        return 0;
    unsigned file = data[0] % FILES;
    if (data[1] % 2 == 0)
        put(the_base, file, (const char *)data + 2, n - 2);
    else
        put_together(the_base, file, data + 2, n - 2);
    check_trace(the_base->path);
    check_pair(the_base->path);
    put(the_base, file, the_base->text[file], strlen(the_base->text[file]));
    return 0;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    if (size <= 2 || data[1] % 2 != 0 || seed % 8 == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    return 2 + (data[0] % FILES < TABLES ? mutate_lines : mutate_json)(data + 2, size - 2, max_size - 2, seed / 8);
}
