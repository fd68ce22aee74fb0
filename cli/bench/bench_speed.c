/* Implements bench --steps and bench --speed. */
#include "cli/bench/bench.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/generation/generation.h"
#include "engine/context/context.h"

/* ---- --steps ---- */

#define REPEATS 41 /* odd, for a median */
#define DEPTH   64 /* trunk rows below the measured ones, unless -c gives the length of the context */
#define ROOM    64 /* room for the measured rows, more than needed */

static const uint32_t row_counts[] = {1, 2, 4, 8, 16, 32};
#define N_COUNTS (sizeof row_counts / sizeof *row_counts)
#define TREE     8

struct steps {
    /* a forward pass of n rows through all layers, and the head's verdict on them */
    double verify[N_COUNTS][REPEATS];
    double tree[REPEATS];      /* the same of a binary tree of TREE rows; the others are chains */
    double forward[REPEATS];   /* one row through all layers, no head */
    double probe[REPEATS];     /* the head on one row */
    double probe_all[REPEATS]; /* all layers of 8 rows in one head call, against the final layer */
};

static bool
verify_rows(struct context *ctx, seq_t seq, uint32_t n, bool tree, uint32_t layers, double *forward_us, double *all_us)
{
    struct verify_row rows[32];
    slot_t slots[32];
    const struct sampling greedy = {.top_p = 1};
    struct verdict verdict;
    for (uint32_t i = 0; i < n; i++) {
        const int32_t parent = i == 0 ? -1 : tree ? (int32_t)(i - 1) / 2 : (int32_t)i - 1;
        slots[i] = context_append(ctx, seq, i == 0 ? SLOT_NONE : slots[parent], (token_t)(5 + i));
        if (slots[i] == SLOT_NONE)
            return false;
        rows[i] = (struct verify_row){.parent = parent, .token = (token_t)(5 + i), .slot = slots[i], .q = DIST_NONE};
    }
    double start = clock_fine_us();
    if (!context_advance(ctx, slots, n, layers, NULL))
        return false;
    *forward_us = clock_fine_us() - start;
    if (!context_verify(ctx, seq, rows, n, &greedy, 1, &verdict))
        return false;
    *all_us = clock_fine_us() - start;
    context_discard(ctx, slots[0]);
    return true;
}

static bool
probe_rows(struct context *ctx, seq_t seq, uint32_t rows, bool all_layers, uint32_t layers,
           struct context_probe *probes, struct prediction *predictions, double *us)
{
    const uint32_t depth = context_length(ctx, seq);
    size_t n = 0;
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t l = all_layers ? 1 : layers / 2; l <= (all_layers ? layers : layers / 2); l++)
            probes[n++] = (struct context_probe){
                .slot = context_at(ctx, seq, depth - 1 - r), .layer = l, .temperature = 1, .versus_final = all_layers};
    double start = clock_fine_us();
    bool ok = context_predict(ctx, probes, n, predictions);
    *us = clock_fine_us() - start;
    return ok;
}

static bool
measure_steps(struct context *ctx, uint32_t layers, uint32_t depth, struct steps *s)
{
    token_t *prompt = malloc(depth * sizeof *prompt);
    for (uint32_t i = 0; i < depth && prompt != NULL; i++)
        prompt[i] = (token_t)(3 + i % 200);
    struct context_probe *probes = calloc((size_t)layers * 8, sizeof *probes);
    struct prediction *predictions = calloc((size_t)layers * 8, sizeof *predictions);
    seq_t seq = context_sequence(ctx);
    bool ok = prompt != NULL && probes != NULL && predictions != NULL && seq != SEQ_NONE &&
              context_prefill(ctx, seq, prompt, depth, NULL, NULL);
    for (int i = -3; i < REPEATS && ok; i++) { /* the first ones warm up */
        int at = i < 0 ? 0 : i;
        double unused;
        ok = probe_rows(ctx, seq, 1, false, layers, probes, predictions, &s->probe[at]) &&
             probe_rows(ctx, seq, 8, true, layers, probes, predictions, &s->probe_all[at]);
        for (size_t c = 0; c < N_COUNTS && ok; c++)
            ok = verify_rows(ctx, seq, row_counts[c], false, layers, c == 0 ? &s->forward[at] : &unused,
                             &s->verify[c][at]);
        ok = ok && verify_rows(ctx, seq, TREE, true, layers, &unused, &s->tree[at]);
    }
    free(prompt);
    free(probes);
    free(predictions);
    return ok;
}

