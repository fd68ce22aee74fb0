/* One run: prefill, then rounds until the end. What a round is: docs/design.md. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/session/session_internal.h"

/* ---- telling ---- */

void
session_emit(struct session *s, struct event *e)
{
    e->t_us = clock_us() - s->run_start_us;
    e->run = s->run;
    e->seq = 0;
    e->round = s->round.number;
    event_log_append(s->log, e);
}

void
session_vocab(struct session *s, token_t token)
{
    if (token < 0 || (uint32_t)token >= s->model.vocab || (s->seen[token / 64] >> (token % 64) & 1u))
        return;
    s->seen[token / 64] |= (uint64_t)1 << (token % 64);
    struct slice bytes = tokenizer_bytes(s->engine->model->tokenizer, token, true);
    struct event e = {.type = EVENT_VOCAB, .vocab = {token, bytes.data, (uint32_t)bytes.len}};
    session_emit(s, &e);
}

void
session_layer_event(struct session *s, uint32_t pos, uint32_t layer, uint32_t head, const struct guess *g,
                    enum probed_by by, token_t final)
{
    struct event e = {.type = EVENT_LAYER,
                      .layer = {.pos = pos,
                                .layer = (int32_t)layer,
                                .head = (int32_t)head,
                                .token = g->token,
                                .confidence = g->confidence,
                                .annealed = s->state.annealed ? g->annealed : NAN,
                                .entropy = g->entropy,
                                .kl_final = g->kl_final,
                                .rank_final = g->rank_final,
                                .final_agrees = (int8_t)(final == TOKEN_NONE ? -1 : g->token == final),
                                .probed_by = by}};
    for (int i = 0; i < GUESS_TOP; i++) {
        session_vocab(s, g->top[i]);
        e.layer.top[i] = g->top[i];
        e.layer.top_p[i] = g->top_p[i];
    }
    session_emit(s, &e);
}

static void
emit_token(struct session *s, uint32_t pos, token_t token, enum token_source source, const struct guess *g)
{
    session_vocab(s, token);
    bool own = source != SOURCE_PROMPT; /* the target's own word, not the user's */
    struct event e = {.type = EVENT_TOKEN,
                      .token = {.pos = pos,
                                .parent = -1,
                                .candidate = -1,
                                .token = token,
                                .source = source,
                                .exit_layer = own ? (int32_t)s->model.layers : -1,
                                .confidence = g != NULL ? g->confidence : NAN,
                                .annealed = NAN,
                                .head = own ? 0 : -1,
                                .accepted = -1,
                                .committed = 1}};
    session_emit(s, &e);
}

static void
progress(struct session *s, const char *what, double done)
{
    struct event e = {.type = EVENT_PROGRESS, .progress = {.done = (float)done}};
    snprintf(e.progress.what, sizeof e.progress.what, "%s", what);
    session_emit(s, &e);
}

void
session_end(struct session *s, const char *why)
{
    session_control_event(s, "end", "", why, s->round.number, s->round.number);
}

/* ---- probes of the scope ---- */

/* One head's guesses of all layers at the given rows, against the final layer. Rows that fell out of the ring are passed
 * over. */
static bool
probe_rows(struct session *s, const slot_t *rows, size_t n_rows, enum head_choice head)
{
    const uint32_t layers = s->model.layers;
    for (size_t first = 0; first < n_rows; first += VERIFY_NODES) {
        size_t n = 0;
        for (size_t i = first; i < n_rows && i < first + VERIFY_NODES; i++) {
            if (!context_hidden_kept(s->ctx, rows[i]))
                continue;
            for (uint32_t l = 1; l <= layers; l++)
                s->probes[n++] = (struct context_probe){.slot = rows[i],
                                                        .layer = l,
                                                        .head = head,
                                                        .temperature = s->state.annealed ? s->state.temperature[l] : 1,
                                                        .versus_final = true};
        }
        if (!context_guess(s->ctx, s->probes, n, s->guesses))
            return false;
        for (size_t i = 0; i < n; i++) {
            const uint32_t l = s->probes[i].layer;
            token_t final = s->guesses[i / layers * layers + layers - 1].token;
            if (l == layers && head != s->head)
                continue; /* the last layer has one word, and the head in use had it said */
            session_layer_event(s, context_position(s->ctx, s->probes[i].slot) + 1, l,
                                head == USE_TRAINED && l < layers ? 1 : 0, &s->guesses[i], PROBED_SCOPE, final);
        }
    }
    return true;
}

/* After a round: the head in use at every new row. The other one is asked now and then, which is enough to compare how
 * often they agree with the last layer and costs a fraction. */
#define OTHER_HEAD_EVERY 4 /* rounds */

