#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rigs/trace_events.h"

static const char *const modes[] = {"dynamic", "tpl", "length, \"quoted\""};

void
fake_run(struct run_info *run)
{
    memset(run, 0, sizeof *run);
    run->format = TRACE_FORMAT;
    snprintf(run->version, sizeof run->version, "0.1.0");
    snprintf(run->model_path, sizeof run->model_path, "/some where/back\\slash,\"quo\x1bte\xff.gguf");
    snprintf(run->model_name, sizeof run->model_name, "fables-13m");
    snprintf(run->arch, sizeof run->arch, "llama");
    snprintf(run->types, sizeof run->types, "Q8_0, F32");
    run->layers = FAKE_LAYERS;
    run->width = 64;
    run->heads = 4;
    run->kv_heads = 2;
    run->ffn = 128;
    run->vocab = FAKE_VOCAB;
    run->ctx = FAKE_CTX;
    run->parameters = 9007199254740993u; /* 2^53 + 1: no double holds it */
    run->model_hash = 0xfedcba9876543210u;
    run->rho = 1.0 / 3;
    snprintf(run->backend, sizeof run->backend, "cpu");
    snprintf(run->isa, sizeof run->isa, "avx2 x2");
    snprintf(run->host, sizeof run->host, "bench-1");
    run->threads = 2;
    run->exact = true;
    run->prompt = strdup("Once\n\"upon\", a \\time\x1b[31m \xe2\x80\xae\xc3\xa4 \xff\x80");
    assert_non_null(run->prompt);
    run->prompt_len = strlen(run->prompt);
    run->sampling = (struct sampling){.temperature = 0.7f, .top_k = 40, .top_p = 0.95f};
    run->seed = UINT64_MAX;
    run->tokens = 128;
    run->sequences = 3;
    run->prompts = 17;
    run->helpers[HELPER_DRAFT] =
        (struct helper_info){.name = "small \"draft\"", .path = "a\\b\n", .hash = 77, .layers = FAKE_DRAFT};
    run->profile = (struct trained_info){.path = "a\\profile \"of\" three\xff", .hash = UINT64_MAX};
    snprintf(run->policy, sizeof run->policy, "specbound");
    snprintf(run->started, sizeof run->started, "2024-02-29T12:34:56Z");

    run->n_policies = 2;
    run->policies = calloc(2, sizeof *run->policies);
    run->start_values = calloc(2 * POLICY_KNOBS, sizeof *run->start_values);
    assert_non_null(run->policies);
    assert_non_null(run->start_values);
    struct policy p = {0};
    snprintf(p.info.name, sizeof p.info.name, "ar");
    run->policies[0] = p.info;
    p.info.needs = NEEDS(HELPER_DRAFT) | NEEDS_PROFILE;
    snprintf(p.info.name, sizeof p.info.name, "specbound");
    snprintf(p.info.title, sizeof p.info.title, "SpecBound");
    snprintf(p.info.paper, sizeof p.info.paper, "a paper, \"quoted\"");
    assert_true(policy_knob(&p, &(struct knob){"tau", "τ", "confidence threshold", KNOB_REAL, 0, 1, 0.05, 0.55, NULL}));
    assert_true(policy_knob(&p, &(struct knob){"d_max", "", "depth", KNOB_INTEGER, 1, 5, 1, 3, NULL}));
    assert_true(policy_knob(&p, &(struct knob){"mode", "", "", KNOB_CHOICE, 0, 2, 1, 1, modes}));
    assert_true(policy_series(&p, "tau", "threshold", SERIES_LINE, 1, 1));
    assert_true(policy_series(&p, "alpha", "acceptance", SERIES_BARS, 1, FAKE_LAYERS));
    run->policies[1] = p.info;
    run->start_values[POLICY_KNOBS] = 0.1 + 0.2; /* not 0.3 */
    run->start_values[POLICY_KNOBS + 1] = 4;
    run->start_values[POLICY_KNOBS + 2] = 2;
}

/* ---- streams ---- */

void
stream_begin(struct stream *s, uint64_t seed)
{
    memset(s, 0, sizeof *s);
    s->random = seed * 2 + 1;
}

void
stream_free(struct stream *s)
{
    for (size_t i = 0; i < s->n_texts; i++)
        free(s->texts[i]);
    free(s->texts);
    free(s->events);
    memset(s, 0, sizeof *s);
}

static uint32_t
bits(struct stream *s) /* Knuth's multiplier; the high half is random enough */
{
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(s->random >> 32);
}

