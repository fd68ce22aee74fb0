/* specscope bench: policies side by side on the same prompts. Every pass runs all policies on a prompt before the next
 * prompt, so that a drift of the machine's speed affects all of them. `ar` always runs first, and every policy's
 * tokens are compared with its tokens. Figures are ratios within the run. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/bench/bench.h"
#include "cli/generation/generation.h"
#include "cli/options/commands.h"
#include "cli/options/files.h"
#include "cli/options/option_table.h"
#include "engine/tune/results.h"

#define PAIR 2 /* candidates between two runs of ar, if runs are paired */

struct session_options
bench_session(const struct bench *b, const struct bench_candidate *candidate)
{
    struct session_options so = generation_options(b->o);
    so.policy = candidate->policy;
    so.set = candidate->set;
    so.n_set = candidate->n_set;
    so.head = candidate->head;
    return so;
}

/* Compares a text with that of ar in the first pass, and stores it if it is the candidate's first. */
static void
take_text(const struct bench *b, struct bench_candidate *candidate, size_t i, struct outcome_text *text)
{
    const struct outcome_text *ar = &b->candidates[0].first[i];
    struct outcome_text *first = &candidate->first[i];
    const token_t *ids = text->tokens;
    if (first->tokens == NULL) {
        *first = *text;
        text->tokens = NULL;
    }
    candidate->compared++;
    if (text->n_tokens != ar->n_tokens || memcmp(ids, ar->tokens, text->n_tokens * sizeof *ids) != 0)
        candidate->differing++;
}

/* Runs one prompt, or all prompts of a batch; *sums: the sums over its rounds, 0 if it was interrupted. */
static bool
one(struct bench *b, struct bench_candidate *candidate, uint32_t pass, size_t prompt, struct tally *sums,
    struct err *err)
{
    struct generation g = {.engine = b->engine, .session = bench_session(b, candidate)};
    g.session.memory = &candidate->memory;
    g.session.prompt = b->prompts.texts[prompt];
    g.session.prompt_len = strlen(g.session.prompt);
    g.session.prompts = b->batch;
    g.session.n_prompts = b->batch != NULL ? b->prompts.n : 0;
    struct outcome out;
    bool ok = true;
    *sums = (struct tally){0};
    if (!generate(&g, &out, err))
        return false;
    if (!generation_interrupted()) { /* an incomplete run is not measured */
        const struct tally *t = &out.metrics.total;
        *sums = *t;
        tally_add(&candidate->total, t);
        candidate->pass[pass].tokens += (double)t->emitted;
        candidate->pass[pass].s += (t->draft_us + t->verify_us) * 1e-6;
        for (size_t i = 0; i < out.n_texts; i++) {
            const char *category = b->prompts.categories[b->prompts.n > 1 ? prompt + i : 0];
            ok = (pass > 0 || acceptance_add(&candidate->acceptance, category, &out.texts[i])) && ok;
            take_text(b, candidate, prompt + i, &out.texts[i]);
        }
    }
    outcome_free(&out);
    return ok || err_set(err, ERR_WORK, "out of memory");
}

/* ---- progress ---- */

struct progress {
    double start;      /* us */
    size_t done, work; /* runs */
};

/* Prints a bar, the estimated time left, and the running candidate. */
static void
show(const struct progress *p, const char *policy, const char *point)
{
    double spent = (clock_fine_us() - p->start) * 1e-6;
    char left[24] = "", line[100];
    if (p->done > 0) {
        unsigned seconds = (unsigned)(spent / (double)p->done * (double)(p->work - p->done) + 0.5);
        snprintf(left, sizeof left, "%u:%02u left", seconds / 60, seconds % 60);
    }
    snprintf(line, sizeof line, "%-11s %.10s %.20s", left, policy, point);
    generation_progress((double)p->done / (double)p->work, line);
}

