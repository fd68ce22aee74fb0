#include "cli/generation/outcome.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/files.h"
#include "cli/base/json_memory.h"
#include "kernels/rng.h"

void
outcome_free(struct outcome *out)
{
    for (size_t i = 0; i < out->n_texts; i++)
        free(out->texts[i].tokens);
    free(out->texts);
    *out = (struct outcome){0};
}

size_t
outcome_tokens(const struct outcome *out)
{
    size_t n = 0;
    for (size_t i = 0; i < out->n_texts; i++)
        n += out->texts[i].n_tokens;
    return n;
}

static void
add_seed(cJSON *to, uint64_t seed) /* as text: a JSON number has 53 bits */
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    cJSON_AddStringToObject(to, "seed", text);
}

static void
add_texts(cJSON *to, const struct outcome *out, const struct session_options *o)
{
    const bool batch = o->batch > 0 || o->versus != NULL;
    cJSON *list = batch ? cJSON_AddArrayToObject(to, "sequences") : NULL;
    for (size_t i = 0; i < out->n_texts; i++) {
        const struct outcome_text *text = &out->texts[i];
        cJSON *at = batch ? cJSON_CreateObject() : to, *ids = cJSON_AddArrayToObject(at, "token_ids");
        for (size_t k = 0; k < text->n_tokens; k++)
            cJSON_AddItemToArray(ids, cJSON_CreateNumber(text->tokens[k]));
        if (!batch)
            continue;
        cJSON_AddStringToObject(at, "end", text->end);
        add_seed(at, o->versus != NULL ? o->seed : rng_sequence_seed(o->seed, (uint32_t)i));
        cJSON_AddItemToArray(list, at);
    }
}

static const char *const verdicts[] = {"unknown", "no clear difference", "faster", "slower"};

/* Of two settings each one's measures, with standard errors, and the second one's speed over the first one's. */
static void
add_sides(cJSON *to, const struct outcome *out, const struct model *model, const char *versus)
{
    cJSON_AddStringToObject(to, "versus", versus);
    cJSON *list = cJSON_AddArrayToObject(to, "settings");
    for (int i = 0; i < 2; i++) {
        const struct estimates e = round_sums_estimates(&out->sides[i], model->desc.n_layers, model->rho);
        const struct {
            const char *name, *se;
            struct estimate of;
        } measures[] = {{"tok_per_s", "tok_per_s_se", e.tokens_per_s},
                        {"tokens_per_round", "tokens_per_round_se", e.tokens_per_round},
                        {"acceptance_rate", "acceptance_rate_se", e.acceptance_rate},
                        {"modelled_speedup", "modelled_speedup_se", e.modelled}};
        cJSON *at = cJSON_CreateObject();
        for (size_t k = 0; k < sizeof measures / sizeof *measures; k++) {
            json_number(at, measures[k].name, measures[k].of.value);
            json_number(at, measures[k].se, measures[k].of.se);
        }
        cJSON_AddItemToArray(list, at);
    }
    const struct comparison c = paired_comparison(&out->paired);
    cJSON *j = cJSON_AddObjectToObject(to, "comparison");
    json_number(j, "speed_ratio", c.value);
    json_number(j, "low", c.low);
    json_number(j, "high", c.high);
    json_number(j, "segments", (double)c.n);
    cJSON_AddStringToObject(j, "verdict", verdicts[c.verdict]);
}

void
json_number(cJSON *to, const char *name, double value)
{
    if (isnan(value))
        cJSON_AddNullToObject(to, name);
    else
        cJSON_AddNumberToObject(to, name, value);
}

cJSON *
outcome_json(const struct outcome *out, const struct engine *engine, const struct session_options *o)
{
    const struct tally *t = &out->metrics.total;
    struct measures m = metrics_measures(&out->metrics, t);
    cJSON *j = cJSON_CreateObject(), *params = cJSON_CreateObject();
    char name[64];
    cJSON_AddStringToObject(j, "model", engine->model->name);
    for (enum helper_role role = 0; role < HELPERS; role++)
        if (engine_has(engine, role))
            cJSON_AddStringToObject(j, helper_names[role], engine_helper_name(engine, role, name, sizeof name));
    cJSON_AddStringToObject(j, "backend", engine->ops->name);
    cJSON_AddStringToObject(j, "isa", engine->ops->describe(engine->backend));
    cJSON_AddStringToObject(j, "policy", o->policy);
    for (size_t i = 0; i < o->n_set; i++)
        cJSON_AddStringToObject(params, o->set[i].name, o->set[i].text);
    if (engine->heads != HEAD_LENS)
        cJSON_AddStringToObject(params, "head", head_mode_names[o->head]);
    json_number(params, "temperature", (double)o->sampling.temperature);
    json_number(params, "top_k", o->sampling.top_k);
    json_number(params, "top_p", (double)o->sampling.top_p);
    add_seed(params, o->seed);
    cJSON_AddItemToObject(j, "params", params);
    if (o->batch > 0)
        json_number(params, "batch", o->batch);
    if (o->versus != NULL)
        add_sides(j, out, engine->model, o->versus);
    add_texts(j, out, o);
    cJSON_AddStringToObject(j, "end", out->end);
    json_number(j, "rounds", (double)t->rounds);
    json_number(j, "drafted", (double)t->drafted);
    json_number(j, "verified", (double)t->verified);
    json_number(j, "accepted", (double)t->accepted);
    json_number(j, "emitted", (double)t->emitted);
    json_number(j, "acceptance_rate", m.acceptance_rate);
    json_number(j, "per_token_acceptance", m.per_token_acceptance);
    json_number(j, "tokens_per_round", m.tokens_per_round);
    json_number(j, "etpl", m.etpl);
    json_number(j, "discard_rate", m.discard_rate);
    json_number(j, "verification_rate", m.verification_rate);
    json_number(j, "layers_loaded", t->layers);
    json_number(j, "heads_loaded", t->heads);
    json_number(j, "modelled_speedup", m.modelled);
    if (t->experts_rounds > 0)
        json_number(j, "verify_experts", t->experts / (double)t->experts_rounds);
    json_number(j, "decode_s", (t->draft_us + t->verify_us) * 1e-6);
    json_number(j, "aside_s", t->aside_us * 1e-6);
    json_number(j, "tok_per_s", m.tokens_per_s);
    json_number(j, "tok_per_s_all_in", m.tokens_per_s_all_in);
    json_number(j, "draft_share", m.draft_share - m.heads_share);
    json_number(j, "heads_share", m.heads_share);
    json_number(j, "verify_share", m.verify_share);
    json_number(j, "probe_share", m.probe_share);
    json_number(j, "wait_share", m.wait_share);
    json_number(j, "aside_share", m.aside_share);
    return j;
}

const struct file_kind results_json_file = {.what = "results of specscope as JSON", .begins = "{\"specscope\":"};

bool
json_write(const cJSON *j, const char *path, struct err *err)
{
    FILE *f;
    char *text = json_memory_ran_out() ? NULL : cJSON_Print(j);
    if (text == NULL)
        return err_set(err, ERR_WORK, "out of memory for the JSON results");
    bool ok = results_open(&f, path, &results_json_file, err);
    if (ok) {
        fprintf(f, "{\n\t\"specscope\":\t\"%s\",%s\n", SPECSCOPE_VERSION, text + 1);
        ok = results_close(f, path, err);
    }
    cJSON_free(text);
    return ok;
}