uint32_t
stream_below(struct stream *s, uint32_t n)
{
    return (uint32_t)((uint64_t)bits(s) * n >> 32);
}

/* Any float: ordinary ones, none, infinities, subnormals. */
static float
real(struct stream *s)
{
    uint32_t kind = stream_below(s, 8), b = bits(s);
    float f;
    memcpy(&f, &b, sizeof f);
    if (kind == 0)
        return (float)NAN;
    if (kind == 1)
        return isnan(f) ? INFINITY : f;
    return (float)stream_below(s, 1u << 24) / (float)(1 << 24);
}

static char *
text(struct stream *s, size_t n, bool nul)
{
    if (s->n_texts == s->max_texts) {
        s->max_texts = 2 * s->max_texts + 64;
        s->texts = realloc(s->texts, s->max_texts * sizeof *s->texts);
        assert_non_null(s->texts);
    }
    char *t = malloc(n + 1);
    assert_non_null(t);
    for (size_t i = 0; i < n; i++) {
        t[i] = (char)(stream_below(s, 4) == 0 ? bits(s) : 32 + stream_below(s, 95));
        if (t[i] == '\0' && !nul)
            t[i] = '\\';
    }
    t[n] = '\0';
    s->texts[s->n_texts++] = t;
    return t;
}

struct event *
stream_add(struct stream *s, enum event_type type)
{
    if (s->n == s->max) {
        s->max = 2 * s->max + 256;
        s->events = realloc(s->events, s->max * sizeof *s->events);
        assert_non_null(s->events);
    }
    struct event *e = &s->events[s->n++];
    memset(e, 0, sizeof *e);
    s->t_us += stream_below(s, 300);
    e->number = s->n;
    e->t_us = s->t_us;
    e->run = s->run;
    e->round = s->round;
    e->type = type;
    return e;
}

void
stream_control(struct stream *s, const char *name, const char *new_text)
{
    struct event *e = stream_add(s, EVENT_CONTROL);
    snprintf(e->control.name, sizeof e->control.name, "%s", name);
    e->control.old_text = "";
    e->control.new_text = new_text;
    e->control.applied_round = s->round + 1;
}

static token_t
token(struct stream *s)
{
    token_t t = (token_t)stream_below(s, FAKE_VOCAB);
    if (stream_below(s, 2) == 0) {
        struct event *e = stream_add(s, EVENT_VOCAB);
        e->vocab.token = t;
        e->vocab.n_bytes = stream_below(s, 12);
        e->vocab.bytes = text(s, e->vocab.n_bytes, true);
    }
    return t;
}

static void
add_token(struct stream *s, enum token_source source, int32_t candidate)
{
    token_t t = token(s);
    struct event *e = stream_add(s, EVENT_TOKEN);
    e->token =
        (struct token_event){.pos = stream_below(s, FAKE_CTX),
                             .parent = candidate > 0 ? (int32_t)stream_below(s, (uint32_t)candidate) : -1,
                             .candidate = candidate,
                             .token = t,
                             .source = source,
                             .exit_layer = source == SOURCE_PROMPT ? -1 : 1 + (int32_t)stream_below(s, FAKE_LAYERS),
                             .confidence = real(s),
                             .annealed = real(s),
                             .head = (int32_t)stream_below(s, 2),
                             .accepted = -1,
                             .committed = -1};
    if (source == SOURCE_DRAFT && stream_below(s, 4) == 0) /* another model's */
        e->token.exit_layer = e->token.head = -1;
}

static void
add_layers(struct stream *s, uint32_t n, enum probed_by by)
{
    for (uint32_t i = 0; i < n; i++) {
        token_t t = token(s);
        struct event *e = stream_add(s, EVENT_LAYER);
        struct layer_event *l = &e->layer;
        *l = (struct layer_event){.pos = stream_below(s, FAKE_CTX),
                                  .layer = 1 + (int32_t)stream_below(s, FAKE_LAYERS),
                                  .head = (int32_t)stream_below(s, 2),
                                  .token = t,
                                  .confidence = real(s),
                                  .annealed = real(s),
                                  .entropy = real(s),
                                  .kl_final = real(s),
                                  .rank_final = (int32_t)stream_below(s, 9) - 1,
                                  .final_agrees = (int8_t)((int)stream_below(s, 3) - 1),
                                  .probed_by = by};
        if (stream_below(s, 4) == 0) { /* another model's */
            l->model = MODEL_DRAFT;
            l->layer = 1 + (int32_t)stream_below(s, FAKE_DRAFT);
        }
        uint32_t n_top = stream_below(s, GUESS_TOP + 1);
        for (uint32_t k = 0; k < GUESS_TOP; k++) {
            l->top[k] = k < n_top ? (token_t)stream_below(s, FAKE_VOCAB) : TOKEN_NONE;
            l->top_p[k] = k < n_top ? (float)stream_below(s, 1u << 24) / (float)(1 << 24) : 0;
        }
    }
}

