

#include <math.h>

#include "tests/rigs/scope_events.h"
#include "tests/rigs/test.h"

static void
declare_judging(struct run_info *run)
{
    struct policy p = {0};
    snprintf(p.info.name, sizeof p.info.name, "judges");
    assert_true(policy_series(&p, "table", "a table", SERIES_GRID, 4, 3));
    assert_true(policy_series(&p, "rows", "s", SERIES_EDGES, 4, 1));
    assert_true(policy_series(&p, "columns", "a", SERIES_EDGES, 1, 3));
    assert_true(policy_series(&p, "cell", "cells", SERIES_MARKS, 1, 8));
    assert_true(policy_series(&p, "sure", "p", SERIES_DRAFTS, 1, 8));
    assert_true(policy_series(&p, "reject", "rejection against h", SERIES_DRAFTS, 2, 8));
    assert_true(policy_series(&p, "gain", "gain by number", SERIES_CHOICE, 2, 9));
    run->policies[3] = p.info;
    run->n_policies = 4;
}

void
fake_forms_run(struct run_info *run, uint32_t layers)
{
    fake_run(run);
    run->sequences = run->prompts = 1;
    run->layers = layers;
    run->policies = realloc(run->policies, 4 * sizeof *run->policies);
    run->start_values = realloc(run->start_values, 4 * POLICY_KNOBS * sizeof *run->start_values);
    assert_non_null(run->policies);
    assert_non_null(run->start_values);
    struct policy p = {0};
    snprintf(p.info.name, sizeof p.info.name, "forms");
    assert_true(policy_knob(&p, &(struct knob){"ratio", "ω", "share", KNOB_REAL, 0, 1, 0, 0.5, NULL}));
    assert_true(policy_series(&p, "line", "a line", SERIES_LINE, 1, 1));
    assert_true(policy_series(&p, "band", "a band", SERIES_BAND, 1, 1));
    assert_true(policy_series(&p, "bars", "bars", SERIES_BARS, 1, 1));
    assert_true(policy_series(&p, "strip", "a strip", SERIES_STRIP, 2, (int)layers));
    assert_true(policy_series(&p, "grid", "a grid", SERIES_GRID, 5, 7));
    assert_true(policy_series(&p, "mask", "sublayers", SERIES_MASK, 2, (int)layers));
    assert_true(policy_series(&p, "phase", "phase", SERIES_PHASE, 1, 1));
    run->policies[2] = p.info;
    memcpy(run->start_values + (size_t)2 * POLICY_KNOBS, p.value, sizeof p.value);
    memset(run->start_values + (size_t)3 * POLICY_KNOBS, 0, sizeof p.value);
    declare_judging(run);
}

/* ---- single events ---- */

struct event *
say_token(struct stream *s, enum token_source source, uint32_t pos, token_t token)
{
    struct event *e = stream_add(s, EVENT_TOKEN);
    e->token = (struct token_event){.pos = pos,
                                    .parent = -1,
                                    .candidate = -1,
                                    .token = token,
                                    .source = source,
                                    .exit_layer = -1,
                                    .confidence = 0.75f,
                                    .annealed = NAN,
                                    .accepted = -1,
                                    .committed = 1};
    return e;
}

struct event *
say_draft(struct stream *s, uint32_t pos, int candidate, int parent, token_t token, int exit_layer)
{
    struct event *e = say_token(s, SOURCE_DRAFT, pos, token);
    e->token.candidate = candidate;
    e->token.parent = parent;
    e->token.exit_layer = exit_layer;
    e->token.committed = -1;
    return e;
}

void
say_verdict(struct stream *s, int candidate, bool accepted, bool committed)
{
    struct event *e = stream_add(s, EVENT_VERDICT);
    e->verdict = (struct verdict_event){.candidate = candidate, .accepted = accepted, .committed = committed};
}

struct event *
say_layer(struct stream *s, uint32_t pos, int layer, token_t token, float confidence)
{
    struct event *e = stream_add(s, EVENT_LAYER);
    e->layer = (struct layer_event){.pos = pos,
                                    .layer = layer,
                                    .token = token,
                                    .confidence = confidence,
                                    .annealed = NAN,
                                    .temperature = NAN,
                                    .entropy = 1 - confidence,
                                    .kl_final = NAN,
                                    .acceptance = NAN,
                                    .rank_final = -1,
                                    .final_agrees = -1,
                                    .probed_by = PROBED_POLICY};
    for (int i = 0; i < PREDICTION_TOP; i++) {
        e->layer.top[i] = (token + i) % FAKE_VOCAB;
        e->layer.top_p[i] = i == 0 ? confidence : (1 - confidence) / (float)(i + 4);
    }
    return e;
}

struct event *
say_draft_layer(struct stream *s, uint32_t pos, int layer, token_t token, float confidence)
{
    struct event *e = say_layer(s, pos, layer, token, confidence);
    e->layer.model = MODEL_DRAFT;
    return e;
}

