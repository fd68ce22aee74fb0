#include "engine/session/rounds.h"

#include "engine/base/clock.h"
#include "engine/session/session_internal.h"

static struct session *
session_of(struct round *const *r)
{
    return r[0]->state->lane->session;
}

/* The rounds on the role's rows, which have followed. */
static void
views(struct round *const *r, uint32_t n, enum helper_role role, struct round **out)
{
    const struct session *s = session_of(r);
    const struct helper_context *h = &s->helpers[role];
    for (uint32_t i = 0; i < n; i++) {
        struct helper *mine = &r[i]->state->lane->helpers[role];
        struct round *view = out[i] = &mine->view;
        *view = r[i]->state->lane->round;
        view->exit_layer = s->engine->helpers[role].exit_layer;
        if (h->ctx == NULL)
            continue;
        view->ctx = h->ctx;
        view->seq = mine->seq;
        view->layers = view->exit_layer = h->layers;
        view->helper = mine;
    }
}

bool
rounds_model(struct round *const *r, uint32_t n, enum helper_role role, struct round **out)
{
    struct lane *behind[ROUNDS_MOST] = {NULL};
    uint32_t n_behind = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!round_full(r[i]))
            behind[n_behind++] = r[i]->state->lane;
    if (!session_helpers_follow(behind, n_behind, role))
        return false;
    views(r, n, role, out);
    return true;
}

bool
session_rounds_append(struct round *const *r, uint32_t n, enum helper_role role, struct round **out)
{
    struct lane *drafted[ROUNDS_MOST] = {NULL};
    uint32_t n_drafted = 0;
    for (uint32_t i = 0; i < n; i++)
        if (round_drafted(r[i]) > 0)
            drafted[n_drafted++] = r[i]->state->lane;
    if (!session_helpers_append(drafted, n_drafted, role))
        return false;
    views(r, n, role, out);
    return true;
}

struct round *
round_model(struct round *r, enum helper_role role)
{
    struct round *view;
    return rounds_model(&r, 1, role, &view) ? view : NULL;
}

bool
rounds_guess(struct round *const *r, const slot_t *rows, uint32_t n, uint32_t layer, struct guess *out)
{
    struct context_probe probes[ROUNDS_MOST] = {{0}};
    for (uint32_t i = 0; i < n; i++)
        probes[i] = (struct context_probe){.slot = rows[i], .layer = layer, .temperature = 1};
    if (!round_look(r[0], probes, n, out))
        return false;
    for (uint32_t i = 0; i < n; i++)
        round_tell_guess(r[i], rows[i], layer, &out[i]);
    return true;
}

bool
rounds_choose(struct round *const *r, const slot_t *rows, uint32_t n, uint32_t layer, const struct guess *g,
              token_t *token, dist_t *q)
{
    struct context *ctx = r[0]->ctx;
    struct rng_key keys[ROUNDS_MOST];
    for (uint32_t i = 0; i < n; i++) {
        token[i] = g[i].token;
        q[i] = DIST_NONE;
        keys[i] = (struct rng_key){.seed = r[i]->seed, .pos = context_position(ctx, rows[i]) + 1, .purpose = RNG_DRAFT};
    }
    if (!(r[0]->sampling.temperature > 0))
        return true;
    const uint64_t start = clock_ns();
    if (!context_dists(ctx, rows, n, layer, r[0]->state->lane->head, &r[0]->sampling, q) ||
        !context_draws(ctx, q, keys, n, token))
        return false;
    spent_heads(&session_of(r)->spent, clock_ns() - start);
    for (uint32_t i = 0; i < n; i++)
        if (token[i] == TOKEN_NONE)
            return false;
    return true;
}

bool
round_choose(struct round *r, slot_t slot, uint32_t layer, const struct guess *g, token_t *token, dist_t *q)
{
    return rounds_choose(&r, &slot, 1, layer, g, token, q);
}