/* Runs all candidates on a prompt. `run`: the index of their runs. */
static bool
all(struct bench *b, uint32_t pass, size_t prompt, size_t run, struct progress *progress, struct err *err)
{
    struct tally sums;
    double plain_us = 0;
    size_t unpaired = 1;
    bool ok = true;
    for (size_t i = 0; i < b->n_candidates && ok && !generation_interrupted(); i++) {
        show(progress, b->candidates[i].policy, b->candidates[i].point);
        ok = one(b, &b->candidates[i], pass, prompt, &sums, err);
        progress->done++;
        if (!b->paired)
            continue;
        const bool again = i > 0 && (i % PAIR == 0 || i + 1 == b->n_candidates);
        b->candidates[i].run[run] = (struct paired_run){.tally = sums};
        ok = ok && (!again || one(b, &b->candidates[0], pass, prompt, &sums, err));
        if (i > 0 && !again)
            continue;
        const double before_us = plain_us;
        plain_us = sums.emitted > 0 ? (sums.draft_us + sums.verify_us) / (double)sums.emitted : 0;
        for (; unpaired <= i; unpaired++)
            b->candidates[unpaired].run[run].plain_us = (before_us + plain_us) / 2;
    }
    return ok;
}

bool
bench_run(struct bench *b, struct err *err)
{
    const size_t runs = b->batch != NULL ? 1 : b->prompts.n; /* of a pass */
    struct progress progress = {.work = b->o->repeat * runs * b->n_candidates, .start = clock_fine_us()};
    bool ok = true;
    for (uint32_t pass = 0; pass < b->o->repeat; pass++) {
        for (size_t p = 0; p < runs && ok; p++)
            ok = all(b, pass, p, pass * runs + p, &progress, err);
        b->passes += ok && !generation_interrupted();
    }
    generation_progress(0, "");
    return ok;
}

static bool
policies(struct bench *b, struct err *err)
{
    if (!bench_candidates(b, err) || !bench_run(b, err))
        return false;
    if (!output_is_stdout(b->o->json) && !output_is_stdout(b->o->csv) && !bench_table(b, err))
        return false;
    bool ok = b->o->csv == NULL || bench_csv(b, b->o->csv, err);
    if (b->o->json != NULL) /* also if writing the other file failed */
        ok = json_write(bench_json(b), b->o->json, ok ? err : NULL) && ok;
    if (!ok)
        return false;
    for (size_t i = 0; i < b->n_candidates; i++)
        if (!(b->o->sampling.temperature > 0) && b->candidates[i].differing > 0)
            return err_set(err, ERR_WORK,
                           "%s: %llu of %llu runs differ from autoregressive decoding; that is a bug here",
                           b->candidates[i].policy, (unsigned long long)b->candidates[i].differing,
                           (unsigned long long)b->candidates[i].compared);
    return true;
}

void
bench_end(struct bench *b)
{
    bench_candidates_free(b);
    free(b->batch);
    prompts_free(&b->prompts);
    engine_close(b->engine);
}

static bool
read_prompts(struct bench *b, struct err *err)
{
    if (b->o->prompt != NULL)
        return prompts_add(&b->prompts, b->o->prompt, "") || err_set(err, ERR_WORK, "out of memory");
    return b->o->prompts_file != NULL ? prompts_read(b->o->prompts_file, &b->prompts, err)
                                      : prompts_bundled("prompts", &b->prompts, err);
}

static bool
list_texts(struct bench *b, struct err *err)
{
    b->n_texts = b->prompts.n;
    if (b->o->batch == 0)
        return true;
    if (b->prompts.n == 1)
        b->n_texts = b->o->batch;
    b->batch = generation_prompts(&b->prompts, err);
    return b->batch != NULL;
}

bool
bench_begin(struct bench *b, const struct options *o, double *load_s, struct err *err)
{
    *b = (struct bench){.o = o};
    generation_catch_signals();
    bool ok = outputs_possible(o->json, &results_json_file, o->csv, &results_csv_file, err) &&
              (o->speed || o->steps || (read_prompts(b, err) && list_texts(b, err)));
    const double start = clock_fine_us();
    ok = ok && generation_engine(o, &b->engine, err);
    if (ok)
        engine_repack(b->engine, NULL);
    *load_s = (clock_fine_us() - start) * 1e-6;
    return ok;
}

bool
bench_main(struct options *o, int *status, struct err *err)
{
    struct bench b;
    double load_s;
    bool ok = bench_begin(&b, o, &load_s, err);
    if (ok && o->speed)
        ok = bench_speed(b.engine, o, load_s, err);
    else if (ok && o->steps)
        ok = bench_steps(b.engine, o, err);
    else if (ok)
        ok = policies(&b, err);
    bench_end(&b);
    *status = generation_interrupted() ? command_interrupted() : 0;
    return ok;
}