bool
bench_steps(struct engine *engine, const struct options *o, struct err *err)
{
    const struct model_desc *m = &engine->model->desc;
    struct context *ctx;
    const uint32_t depth = o->ctx > 2 * ROOM ? o->ctx - ROOM : DEPTH;
    const struct context_options limits = {.ctx = depth + 3 * ROOM};
    if (!context_open(&ctx, engine->ops, engine->backend, engine->weights, m, &limits, err))
        return false;
    struct steps *s = calloc(1, sizeof *s);
    bool ok = s != NULL && measure_steps(ctx, m->n_layers, depth, s);
    if (!ok)
        err_set(err, ERR_WORK, "steps: %s", s == NULL ? "out of memory" : context_error(ctx)->text);
    cJSON *j = cJSON_CreateObject(), *rows = cJSON_CreateObject();
    cJSON_AddItemToObject(j, "verify_rows", rows);
    cJSON_AddNumberToObject(j, "rows_before", depth);
    if (ok) {
        bool quiet = output_is_stdout(o->json);
        double one = median(s->verify[0], REPEATS), layer = median(s->forward, REPEATS) / m->n_layers;
        double probe = median(s->probe, REPEATS), all = median(s->probe_all, REPEATS);
        if (!quiet)
            printf("%s, %s, medians of %d after %u rows\n%-34s %10s %8s\n", engine->model->name,
                   engine->ops->describe(engine->backend), REPEATS, (unsigned)depth, "step", "us", "ratio");
        for (size_t c = 0; c < N_COUNTS; c++) {
            double v = median(s->verify[c], REPEATS);
            char name[16];
            snprintf(name, sizeof name, "%u", (unsigned)row_counts[c]);
            cJSON_AddNumberToObject(rows, name, v / one);
            if (!quiet)
                printf("verify %2s rows, against 1%10s %10.1f %8.2f\n", name, "", v, v / one);
            if (row_counts[c] == TREE) {
                const double tree = median(s->tree, REPEATS);
                cJSON_AddNumberToObject(j, "probe_all_over_verify_8", all / v);
                cJSON_AddNumberToObject(j, "tree_8_over_verify_8", tree / v);
                if (!quiet)
                    printf("%-34s %10.1f %8.2f\n%-34s %10.1f %8.2f\n", "a tree of 8 rows, against that", tree, tree / v,
                           "all layers x 8 rows, against that", all, all / v);
            }
        }
        cJSON_AddNumberToObject(j, "verify_1_us", one);
        cJSON_AddNumberToObject(j, "layer_us", layer);
        cJSON_AddNumberToObject(j, "probe_over_layer", probe / layer);
        cJSON_AddNumberToObject(j, "rho", engine->model->rho);
        if (!quiet)
            printf("%-34s %10.1f %8.2f  (parameters: %.2f)\n", "probe, against a layer", probe, probe / layer,
                   engine->model->rho);
    }
    if (ok && o->json != NULL)
        ok = json_write(j, o->json, err);
    else
        cJSON_Delete(j);
    free(s);
    context_close(ctx);
    return ok;
}

/* ---- --speed ---- */

#define PROMPT 512 /* tokens, if the context has room */

struct speed {
    struct context *ctx;
    const struct model_desc *model;
    token_t *prompt; /* (n_prompt) */
    uint32_t n_prompt, n_decoded;
    double *prefill_s, *decode_s; /* (repeat) */
};

static bool
prefill(struct speed *s, double *seconds)
{
    seq_t seq = context_sequence(s->ctx);
    double start = clock_fine_us();
    bool ok = seq != SEQ_NONE && context_prompt(s->ctx, seq, s->prompt, s->n_prompt, NULL, NULL);
    *seconds = (clock_fine_us() - start) * 1e-6;
    if (ok) /* on failure the context stores the error, and is closed next */
        context_drop(s->ctx, seq);
    return ok;
}

