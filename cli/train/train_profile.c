/* specscope train profile: measures how likely the target accepts a draft, given a companion model's distribution
 * (Speculative Verification), by plain speculative decoding of sample prompts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/plural.h"
#include "cli/generation/generation.h"
#include "cli/options/commands.h"
#include "cli/options/option_table.h"
#include "cli/train/train.h"
#include "engine/training/profile_data.h"

struct profile_job {
    const struct options *options;
    struct engine *engine; /* with draft and companion */
    struct train_prompts prompts;
    struct profile_data *data;
    struct sv_observation *seen; /* (room) */
    size_t n_seen, room;
    struct profile_rounds rounds;
    size_t n_prompts; /* that were answered */
    uint64_t start_us;
};

static bool
make_room(struct profile_job *j, size_t more, struct err *err)
{
    if (j->n_seen + more <= j->room)
        return true;
    const size_t room = 2 * (j->n_seen + more);
    struct sv_observation *seen = realloc(j->seen, room * sizeof *seen);
    if (seen == NULL)
        return err_set(err, ERR_WORK, "train profile: out of memory for %zu observations; ask for fewer --tokens",
                       room);
    j->seen = seen;
    j->room = room;
    return true;
}

/* The prompts answered together, and their observations. */
struct batch {
    struct profile_prompt prompt[READER_SEQUENCES];
    struct sv_observation *seen;
};

static bool
open_batch(struct batch *b, const struct options *o, struct err *err)
{
    const size_t n = o->answers.at_once, most = o->answers.response + o->profile.drafts;
    b->seen = malloc(n * most * sizeof *b->seen);
    for (size_t i = 0; i < n && b->seen != NULL; i++)
        b->prompt[i] = (struct profile_prompt){.seen = b->seen + i * most};
    return b->seen != NULL ||
           err_set(err, ERR_WORK, "train profile: out of memory for answers; ask for fewer --at-once");
}

static bool
is_whole(const struct profile_job *j)
{
    return j->n_prompts >= j->prompts.n || j->rounds.emitted >= j->options->train.tokens;
}

/* Adds the next prompt's observations to the others. */
static bool
keep(struct profile_job *j, const struct profile_prompt *p, struct err *err)
{
    j->rounds.rounds += p->rounds.rounds;
    j->rounds.drafted += p->rounds.drafted;
    j->rounds.accepted += p->rounds.accepted;
    j->rounds.emitted += p->rounds.emitted;
    if (!make_room(j, p->n_seen, err))
        return false;
    memcpy(j->seen + j->n_seen, p->seen, p->n_seen * sizeof *p->seen);
    j->n_seen += p->n_seen;
    j->n_prompts++;
    return true;
}

static bool
collect_batch(struct profile_job *j, struct batch *b, struct err *err)
{
    const size_t first = j->n_prompts, left = j->prompts.n - first, most = j->options->answers.at_once,
                 n = left < most ? left : most;
    for (size_t i = 0; i < n; i++) {
        b->prompt[i].index = first + i;
        b->prompt[i].tokens = j->prompts.tokens + j->prompts.begin[first + i];
        b->prompt[i].n = j->prompts.begin[first + i + 1] - j->prompts.begin[first + i];
    }
    if (!profile_data_prompts(j->data, b->prompt, n, err))
        return false;
    for (size_t i = 0; i < n && !is_whole(j); i++) /* stop at the same prompt as with one prompt at a time */
        if (!keep(j, &b->prompt[i], err))
            return false;
    return true;
}

static bool
collect(struct profile_job *j, struct err *err)
{
    struct batch b = {0};
    bool ok = open_batch(&b, j->options, err);
    while (ok && !is_whole(j) && !generation_interrupted()) {
        char text[64];
        const double n = (double)j->prompts.n;
        ok = collect_batch(j, &b, err) || err->kind == ERR_CANCELLED;
        snprintf(text, sizeof text, "%zu drafts judged, %.2f tokens a round", j->n_seen,
                 (double)j->rounds.emitted / (double)j->rounds.rounds);
        if (ok && j->n_seen > 0)
            train_bar("decoding", (double)j->n_prompts / n, j->n_prompts == j->prompts.n, text, j->start_us);
    }
    free(b.seen);
    return ok && (j->n_seen > 0 || !generation_interrupted() ||
                  err_set(err, ERR_CANCELLED, "interrupted before anything was seen"));
}

