#include "cli/tune_texts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "cli/score.h"

#define PROMPTS_MOST 60   /* of a race */
#define GIVEN_MOST   4    /* settings that race */
#define SCORE_SHARE  0.25 /* of the time */

/* Moves every second conversation to the front. */
static bool
split(struct texts *t, struct err *err)
{
    struct conversation *sorted = calloc(t->n + 1, sizeof *sorted);
    if (sorted == NULL)
        return err_set(err, ERR_WORK, "out of memory for %zu texts", t->n);
    for (size_t i = 0; i < t->n; i++)
        sorted[i % 2 == 0 ? i / 2 : (t->n + 1) / 2 + i / 2] = t->at[i];
    free(t->at);
    t->at = sorted;
    return true;
}

bool
tune_texts_read(struct tune_texts *t, const struct options *o, struct prompt_list *list, struct err *err)
{
    if (!texts_read(&t->all, o->texts, err))
        return false;
    if (list->n > 0)
        return true;
    if (!split(&t->all, err))
        return false;
    t->prompts = (t->all.n + 1) / 2;
    for (size_t i = 0; i < t->prompts && list->n < PROMPTS_MOST; i++) {
        const struct conversation *c = &t->all.at[i];
        if (c->exchange[0].prompt != NULL && !prompts_add(list, c->exchange[0].prompt, c->category))
            return err_set(err, ERR_WORK, "out of memory for prompts");
    }
    return true;
}

/* Do two settings have the same forecast? Then their rounds are equal, as those of two policies may be. */
static bool
is_taken(const struct tune_texts *t, double forecast)
{
    uint32_t i = 0;
    while (i < t->n && fabs(t->given[i].forecast / forecast - 1) > 1e-4)
        i++;
    return i < t->n;
}

/* Takes the fastest settings by forecast: those whose interval reaches that of the first one. */
static void
take(struct tune_texts *t, const struct score_report *r, const struct drafts *drafts)
{
    uint32_t order[SCORE_ROWS];
    const uint32_t n = score_order(r, order);
    for (uint32_t i = 0; i < n && t->n < GIVEN_MOST; i++) {
        const struct score_row *row = &r->row[order[i]];
        const struct comparison first = r->row[order[0]].all.speedup, c = row->all.speedup;
        if (row->kind == SCORE_NOT || (t->n > 0 && !(c.high >= first.low)))
            break;
        if (is_taken(t, c.value))
            continue;
        struct candidate *to = &t->given[t->n++];
        *to = (struct candidate){.preset = row->preset, .forecast = c.value, .ceiling = NAN};
        for (uint32_t d = 0; d < drafts->n; d++)
            if (strcmp(drafts->draft[d].name, row->drafter) == 0)
                to->draft = d + 1;
    }
}

bool
tune_texts_score(struct tune_texts *t, struct options *o, struct engine *e, const struct drafts *drafts,
                 struct err *err)
{
    struct texts rest = t->all;
    struct score_report *report = NULL;
    rest.at += t->prompts;
    rest.n -= t->prompts;
    if (!score_texts(o, e, drafts, &rest, o->time_s * SCORE_SHARE, &report, err))
        return false;
    take(t, report, drafts);
    if (o->time_s > 0)
        o->time_s = fmax(o->time_s - report->seconds, 1);
    fprintf(
        stderr, "specscope: %u conversation%s scored in %.0f s; the race has the %u fastest setting%s by forecast\n",
        (unsigned)report->conversations, plural(report->conversations), report->seconds, (unsigned)t->n, plural(t->n));
    free(report);
    return t->n > 0 ||
           err_set(err, ERR_USAGE, "%s: no setting has a forecast on these texts; leave out --texts", o->texts);
}

void
tune_texts_free(struct tune_texts *t)
{
    texts_free(&t->all);
}
