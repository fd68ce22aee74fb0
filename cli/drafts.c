#include "cli/drafts.h"

#include <inttypes.h>
#include <string.h>

#include "base/plural.h"
#include "base/utf8.h"
#include "cli/generation/generation.h"
#include "engine/model/memory.h"
#include "engine/model/model_locations.h"
#include "engine/model/model_open.h"
#include "engine/model/tokenizer/tokenizer.h"

struct search {
    struct drafts *drafts;
    struct engine *engine;
    uint64_t reserved; /* bytes of the draft models' weights */
};

static bool
is_repeated(const struct search *s, uint64_t hash)
{
    const struct model *own = s->engine->aux[AUX_DRAFT].model;
    bool repeated = own != NULL && own->hash == hash;
    for (uint32_t i = 0; i < s->drafts->n && !repeated; i++)
        repeated = s->drafts->draft[i].reserve.model.model->hash == hash;
    return repeated;
}

/* Checks what can be checked without reading weights. */
static enum draft_skipped
check(const struct search *s, const struct model *m)
{
    const struct model *target = s->engine->model;
    struct err err;
    if (m->desc.drafter != NULL)
        return DRAFT_FEATURES;
    if (!vocabularies_match(target->tokenizer, target->name, m->tokenizer, m->name, &err))
        return DRAFT_VOCABULARY;
    if (memory_need(m, 0, s->engine->exact, false) >= memory_need(target, 0, s->engine->exact, false))
        return DRAFT_TOO_LARGE;
    if (is_repeated(s, m->hash))
        return DRAFT_REPEATED;
    return s->drafts->n < DRAFTS_MOST ? DRAFT_REASONS : DRAFT_TOO_MANY;
}

static bool
add(void *user, const char *name, const char *path)
{
    struct search *s = user;
    const struct model_options glance = {.glance = true, .target = s->engine->model};
    struct draft *d = &s->drafts->draft[s->drafts->n];
    struct model *m;
    struct err err;
    enum draft_skipped why = DRAFT_UNREADABLE;
    if (model_open_with(&m, path, &glance, &err)) {
        why = check(s, m);
        model_close(m);
    }
    if (why == DRAFT_REASONS && (size_t)snprintf(d->name, sizeof d->name, "%s", name) < sizeof d->name &&
        engine_draft_open(s->engine, path, s->reserved, &d->reserve, &err)) {
        const size_t n = strlen(d->name), cut = n < sizeof d->label ? 0 : n - sizeof d->label + 1;
        printable_line(d->label, sizeof d->label, d->name + cut, n - cut);
        s->reserved += memory_need(d->reserve.model.model, 0, s->engine->exact, s->engine->asked.quantize);
        s->drafts->n++;
    } else {
        s->drafts->skipped[why == DRAFT_REASONS ? DRAFT_NO_ROOM : why]++;
    }
    return !generation_interrupted();
}

/* Prints how many models are draft models, and how many are not, for which reasons. */
static void
print_counts(const struct drafts *d, const char *place)
{
    static const char *const reasons[DRAFT_REASONS] = {"not readable",
                                                       "that only --draft takes (EAGLE-3 heads, block drafters)",
                                                       "with another vocabulary",
                                                       "not smaller than the target",
                                                       "listed twice or given by --draft",
                                                       "after the first 16",
                                                       "without room in memory"};
    const char *before = "; skipped: ";
    fprintf(stderr, "%s: %" PRIu32 " draft model%s", place, d->n, plural(d->n));
    for (int i = 0; i < DRAFT_REASONS; i++) {
        if (d->skipped[i] == 0)
            continue;
        fprintf(stderr, "%s%" PRIu32 " %s", before, d->skipped[i], reasons[i]);
        before = ", ";
    }
    fputc('\n', stderr);
}

bool
drafts_open(struct drafts *d, struct engine *e, const char *place, struct err *err)
{
    struct search s = {.drafts = d, .engine = e};
    if (place == NULL)
        return true;
    if (!model_place_list(place, add, &s, err))
        return false;
    for (uint32_t i = 0; i < d->n; i++) {
        engine_draft_swap(e, &d->draft[i].reserve);
        engine_repack(e, generation_interruption());
        engine_draft_swap(e, &d->draft[i].reserve);
    }
    print_counts(d, place);
    return true;
}

void
drafts_close(struct drafts *d, struct engine *e)
{
    while (d->n > 0)
        engine_draft_close(e, &d->draft[--d->n].reserve);
}
