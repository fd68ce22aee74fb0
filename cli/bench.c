/* specscope bench: policies side by side on the same prompts. Every pass runs all policies on a prompt before the next
 * prompt, so that a machine whose speed drifts drifts for all; `ar` always runs too, first, and every policy's tokens
 * are compared with its tokens. Figures are ratios within the run. */
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/bench_steps.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/generation.h"
#include "policies/policy.h"

struct lane { /* one policy */
    const char *policy;
    struct knob_setting set[OPTIONS_MOST];
    size_t n_set;
    struct tally total;
    uint64_t compared, differing; /* runs against ar's */
    token_t **first;              /* (prompts) token ids of the first pass, for the JSON */
    size_t *n_first;
};

struct bench {
    const struct options *o;
    struct engine *engine;
    char **prompts;
    size_t n_prompts;
    struct lane *lanes;
    size_t n_lanes;
};

static void
add(struct tally *to, const struct tally *t)
{
    to->rounds += t->rounds;
    to->drafted += t->drafted;
    to->verified += t->verified;
    to->accepted += t->accepted;
    to->emitted += t->emitted;
    to->rejected_rounds += t->rejected_rounds;
    to->layers += t->layers;
    to->heads += t->heads;
    to->draft_us += t->draft_us;
    to->verify_us += t->verify_us;
    to->probe_us += t->probe_us;
    to->w_sum += t->w_sum;
}

/* A setting goes to every policy that has the knob; one that nobody has is an error. */
static bool
share_settings(struct bench *b, struct err *err)
{
    const struct model_info model = {b->engine->model->desc.n_layers, b->engine->model->desc.width,
                                     b->engine->model->desc.vocab, b->engine->model->rho};
    const struct policy_args args = {.sampling = b->o->sampling};
    bool taken[OPTIONS_MOST] = {false};
    bool ok = true;
    for (size_t i = 0; i < b->n_lanes && ok; i++) {
        struct lane *lane = &b->lanes[i];
        struct policy p = {0};
        for (size_t k = 0; policy_registry[k] != NULL; k++)
            if (strcmp(policy_registry[k]->name, lane->policy) == 0)
                p.ops = policy_registry[k];
        ok = p.ops->open(&p, &model, &args, err);
        for (size_t k = 0; k < b->o->n_set && ok; k++)
            if (policy_knob_index(&p.info, b->o->set[k].name) >= 0) {
                lane->set[lane->n_set++] = b->o->set[k];
                taken[k] = true;
            }
        if (p.ops->close != NULL)
            p.ops->close(&p);
    }
    for (size_t k = 0; k < b->o->n_set && ok; k++)
        if (!taken[k])
            ok = err_set(err, ERR_USAGE, "--set %s: none of these policies has that knob; see --list-policies",
                         b->o->set[k].name);
    return ok;
}

static bool
open_lanes(struct bench *b, struct err *err)
{
    const char *every[OPTIONS_MOST];
    size_t n = 0;
    every[n++] = "ar";
    if (b->o->n_policies == 0)
        for (size_t i = 0; policy_registry[i] != NULL && n < OPTIONS_MOST; i++)
            if (strcmp(policy_registry[i]->name, "ar") != 0)
                every[n++] = policy_registry[i]->name;
    for (size_t i = 0; i < b->o->n_policies && n < OPTIONS_MOST; i++) {
        bool there = false;
        for (size_t k = 0; k < n; k++)
            there = there || strcmp(every[k], b->o->policies[i]) == 0;
        if (!there)
            every[n++] = b->o->policies[i];
    }
    b->lanes = calloc(n, sizeof *b->lanes);
    if (b->lanes == NULL)
        return err_set(err, ERR_WORK, "out of memory");
    b->n_lanes = n;
    for (size_t i = 0; i < n; i++) {
        b->lanes[i].policy = every[i];
        b->lanes[i].first = calloc(b->n_prompts, sizeof *b->lanes[i].first);
        b->lanes[i].n_first = calloc(b->n_prompts, sizeof *b->lanes[i].n_first);
        if (b->lanes[i].first == NULL || b->lanes[i].n_first == NULL)
            return err_set(err, ERR_WORK, "out of memory");
    }
    return share_settings(b, err);
}