struct event *
say_block(struct stream *s, uint32_t pos, int head, token_t token, float confidence)
{
    struct event *e = say_layer(s, pos, FAKE_BLOCK, token, confidence);
    e->layer.model = MODEL_BLOCK;
    e->layer.head = head;
    return e;
}

void
say_vocab(struct stream *s, token_t token, const char *bytes, size_t n)
{
    struct event *e = stream_add(s, EVENT_VOCAB);
    e->vocab = (struct vocab_event){.token = token, .bytes = bytes, .n_bytes = (uint32_t)n};
}

struct event *
say_round(struct stream *s, uint32_t verified, uint32_t accepted, uint32_t emitted)
{
    struct event *e = stream_add(s, EVENT_ROUND);
    e->round_end = (struct round_event){.policy = "specbound",
                                        .draft_us = 1200,
                                        .verify_us = 800,
                                        .drafted = verified,
                                        .verified = verified,
                                        .accepted = accepted,
                                        .emitted = emitted,
                                        .exit_layer = -1,
                                        .threshold = 0.6f,
                                        .d_max = 3,
                                        .w_max = 8,
                                        .layers_loaded = 9,
                                        .heads_loaded = 4,
                                        .stop_reason = "w_max",
                                        .reject_rank = -1};
    return e;
}

/* ---- the decoder ---- */

static void
say_vocabulary(struct stream *s)
{
    static const char *const words[] = {" the",      " king",
                                        " a",        "\n",
                                        " daugh",    "ters",
                                        ",",         "\xc3",
                                        "\xa4",      " \xf0\x9f\x91",
                                        "\x91",      " \xe6\xbc\xa2\xe5\xad\x97",
                                        "\x1b[31m",  "\xe2\x80\xae",
                                        "\xff",      "",
                                        " ",         " unbelievably-long-words-occur",
                                        "e\xcc\x81", "\t",
                                        "\r\n",      "\x9b"};
    static const char letters[] = " a b c d e f g h i j k l m n o p q r s t u v w x y z";
    for (token_t t = 0; t < FAKE_VOCAB - 20; t++) { /* the last twenty remain unknown */
        const size_t n = sizeof words / sizeof words[0];
        if ((size_t)t < n)
            say_vocab(s, t, words[t], strlen(words[t]));
        else
            say_vocab(s, t, letters + (t % 26) * 2,
                      (size_t)(t % 5) + 1 < 52 - (size_t)(t % 26) * 2 ? (size_t)(t % 5) + 1 : 1);
    }
}

static token_t
any(struct decoder *d)
{
    return (token_t)stream_below(d->stream, FAKE_VOCAB);
}

static float
share(struct decoder *d)
{
    return (float)stream_below(d->stream, 1001) / 1000;
}

static void
layers_at(struct decoder *d, uint32_t pos, uint32_t to, enum probed_by by)
{
    for (uint32_t l = 1; l <= to; l++) {
        if (by == PROBED_POLICY && stream_below(d->stream, 3) == 0)
            continue;
        struct event *e = say_layer(d->stream, pos, (int)l, any(d), share(d));
        e->layer.probed_by = by;
        if (by == PROBED_SCOPE) {
            e->layer.kl_final = share(d) * 9;
            e->layer.rank_final = (int32_t)stream_below(d->stream, 40);
        }
    }
}

static void
draft_layers_at(struct decoder *d, uint32_t pos)
{
    for (int l = 1; l <= FAKE_DRAFT; l++) {
        struct event *e = say_draft_layer(d->stream, pos, l, any(d), share(d));
        e->layer.probed_by = PROBED_SCOPE;
        e->layer.kl_final = share(d) * 9;
        e->layer.final_agrees = stream_below(d->stream, 2) == 0;
    }
}

void
decode_report(struct decoder *d, const char *key, int index, float value)
{
    struct event *e = stream_add(d->stream, EVENT_SERIES);
    snprintf(e->series.key, sizeof e->series.key, "%s", key);
    e->series.index = index;
    e->series.value = value;
}

void
decode_begin(struct decoder *d, struct stream *s, const struct run_info *info, uint32_t prompt)
{
    const bool first = s->n == 0;
    d->stream = s;
    d->info = info;
    d->length = prompt + 1;
    s->run++;
    s->round = 0;
    s->t_us = 0;
    stream_control(s, "run", first ? "start" : "restart");
    if (first)
        say_vocabulary(s);
    for (uint32_t i = 0; i < prompt; i++)
        say_token(s, SOURCE_PROMPT, i, any(d));
    say_token(s, SOURCE_PREFILL, prompt, any(d));
    if (d->probe_all)
        layers_at(d, prompt, info->layers, PROBED_SCOPE);
    if (d->probe_all && d->draft_model)
        draft_layers_at(d, prompt);
}