static bool
probe_round(struct session *s, const slot_t *rows, size_t n)
{
    if (!probe_rows(s, rows, n, s->head))
        return false;
    return s->engine->heads == HEAD_LENS || s->round.number % OTHER_HEAD_EVERY != 0 ||
           probe_rows(s, rows, n, s->head == USE_LENS ? USE_TRAINED : USE_LENS);
}

#define RECENT_ROWS 32

bool
session_probe_recent(struct session *s)
{
    slot_t rows[RECENT_ROWS];
    size_t n = 0;
    const uint32_t length = s->probe == PROBE_ALL ? context_length(s->ctx, s->seq) : 0;
    for (uint32_t i = length > RECENT_ROWS ? length - RECENT_ROWS : 0; i < length; i++)
        rows[n++] = context_at(s->ctx, s->seq, i);
    return probe_rows(s, rows, n, s->head);
}

/* ---- the end of a run ---- */

static bool
is_end(const struct session *s, token_t token)
{
    return !s->ignore_eos && tokenizer_is_end(s->engine->model->tokenizer, token);
}

static uint32_t
generated(const struct session *s)
{
    return s->n_tokens - s->prompt_tokens;
}

/* NULL: go on. */
static const char *
why_over(const struct session *s)
{
    if (generated(s) > 0 && is_end(s, s->tokens[s->n_tokens - 1]))
        return "eos";
    if (generated(s) >= s->wanted)
        return "tokens";
    return s->n_tokens > s->info.ctx ? "context" : NULL; /* the pending token needs a row */
}

/* ---- a round ---- */

static void
begin_round(struct session *s)
{
    struct round *r = &s->round;
    uint32_t wanted = s->wanted == UINT32_MAX ? UINT32_MAX : s->wanted - generated(s);
    uint32_t room = s->info.ctx - s->n_tokens; /* rows left beside the pending token's */
    r->number++;
    atomic_store(&s->round_number, r->number);
    r->n_tokens = s->n_tokens;
    r->budget = wanted - 1 < room ? wanted - 1 : room;
    const struct context_options *limits = context_limits(s->ctx);
    uint32_t most = (limits->max_rows < VERIFY_NODES ? limits->max_rows : VERIFY_NODES) - 1;
    if (r->budget > most)
        r->budget = most;
    r->verdict = NULL;
    r->drafted = r->accepted = r->emitted = 0;
    r->cut = false;
    struct round_state *st = &s->state;
    st->n = 1;
    st->steps = 0;
    st->node[0] =
        (struct verify_row){.parent = -1, .token = s->tokens[s->n_tokens - 1], .slot = SLOT_NONE, .q = DIST_NONE};
    st->pos[0] = s->n_tokens - 1;
    st->annealed = st->heads_unknown = false;
    st->heads_ns = st->wait_ns = 0;
    st->aside_us = 0;
    st->aside = (struct loads){0};
    round_summary(r, "", -1, NAN, -1, -1);
}

/* Every node's row to depth L in one sweep, then the target's verdict. */
static bool
verify(struct session *s, struct verdict *verdict)
{
    const struct round_state *st = &s->state;
    slot_t rows[VERIFY_NODES];
    size_t n = 0;
    for (uint32_t i = 0; i < st->n; i++)
        if (st->node[i].slot != SLOT_NONE)
            rows[n++] = st->node[i].slot;
    return context_advance(s->ctx, rows, n, s->model.layers, NULL) &&
           context_verify(s->ctx, s->seq, st->node, st->n, &s->sampling, s->round.seed, verdict);
}

/* What the verdict emits: accepted drafts, then the target's own token; cut after an end of sequence. The rows of all
 * emitted tokens but the last are kept, behind the pending token's: KV length = tokens - 1. */
struct emission {
    token_t token[VERIFY_NODES + 1];
    uint32_t n;
    slot_t kept[VERIFY_NODES]; /* (n) */
    bool own;                  /* the last one is the target's own */
};

static struct emission
settle(const struct session *s, const struct verdict *v)
{
    const struct round_state *st = &s->state;
    struct emission m = {.kept = {st->node[0].slot}};
    bool ended = false;
    for (uint32_t i = 0; i < v->n_path && !ended; i++) {
        m.token[m.n++] = st->node[v->path[i]].token;
        if (m.n < VERIFY_NODES)
            m.kept[m.n] = st->node[v->path[i]].slot;
        ended = is_end(s, m.token[m.n - 1]);
    }
    if (!ended && v->kind != NEXT_CANDIDATE) {
        m.token[m.n++] = v->next;
        m.own = true;
    }
    return m;
}

