#include "engine/session/watch.h"

#include <math.h>
#include <string.h>

#include "engine/session/session_internal.h"

void
watch_for(struct watch *w, const struct until *until)
{
    w->until = *until;
    w->met = w->unsure = false;
    w->n = 0;
}

static void
hear_guess(struct watch *w, const struct event *e)
{
    const struct layer_event *g = &e->layer;
    if (g->model == MODEL_TARGET && w->n < WATCH_GUESSES)
        w->guess[w->n++] = (struct watch_guess){e->seq, g->pos, g->layer, g->token, g->confidence};
}

/* As scope_spurious() has it: sure by the threshold in force, 0.5 without one, and not what the last layer says. */
static bool
spurious(const struct watch *w, const struct lane *l, float threshold)
{
    const struct watch_guess *end = w->guess + w->n;
    const int32_t last = (int32_t)l->round.layers;
    const float limit = isnan(threshold) ? 0.5f : threshold;
    for (const struct watch_guess *f = w->guess; f < end; f++) {
        if (f->seq != l->number || f->layer != last || f->pos >= l->n_tokens)
            continue;
        for (const struct watch_guess *g = w->guess; g < end; g++)
            if (g->seq == f->seq && g->pos == f->pos && g->layer < last && g->token != f->token &&
                g->confidence >= limit)
                return true;
    }
    return false;
}

/* The bytes of the lane's last tokens, back to what the text that is looked for can begin with. */
static bool
text_ends(const struct watch *w, const struct lane *l, uint32_t emitted)
{
    char bytes[4096];
    size_t n = 0, fresh = 0;
    for (uint32_t i = 0; i < l->n_tokens && (i < emitted || n < fresh + UNTIL_TEXT_MOST); i++) {
        const struct slice t =
            tokenizer_bytes(l->session->engine->model->tokenizer, l->tokens[l->n_tokens - 1 - i], true);
        if (t.len > sizeof bytes - n)
            break;
        n += t.len;
        memcpy(bytes + sizeof bytes - n, t.data, t.len);
        fresh = i < emitted ? n : fresh;
    }
    return until_ends_text(&w->until, bytes + sizeof bytes - n, n, fresh);
}

static bool
has_come(const struct watch *w, const struct lane *l, const struct round_event *line)
{
    switch (w->until.kind) {
    case UNTIL_REJECT: return line->accepted < line->verified;
    case UNTIL_TEXT: return text_ends(w, l, line->emitted);
    case UNTIL_CONFIDENCE: return w->unsure && w->unsure_seq == l->number;
    case UNTIL_SPURIOUS: return spurious(w, l, line->threshold);
    case UNTIL_ROUND:
    case UNTIL_NOTHING: break; /* a breakpoint's */
    }
    return false;
}

void
watch_event(struct watch *w, const struct lane *l, const struct event *e)
{
    if (w->until.kind == UNTIL_NOTHING)
        return;
    if (w->until.kind == UNTIL_SPURIOUS && e->type == EVENT_LAYER)
        hear_guess(w, e);
    if (e->type == EVENT_TOKEN && e->token.source == SOURCE_DRAFT && !w->unsure) {
        w->unsure = e->token.confidence < w->until.below;
        w->unsure_seq = l->number;
    }
    if (e->type == EVENT_ROUND && !w->met && has_come(w, l, &e->round_end)) {
        w->met = true;
        w->seq = l->number;
    }
}