static bool
one(struct bench *b, struct lane *lane, size_t prompt, struct err *err)
{
    struct generation g = {.engine = b->engine, .session = generation_options(b->o)};
    g.session.policy = lane->policy;
    g.session.set = lane->set;
    g.session.n_set = lane->n_set;
    g.session.prompt = b->prompts[prompt];
    g.session.prompt_len = strlen(b->prompts[prompt]);
    if (!b->o->probe_given)
        g.session.probe = PROBE_OFF; /* nobody watches */
    struct outcome out;
    if (!generate(&g, &out, err))
        return false;
    if (generation_interrupted()) { /* half a run says nothing */
        outcome_free(&out);
        return true;
    }
    add(&lane->total, &out.metrics.total);
    if (lane->first[prompt] == NULL) {
        lane->first[prompt] = out.tokens;
        lane->n_first[prompt] = out.n_tokens;
        out.tokens = NULL;
    }
    const struct lane *ar = &b->lanes[0];
    const token_t *ids = out.tokens != NULL ? out.tokens : lane->first[prompt];
    lane->compared++;
    if (out.n_tokens != ar->n_first[prompt] || memcmp(ids, ar->first[prompt], out.n_tokens * sizeof *ids) != 0)
        lane->differing++;
    outcome_free(&out);
    return true;
}

static bool
all(struct bench *b, struct err *err)
{
    size_t work = b->o->repeat * b->n_prompts * b->n_lanes, done = 0;
    bool bar = isatty(STDERR_FILENO) && !generation_interrupted();
    for (uint32_t pass = 0; pass < b->o->repeat; pass++)
        for (size_t p = 0; p < b->n_prompts; p++)
            for (size_t i = 0; i < b->n_lanes && !generation_interrupted(); i++) {
                if (bar)
                    fprintf(stderr, "\r%3zu%% pass %u/%u, prompt %zu/%zu, %-12s", done * 100 / work, (unsigned)pass + 1,
                            (unsigned)b->o->repeat, p + 1, b->n_prompts, b->lanes[i].policy);
                if (!one(b, &b->lanes[i], p, err))
                    return false;
                done++;
            }
    if (bar)
        fputs("\r\x1b[K", stderr);
    return true;
}

struct figures {
    struct measures m;
    double speedup, ratio; /* against ar in this run; measured over modelled */
};

static struct figures
figures_of(const struct bench *b, const struct lane *lane)
{
    struct metrics metrics;
    metrics_begin(&metrics, b->engine->model->desc.n_layers, b->engine->model->rho);
    struct figures f = {.m = metrics_measures(&metrics, &lane->total)};
    double ar = metrics_measures(&metrics, &b->lanes[0].total).tokens_per_s;
    f.speedup = f.m.tokens_per_s / ar;
    /* ar's own modelled speedup is 1 by definition, so this is overhead beyond autoregressive decoding's */
    f.ratio = f.speedup / f.m.modelled;
    return f;
}

static const char *
lossless(const struct bench *b, const struct lane *lane)
{
    if (b->o->sampling.temperature > 0)
        return "sampled";
    return lane->compared == 0 ? "-" : lane->differing == 0 ? "yes" : "NO";
}

static void
cell(double value, const char *format)
{
    char text[24] = "-";
    if (!isnan(value))
        snprintf(text, sizeof text, format, value);
    printf(" %10s", text);
}

static void
table(const struct bench *b)
{
    printf("%s, %s, %zu prompts x %u passes, %u tokens, %s\n", b->engine->model->name,
           b->engine->ops->describe(b->engine->backend), b->n_prompts, (unsigned)b->o->repeat, (unsigned)b->o->tokens,
           b->o->sampling.temperature > 0 ? "sampled" : "greedy");
    printf("%-12s %10s %10s %10s %10s %10s %10s %10s %10s %10s %9s\n", "policy", "tokens/s", "x ar", "tok/round",
           "acceptance", "per token", "eTPL", "discard", "modelled", "meas/mod", "lossless");
    for (size_t i = 0; i < b->n_lanes; i++) {
        struct figures f = figures_of(b, &b->lanes[i]);
        printf("%-12s", b->lanes[i].policy);
        cell(f.m.tokens_per_s, "%.1f");
        cell(f.speedup, "%.2f");
        cell(f.m.tokens_per_round, "%.2f");
        cell(f.m.acceptance_rate, "%.2f");
        cell(f.m.per_token_acceptance, "%.2f");
        cell(f.m.etpl, "%.3f");
        cell(f.m.discard_rate, "%.2f");
        cell(f.m.modelled, "%.2f");
        cell(f.ratio, "%.2f");
        printf(" %9s\n", lossless(b, &b->lanes[i]));
    }
}

