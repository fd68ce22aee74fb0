#include "tui/figures/course.h"

#include <math.h>
#include <stdlib.h>

bool
course_open(struct course *c, const struct record *r, struct err *err)
{
    *c = (struct course){.r = r, .n = r->n_rounds + 1};
    c->seconds = calloc(2 * c->n, sizeof *c->seconds);
    if (c->seconds == NULL)
        return err_set(err, ERR_WORK, "out of memory");
    c->tokens = c->seconds + c->n;
    for (size_t i = 0; i < r->n_rounds; i++) {
        const struct round_event *e = &r->rounds[i].end;
        c->seconds[i + 1] = c->seconds[i] + ((double)e->draft_us + (double)e->verify_us) * 1e-6;
        c->tokens[i + 1] = c->tokens[i] + e->emitted;
    }
    return true;
}

void
course_close(struct course *c)
{
    free(c->seconds);
    *c = (struct course){0};
}

double
course_when(const struct course *c, double tokens)
{
    size_t i = 1;
    while (i + 1 < c->n && c->tokens[i] < tokens)
        i++;
    const double n = c->tokens[i] - c->tokens[i - 1];
    return n > 0 ? c->seconds[i - 1] + (c->seconds[i] - c->seconds[i - 1]) * (tokens - c->tokens[i - 1]) / n
                 : c->seconds[i];
}

size_t
texts_common(const struct record *a, const struct record *b)
{
    size_t n = 0;
    if (a->prompt != b->prompt || a->info->model_hash != b->info->model_hash)
        return TEXTS_APART;
    while (n < a->n_tokens && n < b->n_tokens && a->tokens[n].token == b->tokens[n].token &&
           a->tokens[n].pos == b->tokens[n].pos)
        n++;
    return n;
}

bool
texts_part(const struct record *a, const struct record *b, size_t common)
{
    return common != TEXTS_APART && common < a->n_tokens && common < b->n_tokens;
}
