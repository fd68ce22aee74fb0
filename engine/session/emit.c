/* Emits the session's events with run, round and time, and checks them for the condition of :until. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "engine/session/session_internal.h"
#include "kernels/experts.h"

#define PREFILL_QUIET_US 500000
#define DEVICE_US        500000 /* between two events about the device's time */

/* ---- the condition of :until ---- */

void
watch_for(struct watch *w, const struct until *until)
{
    w->until = *until;
    w->met = w->unsure = false;
    w->n = 0;
}

static void
hear_prediction(struct watch *w, const struct event *e)
{
    const struct layer_event *g = &e->layer;
    if (g->model == MODEL_TARGET && w->n < WATCH_PREDICTIONS)
        w->prediction[w->n++] = (struct watch_prediction){e->seq, g->pos, g->layer, g->token, g->confidence};
}

static bool
spurious(const struct watch *w, const struct sequence *q, float threshold)
{
    const struct watch_prediction *end = w->prediction + w->n;
    const int32_t last = (int32_t)q->round.layers;
    for (const struct watch_prediction *f = w->prediction; f < end; f++) {
        if (f->seq != q->number || f->layer != last || f->pos >= q->n_tokens)
            continue;
        for (const struct watch_prediction *g = w->prediction; g < end; g++)
            if (g->seq == f->seq && g->pos == f->pos && g->layer < last &&
                event_spurious(g->token, g->confidence, f->token, threshold))
                return true;
    }
    return false;
}

/* Searches the text in the sequence's last tokens, from the first one with which it can begin. */
static bool
text_ends(const struct watch *w, const struct sequence *q, uint32_t emitted)
{
    char bytes[4096];
    size_t n = 0, fresh = 0;
    for (uint32_t i = 0; i < q->n_tokens && (i < emitted || n < fresh + UNTIL_TEXT_MOST); i++) {
        const struct slice t =
            tokenizer_bytes(q->session->engine->model->tokenizer, q->tokens[q->n_tokens - 1 - i], true);
        if (t.len > sizeof bytes - n)
            break;
        n += t.len;
        memcpy(bytes + sizeof bytes - n, t.data, t.len);
        fresh = i < emitted ? n : fresh;
    }
    return until_ends_text(&w->until, bytes + sizeof bytes - n, n, fresh);
}

static bool
has_come(const struct watch *w, const struct sequence *q, const struct round_event *line)
{
    switch (w->until.kind) {
    case UNTIL_REJECT: return line->accepted < line->verified;
    case UNTIL_TEXT: return text_ends(w, q, line->emitted);
    case UNTIL_CONFIDENCE: return w->unsure && w->unsure_seq == q->number;
    case UNTIL_SPURIOUS: return spurious(w, q, line->threshold);
    case UNTIL_ROUND:
    case UNTIL_NOTHING: break; /* a breakpoint has no condition */
    }
    return false;
}

static void
watch_event(struct watch *w, const struct sequence *q, const struct event *e)
{
    if (w->until.kind == UNTIL_NOTHING)
        return;
    if (w->until.kind == UNTIL_SPURIOUS && e->type == EVENT_LAYER)
        hear_prediction(w, e);
    if (e->type == EVENT_TOKEN && e->token.source == SOURCE_DRAFT && !w->unsure) {
        w->unsure = e->token.confidence < w->until.below;
        w->unsure_seq = q->number;
    }
    if (e->type == EVENT_ROUND && !w->met && has_come(w, q, &e->round_end)) {
        w->met = true;
        w->seq = q->number;
    }
}

/* ---- events ---- */

static void
append(struct session *s, struct event *e, uint32_t seq, uint32_t round)
{
    e->t_us = clock_us() - s->run.start_us;
    e->run = s->run.number;
    e->seq = seq;
    e->round = round;
    event_log_append(s->log, e);
}

void
seq_emit(struct sequence *q, struct event *e)
{
    append(q->session, e, q->number, q->session->round);
    watch_event(&q->session->watch, q, e);
}

void
session_emit_vocab(struct session *s, token_t token)
{
    if (token < 0 || (uint32_t)token >= s->model.vocab || (s->emitted_ids[token / 64] >> (token % 64) & 1u))
        return;
    s->emitted_ids[token / 64] |= (uint64_t)1 << (token % 64);
    struct slice bytes = tokenizer_bytes(s->engine->model->tokenizer, token, true);
    struct event e = {.type = EVENT_VOCAB, .vocab = {token, bytes.data, (uint32_t)bytes.len}};
    append(s, &e, 0, s->round);
}

void
seq_emit_token(struct sequence *q, uint32_t pos, token_t token, enum token_source source, const struct prediction *g)
{
    const struct session *s = q->session;
    session_emit_vocab(q->session, token);
    bool own = source != SOURCE_PROMPT; /* the target predicted it */
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
    seq_emit(q, &e);
}

/* A draft model's vocabulary may be larger than the target's, which events refer to. */
static token_t
in_vocabulary(const struct session *s, token_t token)
{
    return token != TOKEN_NONE && (uint32_t)token >= s->model.vocab ? s->unknown : token;
}

