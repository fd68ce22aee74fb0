/* config.json as transformers understands it of an architecture. */
#include <string.h>

#include "engine/arch/arch_hf.h"

#define REMEDY ARCH_HF_REMEDY

static bool
no_memory(const struct hf_folder *f, struct err *err)
{
    return err_set(err, ERR_WORK, "%s: out of memory for config.json", f->path);
}

static bool
has_kinds(const cJSON *rope)
{
    return cJSON_IsObject(arch_hf_entry(rope, "full_attention")) ||
           cJSON_IsObject(arch_hf_entry(rope, "sliding_attention"));
}

/* Puts a value where there may be one already. */
static bool
put(cJSON *object, const char *name, cJSON *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, name);
    if (value != NULL && cJSON_AddItemToObject(object, name, value))
        return true;
    cJSON_Delete(value);
    return false;
}

/* Of layers that see everything what was said first, rope_scaling, goes before. */
static bool
merge(cJSON *into, const cJSON *from)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, from)
    {
        if (!put(into, entry->string, cJSON_Duplicate(entry, true)))
            return false;
    }
    return true;
}

/* Where layers of different kinds turn otherwise: rope_parameters by kind, or rope_scaling, which is of those that see everything. */
static bool
understand_kinds(const struct hf_folder *f, cJSON *c, const cJSON *params, const cJSON *scaling, struct err *err)
{
    const cJSON *full = arch_hf_entry(params, "full_attention"), *local = arch_hf_entry(params, "sliding_attention");
    if (cJSON_IsObject(scaling) &&
        ((cJSON_IsObject(params) && !cJSON_IsObject(full)) ||
         (arch_hf_entry(scaling, "rope_type") == NULL && arch_hf_entry(scaling, "type") != NULL)))
        return err_set(
            err, ERR_WORK,
            "%s: config.json's 'rope_scaling' needs a 'rope_type', and no 'rope_parameters' beside it; " REMEDY,
            f->path);
    cJSON *whole = cJSON_IsObject(full) ? cJSON_Duplicate(full, true) : cJSON_CreateObject();
    cJSON *near = cJSON_IsObject(local) ? cJSON_Duplicate(local, true) : cJSON_CreateObject();
    bool ok = whole != NULL && near != NULL && (!cJSON_IsObject(scaling) || merge(whole, scaling));
    cJSON_DeleteItemFromObjectCaseSensitive(whole, "truncate"); /* which transformers looks for elsewhere */
    if (ok)
        ok = put(c, "rope_parameters", whole);
    else
        cJSON_Delete(whole);
    if (!ok)
        cJSON_Delete(near);
    return (ok && put(c, ARCH_HF_ROPE_LOCAL, near)) || no_memory(f, err);
}

/* One that says nothing of how to segment it, or of what the architecture doesn't have. */
static void
pass_over(cJSON *rope, const char *words)
{
    static const struct {
        const char *entry, *word, *other;
    } chosen[] = {{"partial_rotary_factor", "partial_rotary_factor", "rotary_pct"},
                  {"rotary_pct", "", ""},
                  {"alpha", "ALPHA", ""},
                  {"short_mscale", "MSCALE", ""},
                  {"llama_4_scaling_beta", "GROWS", ""}};
    for (size_t i = 0; i < sizeof chosen / sizeof chosen[0]; i++)
        if (!arch_hf_has(words, chosen[i].word) && !arch_hf_has(words, chosen[i].other))
            cJSON_DeleteItemFromObjectCaseSensitive(rope, chosen[i].entry);
}

static bool
understand_rope(const struct hf_folder *f, cJSON *c, const char *words, struct err *err)
{
    cJSON *scaling = cJSON_DetachItemFromObjectCaseSensitive(c, "rope_scaling"),
          *params = cJSON_DetachItemFromObjectCaseSensitive(c, "rope_parameters");
    bool ok = true;
    if (arch_hf_has(words, "BY_KIND")) {
        ok = understand_kinds(f, c, params, scaling, err);
    } else {
        const cJSON *said =
            scaling != NULL && !cJSON_IsNull(scaling) && (!cJSON_IsObject(scaling) || scaling->child != NULL) ? scaling
                                                                                                              : params;
        if (said != NULL && !cJSON_IsNull(said) && !cJSON_IsObject(said))
            ok = err_set(err, ERR_WORK, "%s: config.json's RoPE scaling is not understood; " REMEDY, f->path);
        else if (has_kinds(said))
            ok = err_set(err, ERR_WORK,
                         "%s: its layers turn in different ways (rope_parameters), which is not known of a '%s'",
                         f->path, cJSON_GetStringValue(arch_hf_entry(c, "model_type")));
        else if (cJSON_IsObject(said))
            ok = put(c, "rope_parameters", cJSON_Duplicate(said, true)) || no_memory(f, err);
    }
    cJSON_Delete(scaling);
    cJSON_Delete(params);
    if (ok) {
        pass_over(cJSON_GetObjectItemCaseSensitive(c, "rope_parameters"), words);
        pass_over(cJSON_GetObjectItemCaseSensitive(c, ARCH_HF_ROPE_LOCAL), words);
    }
    return ok;
}

/* Of a family of hybrids the members whose layers are all attention, and that have no experts: their MLP is the one that experts would
 * share. Positions count only where the configuration says so. */
static bool
understand_hybrid(const struct hf_folder *f, cJSON *c, const char *model_type, struct err *err)
{
    const cJSON *types = arch_hf_entry(c, "layer_types"), *experts = arch_hf_entry(c, "num_local_experts"), *type;
    bool attention = cJSON_IsArray(types);
    cJSON_ArrayForEach(type, types)
    {
        const char *kind = cJSON_GetStringValue(type);
        attention =
            attention && kind != NULL && (strcmp(kind, "attention") == 0 || strcmp(kind, "full_attention") == 0);
    }
    if (!attention || !cJSON_IsNumber(experts) || experts->valuedouble > 0) {
        arch_unsupported(f->path, slice_of(model_type), err);
        return false;
    }
    const char *positions = cJSON_GetStringValue(arch_hf_entry(c, "position_embedding_type"));
    if (positions == NULL || strcmp(positions, "rope") != 0)
        put(c, "no_rope_layer_interval", cJSON_CreateNumber(1));
    return put(c, "intermediate_size", cJSON_Duplicate(arch_hf_entry(c, "shared_intermediate_size"), true)) ||
           no_memory(f, err);
}

cJSON *
arch_hf_understood(const struct hf_folder *f, const char *model_type, struct err *err)
{
    const char *words = arch_hf_usual(model_type);
    cJSON *c = cJSON_Duplicate(f->config, true);
    if (c == NULL) {
        no_memory(f, err);
        return NULL;
    }
    if (cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(c, "rope_parameters"))) /* as if it were missing */
        cJSON_DeleteItemFromObjectCaseSensitive(c, "rope_parameters");
    const bool filled = words == NULL || arch_hf_fill(c, words);
    if (!filled)
        no_memory(f, err);
    const bool hybrid = words != NULL && arch_hf_has(words, "ATTENTION_ONLY");
    if (filled && (!hybrid || understand_hybrid(f, c, model_type, err)) &&
        understand_rope(f, c, words != NULL ? words : "partial_rotary_factor GROWS ALPHA MSCALE", err))
        return c;
    cJSON_Delete(c);
    return NULL;
}