/* Decodes autoregressively: runs a row through all layers and the head, and appends the likeliest token. */
static bool
decode(struct speed *s, double *seconds)
{
    const struct sampling greedy = {.top_p = 1};
    seq_t seq = context_sequence(s->ctx);
    token_t token = s->prompt[0];
    bool ok = seq != SEQ_NONE;
    double start = clock_fine_us();
    for (uint32_t i = 0; i < s->n_decoded && ok; i++) {
        slot_t slot = context_append(s->ctx, seq, SLOT_NONE, token);
        const struct verify_row row = {.parent = -1, .token = token, .slot = slot, .q = DIST_NONE};
        struct verdict verdict;
        ok = slot != SLOT_NONE && context_advance(s->ctx, &slot, 1, s->model->n_layers, NULL) &&
             context_verify(s->ctx, seq, &row, 1, &greedy, 1, &verdict) && context_keep(s->ctx, seq, &slot, 1);
        token = ok ? verdict.next : token;
    }
    *seconds = (clock_fine_us() - start) * 1e-6;
    if (ok) /* on failure the context stores the error, and is closed next */
        context_drop(s->ctx, seq);
    return ok;
}

static bool
measure(struct speed *s, uint32_t repeat)
{
    double warm_up;
    bool ok = prefill(s, &warm_up) && decode(s, &warm_up);
    for (uint32_t i = 0; i < repeat && ok && !generation_interrupted(); i++)
        ok = prefill(s, &s->prefill_s[i]) && decode(s, &s->decode_s[i]);
    return ok;
}

static bool
report(const struct speed *s, const struct engine *engine, const struct options *o, double load_s, struct err *err)
{
    double prefill_rate = s->n_prompt / median(s->prefill_s, o->repeat);
    double decode_rate = s->n_decoded / median(s->decode_s, o->repeat);
    if (!output_is_stdout(o->json))
        printf("%s, %s, medians of %u\n%-32s %10.3f s\n%-16s%5u tokens     %10.1f tokens/s\n"
               "%-16s%5u tokens     %10.1f tokens/s\n",
               engine->model->name, engine->ops->describe(engine->backend), (unsigned)o->repeat, "load", load_s,
               "prompt", (unsigned)s->n_prompt, prefill_rate, "decoding", (unsigned)s->n_decoded, decode_rate);
    if (o->json == NULL)
        return true;
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "model", engine->model->name);
    cJSON_AddStringToObject(j, "backend", engine->ops->describe(engine->backend));
    cJSON_AddNumberToObject(j, "load_s", load_s);
    cJSON_AddNumberToObject(j, "prompt_tokens", s->n_prompt);
    cJSON_AddNumberToObject(j, "prompt_tok_per_s", prefill_rate);
    cJSON_AddNumberToObject(j, "decoded_tokens", s->n_decoded);
    cJSON_AddNumberToObject(j, "decode_tok_per_s", decode_rate);
    return json_write(j, o->json, err);
}

bool
bench_speed(struct engine *engine, const struct options *o, double load_s, struct err *err)
{
    const struct model_desc *m = &engine->model->desc;
    uint32_t room = o->ctx > 0 ? o->ctx : engine->model->ctx_train;
    struct speed s = {.model = m,
                      .n_prompt = room < PROMPT ? room : PROMPT,
                      .n_decoded = o->tokens == 0 || o->tokens > room ? room : o->tokens};
    const struct context_options limits = {.ctx = s.n_prompt > s.n_decoded ? s.n_prompt : s.n_decoded};
    if (!context_open(&s.ctx, engine->ops, engine->backend, engine->weights, m, &limits, err))
        return false;
    s.prompt = calloc(s.n_prompt, sizeof *s.prompt);
    s.prefill_s = calloc(o->repeat, sizeof *s.prefill_s);
    s.decode_s = calloc(o->repeat, sizeof *s.decode_s);
    bool ok = s.prompt != NULL && s.prefill_s != NULL && s.decode_s != NULL;
    if (ok) {
        for (uint32_t i = 0; i < s.n_prompt; i++) /* any tokens: the cost does not depend on them */
            s.prompt[i] = (token_t)((3 + 7919 * (uint64_t)i) % m->vocab);
        ok = measure(&s, o->repeat) || err_set(err, ERR_WORK, "speed: %s", context_error(s.ctx)->text);
        ok = ok && (generation_interrupted() || report(&s, engine, o, load_s, err));
    } else {
        err_set(err, ERR_WORK, "speed: out of memory");
    }
    free(s.prompt);
    free(s.prefill_s);
    free(s.decode_s);
    context_close(s.ctx);
    return ok;
}