static void
emit_layer(struct sequence *sequence, const struct layer_event *about, const struct prediction *g, token_t final)
{
    struct session *s = sequence->session;
    const int32_t last = (int32_t)s->model.vocab - 1;
    struct event e = {.type = EVENT_LAYER, .layer = *about};
    struct layer_event *l = &e.layer;
    l->token = in_vocabulary(s, g->token);
    l->confidence = g->confidence;
    const bool annealed = sequence->state.annealed && about->model == MODEL_TARGET;
    l->annealed = annealed ? g->annealed : NAN;
    l->temperature = annealed ? sequence->state.temperature[about->layer] : NAN;
    l->entropy = g->entropy;
    l->kl_final = g->kl_final;
    l->rank_final = g->rank_final < last ? g->rank_final : last;
    l->final_agrees = (int8_t)(final == TOKEN_NONE ? -1 : g->token == final);
    for (int i = 0; i < PREDICTION_TOP; i++) {
        l->top[i] = in_vocabulary(s, g->top[i]);
        l->top_p[i] = g->top_p[i];
        session_emit_vocab(s, l->top[i]);
    }
    seq_emit(sequence, &e);
}

_Static_assert(EXPERTS_MOST <= RUN_EXPERTS_MOST && RUN_EXPERTS_MOST <= UINT16_MAX, "a trace of the events can be read");

void
seq_emit_experts(struct sequence *q, slot_t row)
{
    const struct context *ctx = q->session->ctx;
    for (uint32_t layer = 1; layer <= q->session->model.layers; layer++) {
        struct route routes[EXPERTS_REPORTED];
        const uint32_t n = context_experts(ctx, row, layer, routes, EXPERTS_REPORTED);
        struct event e = {.type = EVENT_EXPERTS,
                          .experts = {.pos = context_position(ctx, row) + 1, .layer = (int32_t)layer, .n = n}};
        for (uint32_t i = 0; i < n; i++) {
            e.experts.expert[i] = (uint16_t)routes[i].expert;
            e.experts.weight[i] = routes[i].weight;
        }
        if (n > 0)
            seq_emit(q, &e);
    }
}

void
seq_emit_prediction(struct sequence *q, uint32_t pos, uint32_t layer, uint32_t head, const struct prediction *g,
                    enum probed_by by, token_t final)
{
    const bool drafts = by == PROBED_POLICY && layer < q->session->model.layers;
    const struct layer_event about = {.pos = pos,
                                      .layer = (int32_t)layer,
                                      .head = (int32_t)head,
                                      .probed_by = by,
                                      .draft_vocab = drafts ? seq_draft_tokens(q) : 0,
                                      .acceptance = NAN};
    emit_layer(q, &about, g, final);
}

void
seq_emit_aux_prediction(struct sequence *q, enum aux_role role, uint32_t pos, uint32_t layer, uint32_t head,
                        const struct prediction *g, enum probed_by by, token_t final, float acceptance)
{
    const struct layer_event about = {.pos = pos,
                                      .model = LAYERS_OF(role),
                                      .layer = (int32_t)layer,
                                      .head = (int32_t)head,
                                      .probed_by = by,
                                      .draft_vocab = by == PROBED_POLICY ? seq_draft_tokens(q) : 0,
                                      .acceptance = acceptance};
    emit_layer(q, &about, g, final);
}

void
session_emit_change(struct session *s, uint32_t seq, const struct change *c)
{
    struct event e = {
        .type = EVENT_CONTROL,
        .control = {.kind = c->kind, .old_text = c->before, .new_text = c->after, .applied_round = c->applied}};
    if (c->kind == RECORDED_KNOB)
        snprintf(e.control.knob, sizeof e.control.knob, "%s", c->knob);
    append(s, &e, seq, c->asked); /* the event's round is the one in which the change was requested */
}

void
session_emit_control(struct session *s, uint32_t seq, enum recorded kind, const char *text)
{
    const struct change c = {.kind = kind, .before = "", .after = text, .asked = s->round, .applied = s->round};
    session_emit_change(s, seq, &c);
}

void
session_emit_state(struct session *s, enum recorded kind, const char *before, const char *after)
{
    const struct change c = {.kind = kind, .before = before, .after = after, .asked = s->round, .applied = s->round};
    session_emit_change(s, 0, &c);
}

void
session_emit_device(struct session *s)
{
    char text[160];
    const uint64_t now = clock_us();
    if (now - s->device_emitted_us < DEVICE_US || !context_describe_time(s->ctx, text, sizeof text))
        return;
    s->device_emitted_us = now;
    session_emit_control(s, 0, RECORDED_DEVICE, text);
}

void
session_emit_progress(struct session *s, const char *what, double done)
{
    struct event e = {.type = EVENT_PROGRESS, .progress = {.done = (float)done}};
    snprintf(e.progress.what, sizeof e.progress.what, "%s", what);
    append(s, &e, 0, s->round);
}

bool
session_emit_prefill(void *watch, double done)
{
    struct prefill_watch *w = watch;
    if (w->emitted || (done < 1 && clock_us() - w->since_us > PREFILL_QUIET_US)) {
        session_emit_progress(w->session, "prefill", done);
        w->emitted = true;
    }
    return true;
}

bool
session_has_failed(const struct session *s)
{
    return s->failure.kind != ERR_NONE;
}

bool
session_fail(struct session *s, const char *where, const char *why)
{
    if (session_has_failed(s))
        return false;
    pthread_mutex_lock(&s->failure_lock);
    err_set(&s->failure, ERR_WORK, "%s: %s", where, why);
    pthread_mutex_unlock(&s->failure_lock);
    char text[sizeof s->failure.text + 8];
    snprintf(text, sizeof text, "error: %s", s->failure.text);
    session_emit_control(s, 0, RECORDED_END, text);
    return false;
}