void
stream_start_run(struct stream *s)
{
    s->run++;
    s->t_us = 0;
    s->round = 0;
    stream_control(s, "run", s->run == 1 ? "start" : "restart");
    stream_control(s, "prompt", text(s, stream_below(s, 200), false));
    for (uint32_t i = stream_below(s, 6); i > 0; i--)
        add_token(s, SOURCE_PROMPT, -1);
    struct event *e = stream_add(s, EVENT_PROGRESS);
    snprintf(e->progress.what, sizeof e->progress.what, "prefill");
    add_layers(s, stream_below(s, 4), PROBED_SCOPE);
    add_token(s, SOURCE_PREFILL, -1);
}

void
stream_round(struct stream *s)
{
    s->round++;
    s->rounds++;
    uint32_t drafts = stream_below(s, 6), unverified = stream_below(s, 4) == 0 ? stream_below(s, drafts + 1) : 0;
    for (uint32_t i = 0; i < drafts; i++) {
        add_layers(s, stream_below(s, 3), PROBED_POLICY);
        add_token(s, SOURCE_DRAFT, (int32_t)i + 1);
        struct event *e = stream_add(s, EVENT_SERIES);
        snprintf(e->series.key, sizeof e->series.key, "%s", i % 2 == 0 ? "tau" : "alpha");
        e->series.index = (int32_t)stream_below(s, FAKE_LAYERS);
        e->series.value = real(s);
        if (stream_below(s, 8) == 0)
            stream_control(s, "tau", "0.6");
    }
    uint32_t verified = drafts - unverified, accepted = stream_below(s, verified + 1);
    for (uint32_t i = 0; i < verified; i++) {
        struct event *e = stream_add(s, EVENT_VERDICT);
        e->verdict.candidate = (int32_t)i + 1;
        e->verdict.accepted = i < accepted;
        e->verdict.committed = i < accepted && stream_below(s, 8) > 0;
    }
    bool cut = stream_below(s, 5) == 0;
    if (!cut)
        add_token(s, accepted < verified ? SOURCE_CORRECTION : SOURCE_BONUS, -1);
    add_layers(s, stream_below(s, 3), PROBED_VERIFY);
    add_layers(s, stream_below(s, 3), PROBED_SCOPE);
    struct event *e = stream_add(s, EVENT_ROUND);
    struct round_event *r = &e->round_end;
    *r = (struct round_event){.draft_us = bits(s),
                              .verify_us = stream_below(s, 5000),
                              .probe_us = stream_below(s, 500),
                              .drafted = drafts,
                              .verified = verified,
                              .accepted = accepted,
                              .emitted = accepted + !cut,
                              .exit_layer = (int32_t)stream_below(s, FAKE_LAYERS + 1) - 1,
                              .threshold = real(s),
                              .d_max = (int32_t)stream_below(s, FAKE_LAYERS + 1) - 1,
                              .w_max = (int32_t)stream_below(s, 9) - 1,
                              .layers_loaded = real(s),
                              .heads_loaded = real(s),
                              .heads_us = real(s),
                              .wait_us = real(s),
                              .aside_us = real(s)};
    snprintf(r->policy, sizeof r->policy, "%s", drafts == 0 ? "ar" : "specbound");
    snprintf(r->stop_reason, sizeof r->stop_reason, "%s", drafts == 0 ? "" : "w_max");
}

void
stream_fill(struct stream *s)
{
    for (uint32_t runs = 2 + stream_below(s, 2); runs > 0; runs--) {
        stream_start_run(s);
        for (uint32_t i = stream_below(s, 12); i > 0; i--)
            stream_round(s);
        stream_control(s, "end", "tokens");
    }
    stream_control(s, "baseline", "398.5");
    stream_control(s, "lossless", "yes");
}

bool
stream_is_traced(const struct event *e)
{
    return e->type != EVENT_PROGRESS;
}
