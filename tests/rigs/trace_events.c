

#include <math.h>

#include "tests/rigs/test.h"
#include "tests/rigs/trace_events.h"

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

/* Returns any float: an ordinary one, NAN, an infinity or a subnormal. */
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
    e->seq = type == EVENT_VOCAB || type == EVENT_PROGRESS ? 0 : s->seq;
    e->type = type;
    return e;
}

void
stream_control(struct stream *s, const char *name, const char *new_text)
{
    struct event *e = stream_add(s, EVENT_CONTROL);
    control_event_set_name(&e->control, name);
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
    if (source == SOURCE_DRAFT && stream_below(s, 4) == 0) /* from another model */
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
                                  .temperature = real(s),
                                  .entropy = real(s),
                                  .kl_final = real(s),
                                  .acceptance = real(s),
                                  .rank_final = (int32_t)stream_below(s, 9) - 1,
                                  .final_agrees = (int8_t)((int)stream_below(s, 3) - 1),
                                  .probed_by = by,
                                  .draft_vocab = stream_below(s, 2) * 4100};
        if (stream_below(s, 4) == 0) { /* from another model */
            const bool block = stream_below(s, 2) == 0;
            l->model = block ? MODEL_BLOCK : MODEL_DRAFT;
            l->layer = 1 + (int32_t)stream_below(s, block ? FAKE_BLOCK : FAKE_DRAFT);
        }
        uint32_t n_top = stream_below(s, PREDICTION_TOP + 1);
        for (uint32_t k = 0; k < PREDICTION_TOP; k++) {
            l->top[k] = k < n_top ? (token_t)stream_below(s, FAKE_VOCAB) : TOKEN_NONE;
            l->top_p[k] = k < n_top ? (float)stream_below(s, 1u << 24) / (float)(1 << 24) : 0;
        }
    }
}