static void
add_number(cJSON *to, const char *name, double value)
{
    if (isnan(value))
        cJSON_AddNullToObject(to, name);
    else
        cJSON_AddNumberToObject(to, name, value);
}

static cJSON *
json(const struct bench *b)
{
    cJSON *root = cJSON_CreateObject(), *results = cJSON_AddArrayToObject(root, "results");
    for (size_t i = 0; i < b->n_lanes; i++) {
        const struct lane *lane = &b->lanes[i];
        struct outcome out = {
            .metrics = {.layers = b->engine->model->desc.n_layers, .rho = b->engine->model->rho, .total = lane->total}};
        struct session_options so = generation_options(b->o);
        so.policy = lane->policy;
        so.set = lane->set;
        so.n_set = lane->n_set;
        cJSON *j = outcome_json(&out, b->engine, &so);
        cJSON *ids = cJSON_CreateArray(); /* of every prompt in the first pass */
        for (size_t p = 0; p < b->n_prompts; p++) {
            cJSON *list = cJSON_CreateArray();
            for (size_t t = 0; t < lane->n_first[p]; t++)
                cJSON_AddItemToArray(list, cJSON_CreateNumber(lane->first[p][t]));
            cJSON_AddItemToArray(ids, list);
        }
        cJSON_ReplaceItemInObject(j, "token_ids", ids);
        cJSON_DeleteItemFromObject(j, "end");
        struct figures f = figures_of(b, lane);
        add_number(j, "speedup", f.speedup);
        add_number(j, "measured_over_modelled", f.ratio);
        cJSON_AddStringToObject(j, "lossless", lossless(b, lane));
        cJSON_AddItemToArray(results, j);
    }
    return root;
}

static bool
policies(struct bench *b, struct err *err)
{
    if (!open_lanes(b, err) || !all(b, err))
        return false;
    if (b->o->json == NULL || strcmp(b->o->json, "-") != 0)
        table(b);
    if (b->o->json != NULL) {
        cJSON *j = json(b);
        bool ok = json_write(j, b->o->json, err);
        cJSON_Delete(j);
        if (!ok)
            return false;
    }
    for (size_t i = 0; i < b->n_lanes; i++)
        if (!(b->o->sampling.temperature > 0) && b->lanes[i].differing > 0)
            return err_set(err, ERR_WORK,
                           "%s: %llu of %llu runs differ from autoregressive decoding; that is a bug here",
                           b->lanes[i].policy, (unsigned long long)b->lanes[i].differing,
                           (unsigned long long)b->lanes[i].compared);
    return true;
}

static void
close_bench(struct bench *b)
{
    for (size_t i = 0; i < b->n_lanes; i++) {
        for (size_t p = 0; b->lanes[i].first != NULL && p < b->n_prompts; p++)
            free(b->lanes[i].first[p]);
        free(b->lanes[i].first);
        free(b->lanes[i].n_first);
    }
    free(b->lanes);
    for (size_t i = 0; i < b->n_prompts; i++)
        free(b->prompts[i]);
    free(b->prompts);
    engine_close(b->engine);
}

static bool
read_prompts(struct bench *b, struct err *err)
{
    if (b->o->prompt != NULL) {
        b->prompts = calloc(1, sizeof *b->prompts);
        if (b->prompts == NULL || (b->prompts[0] = strdup(b->o->prompt)) == NULL)
            return err_set(err, ERR_WORK, "out of memory");
        b->n_prompts = 1;
        return true;
    }
    char path[4200];
    snprintf(path, sizeof path, "%s/models/prompts.jsonl", data_dir());
    return prompts_read(b->o->prompts_file != NULL ? b->o->prompts_file : path, &b->prompts, &b->n_prompts, err);
}

int
bench_main(int argc, char **argv)
{
    struct options o;
    struct err err = {0};
    struct bench b = {.o = &o};
    generation_catch_signals();
    bool ok = options_read(&o, COMMAND_BENCH, argc, argv, &err);
    if (ok && !o.finished)
        ok = read_prompts(&b, &err) && generation_engine(&o, &b.engine, &err) &&
             (o.steps ? bench_steps(b.engine, &o, &err) : policies(&b, &err));
    close_bench(&b);
    options_free(&o);
    if (!ok)
        return command_failed(&err);
    return generation_interrupted() ? 130 : 0;
}