static void
tell_verdict(struct session *s, const struct verdict *v, const struct emission *m)
{
    const struct round_state *st = &s->state;
    uint32_t committed = m->own ? m->n - 1 : m->n; /* drafts among the emitted */
    for (uint32_t node = 1; node < st->n; node++) {
        uint32_t at = 0;
        while (at < v->n_path && v->path[at] != node)
            at++;
        struct event e = {
            .type = EVENT_VERDICT,
            .verdict = {.candidate = (int32_t)node, .accepted = at < v->n_path, .committed = at < committed}};
        session_emit(s, &e);
    }
    uint32_t judge = v->n_path > 0 ? v->path[v->n_path - 1] : 0;
    if (m->own)
        emit_token(s, s->n_tokens + m->n - 1, v->next, v->kind == NEXT_BONUS ? SOURCE_BONUS : SOURCE_CORRECTION,
                   &v->judged[judge]);
    if (s->probe == PROBE_POLICY) /* the last layer's word is already there */
        for (uint32_t i = 0; i < m->n; i++) {
            uint32_t node = i == 0 ? 0 : v->path[i - 1];
            if (v->judged[node].token != TOKEN_NONE)
                session_layer_event(s, st->pos[node] + 1, s->model.layers, 0, &v->judged[node], PROBED_VERIFY,
                                    v->judged[node].token);
        }
}

static void
end_round(struct session *s, struct loads before, const uint64_t at[4])
{
    const struct round *r = &s->round;
    const struct round_state *st = &s->state;
    struct loads after = context_loads(s->ctx);
    struct event e = {.type = EVENT_ROUND,
                      .round_end = {.draft_us = (uint32_t)(at[1] - at[0]),
                                    .verify_us = (uint32_t)(at[2] - at[1]),
                                    .probe_us = (uint32_t)(at[3] - at[2]),
                                    .drafted = r->drafted,
                                    .verified = r->drafted,
                                    .accepted = r->accepted,
                                    .emitted = r->emitted,
                                    .exit_layer = st->exit_layer,
                                    .threshold = (float)st->threshold,
                                    .d_max = st->d_max,
                                    .w_max = st->w_max,
                                    .layers_loaded = (float)(after.layers - before.layers),
                                    .heads_loaded = (float)(after.heads - before.heads),
                                    .heads_us = st->heads_unknown ? NAN : (float)((double)st->heads_ns * 1e-3),
                                    .wait_us = (float)((double)st->wait_ns * 1e-3),
                                    .aside_us = (float)st->aside_us}};
    snprintf(e.round_end.policy, sizeof e.round_end.policy, "%s", s->info.policies[s->policy].name);
    snprintf(e.round_end.stop_reason, sizeof e.round_end.stop_reason, "%s", st->stop_reason);
    session_emit(s, &e);
}

/* Draft, verify, commit, tell. False: stopped, and whoever asked will find out why. */
static bool
run_round(struct session *s)
{
    struct round *r = &s->round;
    struct round_state *st = &s->state;
    struct policy *policy = &s->policies[s->policy];
    begin_round(s);
    event_log_reserve(s->log, ((size_t)s->model.layers + 2) * ((size_t)r->budget + 2) * 2, 16384, NULL);
    struct loads loads = context_loads(s->ctx);
    struct verdict verdict;
    uint64_t at[4] = {clock_us()};

    st->node[0].slot = context_append(s->ctx, s->seq, SLOT_NONE, st->node[0].token);
    if (st->node[0].slot == SLOT_NONE || !policy->ops->draft(policy, r)) {
        session_stop(s, "draft");
        return false;
    }
    at[1] = clock_us();
    at[0] += st->wait_ns / 1000; /* nobody drafted meanwhile */
    at[0] += st->aside_us;       /* learning passes, and their loads, are counted apart */
    loads.layers += st->aside.layers;
    loads.heads += st->aside.heads;
    if (!verify(s, &verdict)) {
        session_stop(s, "verification");
        return false;
    }
    at[2] = clock_us();
    struct loads worked = context_loads(s->ctx);

    struct emission m = settle(s, &verdict);
    r->verdict = &verdict;
    r->drafted = st->steps;
    r->accepted = verdict.n_path;
    r->emitted = m.n;
    r->cut =
        is_end(s, m.token[m.n - 1]) || (st->steps == r->budget && r->budget < context_limits(s->ctx)->max_rows - 1);
    if (!context_keep(s->ctx, s->seq, m.kept, m.n)) {
        session_stop(s, "commit");
        return false;
    }
    tell_verdict(s, &verdict, &m);
    memcpy(s->tokens + s->n_tokens, m.token, m.n * sizeof *m.token);
    s->n_tokens += m.n;
    if (policy->ops->observe != NULL) {
        r->n_tokens = s->n_tokens;
        uint64_t t = clock_us();
        if (!policy->ops->observe(policy, r)) {
            session_stop(s, "policy");
            return false;
        }
        uint64_t spent = clock_us() - t; /* learning is the draft's cost */
        at[1] += spent;
        at[2] += spent;
        worked = context_loads(s->ctx);
    }
    if (s->probe == PROBE_ALL && !probe_round(s, m.kept, m.n)) {
        session_stop(s, "probe");
        return false;
    }
    at[3] = clock_us();
    if (is_end(s, m.token[m.n - 1]))
        snprintf(st->stop_reason, sizeof st->stop_reason, "eos");
    context_release_dists(s->ctx);
    struct loads now = context_loads(s->ctx); /* the scope's probes are not the round's work */
    loads.layers += now.layers - worked.layers;
    loads.heads += now.heads - worked.heads;
    end_round(s, loads, at);
    return true;
}

