#include "cli/bench/bench_speed.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

#include "cli/base/files.h"
#include "cli/generation/generation.h"
#include "cli/generation/timing.h"
#include "engine/context/context.h"

#define PROMPT 512 /* tokens, where the context has room */

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
    double start = now_us();
    bool ok = seq != SEQ_NONE && context_prompt(s->ctx, seq, s->prompt, s->n_prompt, NULL, NULL);
    *seconds = (now_us() - start) * 1e-6;
    if (ok) /* else the context keeps its reason, and is closed next */
        context_drop(s->ctx, seq);
    return ok;
}

/* Autoregressive: a row through all layers, the head, the likeliest token, and again. */
static bool
decode(struct speed *s, double *seconds)
{
    const struct sampling greedy = {.top_p = 1};
    seq_t seq = context_sequence(s->ctx);
    token_t token = s->prompt[0];
    bool ok = seq != SEQ_NONE;
    double start = now_us();
    for (uint32_t i = 0; i < s->n_decoded && ok; i++) {
        slot_t slot = context_append(s->ctx, seq, SLOT_NONE, token);
        const struct verify_row row = {.parent = -1, .token = token, .slot = slot, .q = DIST_NONE};
        struct verdict verdict;
        ok = slot != SLOT_NONE && context_advance(s->ctx, &slot, 1, s->model->n_layers, NULL) &&
             context_verify(s->ctx, seq, &row, 1, &greedy, 1, &verdict) && context_keep(s->ctx, seq, &slot, 1);
        token = ok ? verdict.next : token;
    }
    *seconds = (now_us() - start) * 1e-6;
    if (ok) /* else the context keeps its reason, and is closed next */
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
    if (!results_take_stdout(o->json))
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
    if (context_prompts(s->ctx) != NULL)
        cJSON_AddStringToObject(j, "prefill", context_prompts(s->ctx));
    cJSON_AddNumberToObject(j, "decoded_tokens", s->n_decoded);
    cJSON_AddNumberToObject(j, "decode_tok_per_s", decode_rate);
    bool ok = json_write(j, o->json, err);
    cJSON_Delete(j);
    return ok;
}

bool
bench_speed(struct engine *engine, const struct options *o, double load_s, struct err *err)
{
    const struct model_desc *m = &engine->model->desc;
    uint32_t room = o->ctx > 0 ? o->ctx : engine->model->ctx_train;
    struct speed s = {.model = m,
                      .n_prompt = room < PROMPT ? room : PROMPT,
                      .n_decoded = o->tokens == 0 || o->tokens > room ? room : o->tokens};
    const struct context_options limits = {.ctx = s.n_prompt > s.n_decoded ? s.n_prompt : s.n_decoded,
                                           .prompt_rows = engine->prompt_rows};
    if (!context_open(&s.ctx, engine->ops, engine->backend, engine->weights, m, &limits, err))
        return false;
    s.prompt = calloc(s.n_prompt, sizeof *s.prompt);
    s.prefill_s = calloc(o->repeat, sizeof *s.prefill_s);
    s.decode_s = calloc(o->repeat, sizeof *s.decode_s);
    bool ok = s.prompt != NULL && s.prefill_s != NULL && s.decode_s != NULL;
    if (ok) {
        for (uint32_t i = 0; i < s.n_prompt; i++) /* any tokens: what they are costs nothing */
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