/* Prints the entropy H(A) and the conditional ones, as the paper's Table 2. */
static void
report(const struct profile_job *j, const struct sv_profile *p)
{
    const struct sv_entropy *e = &p->entropy;
    const struct profile_rounds *r = &j->rounds;
    printf("%" PRIu64 " round%s, %" PRIu64 " token%s: %.2f a round, %.1f%% of %" PRIu64 " drafts accepted\n", r->rounds,
           plural(r->rounds), r->emitted, plural(r->emitted), (double)r->emitted / (double)r->rounds,
           100 * (double)r->accepted / (double)r->drafted, r->drafted);
    printf("uncertainty, bits   H(A)   H(A|s)   H(A|a)   H(A|s,a)   information gain\n");
    printf("%" PRIu32 " x %" PRIu32 " bins      %7.3f  %7.3f  %7.3f    %7.3f             %5.1f%%\n", p->n_s, p->n_a,
           e->h, e->given_s, e->given_a, e->given_both, 100 * sv_information_gain(e));
    printf("profile of %s, %s and %s: %s, %.0f s\n", p->whose.name[0], p->whose.name[1], p->whose.name[2],
           j->options->train.out, (double)(clock_us() - j->start_us) * 1e-6);
}

static void
name_models(struct sv_whose *w, const struct engine *e)
{
    snprintf(w->name[0], sizeof w->name[0], "%s", e->model->name);
    w->hash[0] = e->model->hash;
    for (enum aux_role role = 0; role <= AUX_COMPANION; role++) {
        engine_aux_name(e, role, w->name[1 + role], sizeof w->name[1 + role]);
        w->hash[1 + role] = engine_aux_hash(e, role);
        w->layers[1 + role] = e->aux[role].exit_layer;
    }
}

static bool
run(struct profile_job *j, struct err *err)
{
    const struct options *o = j->options;
    const struct profile_data_options options = {.prompt = o->answers.prompt,
                                                 .response = o->answers.response,
                                                 .drafts = o->profile.drafts,
                                                 .sampling = o->answers.sampling,
                                                 .seed = o->seed,
                                                 .sequences = o->answers.at_once};
    const struct sampling *how = &o->answers.sampling;
    struct sv_profile profile = {.whose = {.temperature = how->temperature, .top_k = how->top_k, .top_p = how->top_p}};
    if (!train_engine(o, NEEDS(AUX_DRAFT) | NEEDS(AUX_COMPANION), &j->engine, err) ||
        !train_prompts_open(&j->prompts, o, j->engine->model->tokenizer, o->train.tokens / o->answers.response + 1,
                            err) ||
        !profile_data_open(&j->data, j->engine, &options, generation_interruption(), err) || !collect(j, err))
        return false;
    name_models(&profile.whose, j->engine);
    if (!sv_profile_make(&profile, o->profile.s_bins, o->profile.a_bins, j->seen, j->n_seen, err) ||
        !sv_profile_write(&profile, o->train.out, err))
        return false;
    report(j, &profile);
    return is_whole(j) || err_set(err, ERR_CANCELLED, "interrupted; the file has the profile of what was seen");
}

bool
train_profile_main(struct options *o, int *status, struct err *err)
{
    (void)status;
    generation_catch_signals();
    struct profile_job j = {.options = o, .start_us = clock_us()};
    const bool ok = train_can_begin(o, "profile", "what prompts are cut out of; or --prompts", &sv_profile_file, err) &&
                    run(&j, err);
    profile_data_close(j.data);
    train_prompts_close(&j.prompts);
    engine_close(j.engine);
    free(j.seen);
    return ok;
}
