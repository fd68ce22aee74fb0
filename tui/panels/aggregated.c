#include "tui/panels/aggregated.h"
#include "tui/scope/batch.h"

#include <stdio.h>
#include <stdlib.h>

void *
aggregated_open(void)
{
    return calloc(1, sizeof(struct aggregated));
}

void
aggregated_close(void *state)
{
    struct aggregated *p = state;
    if (p != NULL && p->layers > 0)
        aggregates_close(&p->own);
    free(p);
}

static uint32_t
round_at(const struct scope *s, uint32_t pos)
{
    const struct scope_column *c = scope_column(s, pos);
    return c != NULL ? c->round : 0;
}

/* The next older stretch of what is shown, from `back` on; NULL: there is none. */
static const struct stretch *
next_shown(const struct view *v, uint32_t *back)
{
    const struct stretch *s;
    while ((s = stretches_at(scope_stretches(v->scope), (*back)++)) != NULL &&
           !stretch_concerns(s, scope_focus(v->scope)))
        ;
    return s;
}

/* The stretch in which the cursor is, and the last round of it; NULL: none has begun. */
static const struct stretch *
stretch_here(const struct view *v, uint32_t *last)
{
    const uint32_t round = v->selection->follow ? UINT32_MAX : round_at(v->scope, v->selection->pos);
    uint32_t back = 0;
    const struct stretch *s = next_shown(v, &back), *older;
    *last = UINT32_MAX;
    while (s != NULL && s->first_round > round) {
        older = next_shown(v, &back);
        if (older == NULL || older->run != s->run)
            break;
        *last = s->first_round - 1;
        s = older;
    }
    return s;
}

static struct positions
in_view(const struct selection *sel)
{
    const struct positions a = sel->text, b = sel->layers;
    if (a.from >= a.to || b.from >= b.to)
        return a.from >= a.to ? b : a;
    return (struct positions){a.from < b.from ? a.from : b.from, a.to > b.to ? a.to : b.to};
}

const struct aggregates *
aggregated_now(struct aggregated *p, const struct view *v)
{
    const struct scope *s = v->scope;
    if (p->layers == 0 && aggregates_open(&p->own, scope_info(s)->layers))
        p->layers = scope_info(s)->layers;
    if (p->layers == 0)
        return NULL;
    if (v->selection->of == AGGREGATES_RUN)
        return scope_run_aggregates(s);
    if (v->selection->of == AGGREGATES_STRETCH) {
        uint32_t last;
        const struct stretch *here = stretch_here(v, &last);
        if (here == NULL || last == UINT32_MAX)
            return scope_stretch_aggregates(s);
        scope_aggregate(s, here->first_round, last, &p->own);
        return &p->own;
    }
    const struct positions seen = in_view(v->selection);
    uint32_t to = seen.to;
    while (to > seen.from && round_at(s, to - 1) == 0) /* nothing stands there */
        to--;
    const uint32_t first = round_at(s, seen.from), last = to > seen.from ? round_at(s, to - 1) : 0;
    scope_aggregate(s, first > 0 ? first : 1, last, &p->own);
    return &p->own;
}

void
aggregated_note(void *state, const struct view *v, char *out, int n)
{
    (void)state;
    uint32_t last;
    const struct stretch *here = stretch_here(v, &last);
    char letter[8];
    if (v->selection->of == AGGREGATES_STRETCH && here != NULL) {
        stretch_letter(here->number, letter);
        snprintf(out, (size_t)n, "stretch %s", letter);
    } else {
        snprintf(out, (size_t)n, "%s", v->selection->of == AGGREGATES_VIEW ? "in view" : "all rounds");
    }
}

bool
aggregated_key(void *state, const struct view *v, int key)
{
    (void)state;
    if (key != 'v')
        return false;
    v->selection->of = (enum aggregates_of)((v->selection->of + 1) % AGGREGATES_OF);
    return true;
}
