/* Which head looks at a layer, and the probes that the scope asks for itself. */
#include "engine/session/session_internal.h"

#define OTHER_HEAD_EVERY 4 /* rounds */
#define RECENT_ROWS      32

uint32_t
lane_head_at(const struct lane *l, uint32_t layer)
{
    return l->head == USE_TRAINED && layer > 0 && layer < l->session->model.layers ? 1 : 0;
}

/* Tells what a head said of n_rows rows at all layers, against the final layer. */
static void
tell(struct lane *l, size_t n, enum head_choice head)
{
    struct session *s = l->session;
    const struct probing *p = &s->probing;
    const uint32_t layers = s->model.layers;
    for (size_t i = 0; i < n; i++) {
        const uint32_t layer = p->probes[i].layer;
        const token_t final = p->guesses[i / layers * layers + layers - 1].token;
        const uint32_t pos = context_position(s->ctx, p->probes[i].slot) + 1;
        l->final[pos % LANE_FINALS].pos = pos; /* helpers may come to it a round later */
        l->final[pos % LANE_FINALS].token = final;
        if (layer == layers && head != l->head)
            continue; /* the last layer has one word, and the head in use had it said */
        lane_tell_guess(l, pos, layer, head == USE_TRAINED && layer < layers ? 1 : 0, &p->guesses[i], PROBED_SCOPE,
                        final);
    }
}

/* One head's guesses of all layers at the given rows. Rows that fell out of the ring are passed over. */
static bool
probe_rows(struct lane *l, const slot_t *rows, size_t n_rows, enum head_choice head)
{
    struct session *s = l->session;
    struct probing *p = &s->probing;
    for (size_t first = 0; first < n_rows; first += VERIFY_NODES) {
        size_t n = 0;
        for (size_t i = first; i < n_rows && i < first + VERIFY_NODES; i++) {
            if (!context_hidden_kept(s->ctx, rows[i]))
                continue;
            for (uint32_t at = 1; at <= s->model.layers; at++)
                p->probes[n++] = (struct context_probe){.slot = rows[i],
                                                        .layer = at,
                                                        .head = head,
                                                        .temperature = l->state.annealed ? l->state.temperature[at] : 1,
                                                        .versus_final = true};
        }
        if (!context_guess(s->ctx, p->probes, n, p->guesses))
            return false;
        tell(l, n, head);
    }
    return true;
}

/* All layers of a helper at the given rows, by its lens, against its own last layer and the target's. */
static bool
probe_helper_rows(struct lane *lane, enum helper_role role, const slot_t *rows, size_t n_rows)
{
    struct probing *p = &lane->session->probing;
    const struct helper_context *h = lane->helpers[role].of;
    const size_t most = p->n / h->layers;
    for (size_t first = 0; first < n_rows; first += most) {
        size_t n = 0;
        for (size_t i = first; i < n_rows && i < first + most; i++)
            for (uint32_t l = 1; l <= h->layers; l++)
                p->probes[n++] = (struct context_probe){
                    .slot = rows[i], .layer = l, .head = USE_LENS, .temperature = 1, .versus_final = true};
        if (!context_guess(h->ctx, p->probes, n, p->guesses))
            return false;
        for (size_t i = 0; i < n; i++) {
            const uint32_t pos = context_position(h->ctx, p->probes[i].slot) + 1, at = pos % LANE_FINALS;
            const token_t final = lane->final[at].pos == pos ? lane->final[at].token : TOKEN_NONE;
            lane_tell_helper_guess(lane, role, pos, p->probes[i].layer, &p->guesses[i], PROBED_SCOPE, final);
        }
    }
    return true;
}

/* The rows that came to the helpers' trunks since they were looked at last, which may be a round later than they came to
 * the target's: a helper reads when it is asked. The pending token's row waits for the token that it is about; those
 * that nobody wanted to be looked at are passed over. */
static bool
probe_helpers(struct lane *l)
{
    const bool all = l->session->settings.probe == PROBE_ALL;
    for (enum helper_role role = 0; role < HELPERS; role++) {
        struct helper *h = &l->helpers[role];
        struct context *ctx = h->of->ctx;
        slot_t rows[RECENT_ROWS + VERIFY_NODES];
        size_t n = 0;
        const uint32_t read = ctx != NULL ? context_length(ctx, h->seq) : 0;
        const uint32_t length = read < l->n_tokens ? read : l->n_tokens - 1;
        const uint32_t most = h->looked_at == 0 ? RECENT_ROWS : RECENT_ROWS + VERIFY_NODES;
        for (uint32_t i = length - h->looked_at > most ? length - most : h->looked_at; i < length && all; i++) {
            rows[n] = context_at(ctx, h->seq, i);
            n += context_hidden_kept(ctx, rows[n]);
        }
        if (n > 0 && !probe_helper_rows(l, role, rows, n))
            return false;
        h->looked_at = length;
    }
    return true;
}

/* The head in use at every new row. The other one is asked now and then, which is enough to compare how often they agree
 * with the last layer and costs a fraction. */
bool
lane_probe_round(struct lane *l, const slot_t *rows, size_t n)
{
    const struct session *s = l->session;
    const enum head_choice head = l->head;
    const bool other = s->engine->heads != HEAD_LENS && s->round % OTHER_HEAD_EVERY == 0;
    if (s->settings.probe == PROBE_ALL &&
        (!probe_rows(l, rows, n, head) ||
         (other && !probe_rows(l, rows, n, head == USE_LENS ? USE_TRAINED : USE_LENS))))
        return false;
    return probe_helpers(l);
}

bool
lane_probe_recent(struct lane *l)
{
    const struct session *s = l->session;
    slot_t rows[RECENT_ROWS];
    size_t n = 0;
    const uint32_t length = s->settings.probe == PROBE_ALL ? context_length(s->ctx, l->seq) : 0;
    for (uint32_t i = length > RECENT_ROWS ? length - RECENT_ROWS : 0; i < length; i++)
        rows[n++] = context_at(s->ctx, l->seq, i);
    return probe_rows(l, rows, n, l->head) && probe_helpers(l);
}