static void
add_experts(struct stream *s, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct event *e = stream_add(s, EVENT_EXPERTS);
        e->experts = (struct experts_event){.pos = stream_below(s, FAKE_CTX),
                                            .layer = 1 + (int32_t)stream_below(s, FAKE_LAYERS),
                                            .n = 1 + stream_below(s, EXPERTS_REPORTED)};
        for (uint32_t k = 0; k < e->experts.n; k++) {
            e->experts.expert[k] = (uint16_t)stream_below(s, FAKE_EXPERTS);
            e->experts.weight[k] = (float)stream_below(s, 1u << 24) / (float)(1 << 24);
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

struct plan {                                          /* a round of one sequence */
    uint32_t seq, drafts, verified, accepted, drafted; /* drafted: so far */
    bool cut;
};

static struct plan
plan(struct stream *s, uint32_t seq)
{
    struct plan p = {.seq = seq, .drafts = stream_below(s, 6)};
    p.verified = p.drafts - (stream_below(s, 4) == 0 ? stream_below(s, p.drafts + 1) : 0);
    p.accepted = stream_below(s, p.verified + 1);
    p.cut = stream_below(s, 5) == 0;
    return p;
}

static void
add_draft(struct stream *s, struct plan *p)
{
    const uint32_t i = p->drafted++;
    s->seq = p->seq;
    add_layers(s, stream_below(s, 3), PROBED_POLICY);
    add_token(s, SOURCE_DRAFT, (int32_t)i + 1);
    struct event *e = stream_add(s, EVENT_SERIES);
    snprintf(e->series.key, sizeof e->series.key, "%s", i % 2 == 0 ? "tau" : "alpha");
    e->series.index = (int32_t)stream_below(s, FAKE_LAYERS);
    e->series.value = real(s);
    if (stream_below(s, 8) == 0)
        stream_control(s, "tau", "0.6");
}

static void
add_verdicts(struct stream *s, const struct plan *p)
{
    s->seq = p->seq;
    for (uint32_t i = 0; i < p->verified; i++) {
        struct event *e = stream_add(s, EVENT_VERDICT);
        e->verdict.candidate = (int32_t)i + 1;
        e->verdict.accepted = i < p->accepted;
        e->verdict.committed = i < p->accepted && stream_below(s, 8) > 0;
    }
}

static void
add_outcome(struct stream *s, const struct plan *p)
{
    s->seq = p->seq;
    if (!p->cut)
        add_token(s, p->accepted < p->verified ? SOURCE_CORRECTION : SOURCE_BONUS, -1);
    add_layers(s, stream_below(s, 3), PROBED_VERIFY);
    add_layers(s, stream_below(s, 3), PROBED_SCOPE);
    add_experts(s, stream_below(s, 3));
}

static void
add_end(struct stream *s, const struct plan *p)
{
    s->seq = p->seq;
    struct event *e = stream_add(s, EVENT_ROUND);
    struct round_event *r = &e->round_end;
    *r = (struct round_event){.draft_us = bits(s),
                              .verify_us = stream_below(s, 5000),
                              .probe_us = stream_below(s, 500),
                              .drafted = p->drafts,
                              .verified = p->verified,
                              .accepted = p->accepted,
                              .emitted = p->accepted + !p->cut,
                              .exit_layer = (int32_t)stream_below(s, FAKE_LAYERS + 1) - 1,
                              .threshold = real(s),
                              .d_max = (int32_t)stream_below(s, FAKE_LAYERS + 1) - 1,
                              .w_max = (int32_t)stream_below(s, 9) - 1,
                              .layers_loaded = real(s),
                              .heads_loaded = real(s),
                              .heads_us = real(s),
                              .wait_us = real(s),
                              .learning_us = real(s),
                              .verify_experts = real(s),
                              .reject_rank = (int32_t)stream_below(s, 12) - 1};
    snprintf(r->policy, sizeof r->policy, "%s", p->drafts == 0 ? "ar" : "specbound");
    snprintf(r->stop_reason, sizeof r->stop_reason, "%s", p->drafts == 0 ? "" : "w_max");
}

void
stream_round(struct stream *s)
{
    struct plan p = plan(s, s->seq);
    s->round++;
    s->rounds++;
    while (p.drafted < p.drafts)
        add_draft(s, &p);
    add_verdicts(s, &p);
    add_outcome(s, &p);
    add_end(s, &p);
}

/* Sequences draft alternately in random order. The rest follows in the order in which they began, in one of three ways:
 * all verdicts come first; or each sequence's verdicts with their outcome; or the same in random order. */
void
stream_batch_round(struct stream *s, const uint32_t *seqs, uint32_t n)
{
    struct plan plans[STREAM_BATCH], begun[STREAM_BATCH];
    uint32_t n_begun = 0, left = 0;
    s->round++;
    s->rounds++;
    for (uint32_t i = 0; i < n; i++) {
        plans[i] = plan(s, seqs[i]);
        left += plans[i].drafts;
    }
    while (left > 0) {
        struct plan *p = &plans[stream_below(s, n)];
        if (p->drafted == p->drafts)
            continue;
        if (p->drafted == 0)
            begun[n_begun++] = *p;
        add_draft(s, p);
        left--;
    }
    for (uint32_t i = 0; i < n; i++)
        if (plans[i].drafts == 0)
            begun[n_begun++] = plans[i];
    const uint32_t way = stream_below(s, 3);
    for (uint32_t i = 0; way == 0 && i < n; i++)
        add_verdicts(s, &begun[i]);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t other = i + stream_below(s, n - i);
        if (way == 2) {
            const struct plan p = begun[other];
            begun[other] = begun[i];
            begun[i] = p;
        }
        if (way > 0)
            add_verdicts(s, &begun[i]);
        add_outcome(s, &begun[i]);
        if (way == 2)
            add_end(s, &begun[i]);
    }
    for (uint32_t i = 0; way < 2 && i < n; i++)
        add_end(s, &begun[i]);
    s->seq = 0;
}

static void
join(struct stream *s, uint32_t seq)
{
    s->seq = seq;
    stream_control(s, "joined", text(s, stream_below(s, 60), false));
    for (uint32_t i = stream_below(s, 6); i > 0; i--)
        add_token(s, SOURCE_PROMPT, -1);
    add_token(s, SOURCE_PREFILL, -1);
    s->seq = 0;
}

void
stream_batch(struct stream *s, uint32_t at_a_time, uint32_t prompts)
{
    uint32_t live[STREAM_BATCH], n = 0, next = 0;
    s->run++;
    s->t_us = 0;
    s->round = 0;
    stream_control(s, "run", s->run == 1 ? "start" : "restart");
    while (next < at_a_time && next < prompts) {
        join(s, next);
        live[n++] = next++;
    }
    while (n > 0) {
        stream_batch_round(s, live, n);
        if (stream_below(s, 4) > 0)
            continue;
        const uint32_t gone = stream_below(s, n);
        s->seq = live[gone];
        stream_control(s, "left", "eos");
        s->seq = 0;
        if (next < prompts)
            join(s, live[gone] = next++);
        else
            live[gone] = live[--n];
    }
    stream_control(s, "end", "batch");
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
