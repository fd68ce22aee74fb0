#include <string.h>

#include "kernels/experts.h"
#include "tests/rigs/check_internal.h"

/* Copies n elements; returns NULL for NULL. Sets `ok` to false when there is no memory. */
static void *
copy(struct command *m, const void *from, size_t n, size_t size, bool *ok)
{
    if (from == NULL)
        return NULL;
    void *p = blocks_take(&m->blocks, n, size);
    if (p == NULL)
        *ok = false;
    else if (n > 0)
        memcpy(p, from, n * size);
    return p;
}

static void
copy_forward(struct command *m, bool *ok)
{
    struct forward_pass *w = &m->forward;
    w->rows = copy(m, w->rows, w->n, sizeof *w->rows, ok);
    w->tails = copy(m, w->tails, w->n_tails, sizeof *w->tails, ok);
    w->skip_attention = copy(m, w->skip_attention, m->depths, sizeof(bool), ok);
    w->skip_mlp = copy(m, w->skip_mlp, m->depths, sizeof(bool), ok);
    m->touched = w->touched;
    if (w->touched != NULL && (w->touched = blocks_take(&m->blocks, m->depths, sizeof *w->touched)) == NULL)
        *ok = false;
    m->routes = w->routes;
    w->routes = copy(m, w->routes, w->n * m->depths * m->used, sizeof *w->routes, ok);
    m->rule.temperature = copy(m, m->rule.temperature, m->depths, sizeof(float), ok);
    m->rule.threshold = copy(m, m->rule.threshold, m->depths, sizeof(float), ok);
    if (m->kind == UNTIL && m->probed != NULL && *ok) {
        struct exit_result *result = m->result;
        result->probed = blocks_take(&m->blocks, m->depths, sizeof *m->probed);
        *ok = result->probed != NULL;
    }
}

static void
copy_draws(struct command *m, bool *ok)
{
    struct draw_req *draws = copy(m, m->draws, m->n, sizeof *draws, ok);
    m->draws = draws;
    for (size_t i = 0; i < m->n && *ok; i++) {
        m->outs[i] = draws[i].out;
        draws[i].without = copy(m, draws[i].without, draws[i].n_without, sizeof(token_t), ok);
        draws[i].out = (token_t *)m->result + i;
    }
}

static void
copy_overlaps(struct command *m, bool *ok)
{
    struct overlap_req *overlaps = copy(m, m->overlaps, m->n, sizeof *overlaps, ok);
    m->overlaps = overlaps;
    for (size_t i = 0; i < m->n && *ok; i++) {
        m->outs[i] = overlaps[i].out;
        overlaps[i].out = (struct overlap *)m->result + i;
    }
}

static void
copy_verifies(struct command *m, bool *ok)
{
    struct verify_req *verifies = copy(m, m->verifies, m->n, sizeof *verifies, ok);
    m->verifies = verifies;
    for (size_t i = 0; i < m->n && *ok; i++) {
        m->outs[i] = verifies[i].out;
        verifies[i].nodes = copy(m, verifies[i].nodes, verifies[i].n, sizeof *verifies[i].nodes, ok);
        verifies[i].out = (struct verdict *)m->result + i;
    }
}

struct command *
command_copy(const struct command *from)
{
    struct command *m = malloc(sizeof *m);
    if (m == NULL)
        return NULL;
    *m = *from;
    m->result = blocks_take(&m->blocks, m->bytes, 1);
    m->outs = blocks_take(&m->blocks, m->n, sizeof *m->outs);
    bool ok = m->result != NULL && m->outs != NULL;
    m->slots = copy(m, m->slots, m->n, sizeof *m->slots, &ok);
    m->rows = copy(m, m->rows, m->n, sizeof *m->rows, &ok);
    m->probes = copy(m, m->probes, m->n, sizeof *m->probes, &ok);
    m->dists = copy(m, m->dists, m->n, sizeof *m->dists, &ok);
    copy_forward(m, &ok);
    if (m->kind == DRAW)
        copy_draws(m, &ok);
    if (m->kind == OVERLAP)
        copy_overlaps(m, &ok);
    if (m->kind == VERIFY)
        copy_verifies(m, &ok);
    if (ok)
        return m;
    command_free(m);
    return NULL;
}

void
command_free(struct command *m)
{
    blocks_free(&m->blocks);
    free(m);
}

void
command_deliver(const struct command *m)
{
    if (m->kind == UNTIL) {
        struct exit_result *result = m->result;
        if (m->probed != NULL)
            memcpy(m->probed, result->probed, m->depths * sizeof *m->probed);
        result->probed = m->probed;
    }
    if (m->touched != NULL)
        memcpy(m->touched, m->forward.touched, m->depths * sizeof *m->touched);
    if (m->routes != NULL)
        memcpy(m->routes, m->forward.routes, m->forward.n * m->depths * m->used * sizeof *m->routes);
    const bool each = m->kind == DRAW || m->kind == OVERLAP || m->kind == VERIFY;
    for (size_t i = 0; each && i < m->n; i++)
        memcpy(m->outs[i], (char *)m->result + m->bytes / m->n * i, m->bytes / m->n);
    if (m->out != NULL)
        memcpy(m->out, m->result, m->bytes);
}