static void
report_judging(struct decoder *d)
{
    for (int i = 0; i < 8; i++) {
        decode_report(d, "table", (int)stream_below(d->stream, 12), share(d));
        decode_report(d, "rows", i / 2, share(d));
        decode_report(d, "columns", i % 3, share(d));
        decode_report(d, "cell", i, (float)stream_below(d->stream, 14) - 1);
        decode_report(d, "sure", i, share(d));
        decode_report(d, "reject", i, share(d));
        decode_report(d, "reject", 8 + i, share(d));
        decode_report(d, "gain", i, share(d) * 3);
    }
    decode_report(d, "gain", 9 + (int)stream_below(d->stream, 9), 1);
}

static void
report_forms(struct decoder *d)
{
    decode_report(d, "tau", 0, share(d));
    decode_report(d, "alpha", (int)stream_below(d->stream, FAKE_LAYERS), share(d));
    decode_report(d, "line", 0, share(d) * 30);
    decode_report(d, "band", 0, share(d));
    decode_report(d, "band", 1, 1 + share(d));
    decode_report(d, "bars", (int)stream_below(d->stream, 12), share(d));
    decode_report(d, "phase", 0, (float)stream_below(d->stream, 3));
    decode_report(d, "phase", 1, share(d));
    for (int i = 0; i < 5; i++) {
        decode_report(d, "strip", (int)stream_below(d->stream, 2 * d->info->layers), share(d));
        decode_report(d, "grid", (int)stream_below(d->stream, 35), share(d) * 100 - 50);
        decode_report(d, "mask", (int)stream_below(d->stream, 2 * d->info->layers), (float)stream_below(d->stream, 2));
    }
    report_judging(d);
}

static void
block_at(struct decoder *d, uint32_t pos, uint32_t n)
{
    const int heads = 1 + (int)stream_below(d->stream, 2);
    for (int head = 0; head < heads; head++)
        for (uint32_t i = 0; i < n; i++)
            say_block(d->stream, pos + i, head, any(d), share(d))->layer.acceptance = head == 0 ? NAN : share(d);
}

/* Adds a round: its drafts are a chain, or a tree with siblings off the chain. A prefix is accepted, sometimes a
 * sibling at its end. Sometimes the round is cut at its last token. */
void
decode_round(struct decoder *d)
{
    struct stream *s = d->stream;
    s->round++;
    s->rounds++;
    const uint32_t w = stream_below(s, 9), at = d->length;
    int chain[8] = {0}, sibling[8] = {0}, n = 0, tail = 0;
    token_t sibling_token[8];
    if (d->block)
        block_at(d, at, w + 1);
    for (uint32_t i = 0; i < w; i++) {
        const int exit = 1 + (int)stream_below(s, d->info->layers - 1);
        layers_at(d, at + i, (uint32_t)exit, PROBED_POLICY);
        if (d->draft_model)
            say_draft_layer(s, at + i, FAKE_DRAFT, any(d), share(d));
        chain[i] = ++n;
        say_draft(s, at + i, n, tail, any(d), exit);
        sibling_token[i] = any(d);
        if (d->trees && stream_below(s, 2) == 0) {
            sibling[i] = ++n;
            say_draft(s, at + i, n, tail, sibling_token[i], exit);
        }
        tail = chain[i];
    }
    const uint32_t accepted = stream_below(s, w + 1);
    const bool by_sibling = accepted < w && sibling[accepted] > 0 && stream_below(s, 2) == 0;
    const bool cut = accepted > 0 && !by_sibling && stream_below(s, 6) == 0;
    for (uint32_t i = 0; i < w; i++) {
        const bool yes = i < accepted;
        say_verdict(s, chain[i], yes, yes && !(cut && i + 1 == accepted));
        if (sibling[i] > 0)
            say_verdict(s, sibling[i], by_sibling && i == accepted, by_sibling && i == accepted);
    }
    const uint32_t path = accepted + by_sibling;
    d->length += path - cut;
    if (!cut)
        say_token(s, path == w ? SOURCE_BONUS : SOURCE_CORRECTION, d->length++, any(d));
    for (uint32_t i = 0; i < path + !cut && !cut; i++) {
        if (d->probe_all)
            layers_at(d, at + i, d->info->layers, PROBED_SCOPE);
        else
            say_layer(s, at + i, (int)d->info->layers, any(d), share(d))->layer.probed_by = PROBED_VERIFY;
        if (d->probe_all && d->draft_model)
            draft_layers_at(d, at + i);
    }
    report_forms(d);
    struct event *e = say_round(s, w, path, path + !cut);
    e->round_end.exit_layer = 1 + (int32_t)stream_below(s, d->info->layers);
}

/* ---- scopes ---- */

void
feed(struct scope *scope, const struct stream *s, size_t from)
{
    for (size_t i = from; i < s->n; i++)
        scope_event(scope, &s->events[i]);
}