/* ---- a run ---- */

struct prefill_watch {
    struct session *session;
    bool told;
};

/* Of prompts that take long; the end is told only to who was told of a beginning. */
static bool
prefill_progress(void *user, double done)
{
    struct prefill_watch *w = user;
    if (w->told || (done < 1 && clock_us() - w->session->run_start_us > 500000)) {
        progress(w->session, "prefill", done);
        w->told = true;
    }
    return true;
}

/* The prompt through all layers, and the first token. */
static bool
prefill(struct session *s)
{
    for (uint32_t i = 0; i < s->prompt_tokens; i++)
        emit_token(s, i, s->tokens[i], SOURCE_PROMPT, NULL);
    context_truncate(s->ctx, s->seq, 0);
    struct prefill_watch watch = {.session = s};
    if (!context_prefill(s->ctx, s->seq, s->tokens, s->prompt_tokens, prefill_progress, &watch))
        return false;
    struct verify_row last = {.parent = -1, .token = s->tokens[s->prompt_tokens - 1], .q = DIST_NONE};
    last.slot = context_at(s->ctx, s->seq, s->prompt_tokens - 1);
    struct verdict first;
    if (!context_verify(s->ctx, s->seq, &last, 1, &s->sampling, s->round.seed, &first))
        return false;
    s->tokens[s->n_tokens++] = first.next;
    emit_token(s, s->prompt_tokens, first.next, SOURCE_PREFILL, &first.judged[0]);
    if (s->probe == PROBE_POLICY)
        session_layer_event(s, s->prompt_tokens, s->model.layers, 0, &first.judged[0], PROBED_VERIFY,
                            first.judged[0].token);
    if (!session_probe_recent(s)) /* the end of the prompt, so that the picture begins full */
        return false;
    struct policy *policy = &s->policies[s->policy];
    s->round.n_tokens = s->n_tokens;
    return policy->ops->prefilled == NULL || policy->ops->prefilled(policy, &s->round);
}

void
session_continue(struct session *s)
{
    for (;;) {
        if (session_gate(s, true) == MOOD_STOP)
            return;
        const char *over = why_over(s);
        if (over != NULL) {
            session_end(s, over);
            return;
        }
        if (!run_round(s))
            return;
        session_round_done(s);
    }
}

void
session_generate(struct session *s)
{
    atomic_store(&s->failed, false);
    s->failure.kind = ERR_NONE;
    s->new_run = false;
    s->run++;
    s->run_start_us = clock_us();
    s->round = (struct round){.ctx = s->ctx,
                              .seq = s->seq,
                              .tokens = s->tokens,
                              .sampling = s->sampling,
                              .seed = s->info.seed,
                              .layers = s->model.layers,
                              .state = &s->state};
    s->state.annealed = false;
    atomic_store(&s->round_number, 0);
    s->n_tokens = s->prompt_tokens = 0;
    s->wanted = s->info.tokens > 0 ? s->info.tokens : UINT32_MAX;
    session_control_event(s, "run", "", s->run_cause, 0, 0);
    if (strcmp(s->run_cause, "prompt") == 0)
        session_control_event(s, "prompt", "", s->prompt, 0, 0);
    session_control_event(s, "probe", "", probe_mode_names[s->probe], 0, 0);
    session_choose_head(s, true, 0, 0);
    if (s->paused) /* a run begins as it was asked to: say so to who sees only this run */
        session_control_event(s, "state", "", "paused", 0, 0);

    token_t *ids;
    size_t n;
    struct err err = {0};
    if (!session_encode(s, s->prompt, s->prompt_len, &ids, &n, &err)) {
        session_fail(s, "prompt", err.text);
        return;
    }
    memcpy(s->tokens, ids, n * sizeof *ids); /* n < ctx: checked when it was posted */
    free(ids);
    s->n_tokens = s->prompt_tokens = s->round.prompt_len = (uint32_t)n;
    if (!prefill(s)) {
        session_stop(s, "prefill");
        return;
    }
    session_continue(s);
}
