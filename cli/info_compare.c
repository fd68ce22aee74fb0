#include "cli/info_compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/plural.h"
#include "engine/model/memory.h"
#include "engine/session/engine_helpers.h"
#include "engine/synthetic/model_open.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/vocabulary_match.h"
#include "engine/trained/accept_head.h"

struct comparison {
    const struct model *target, *helper;
    uint32_t shared; /* ids */
    bool match;
    char difference[sizeof((struct err *)0)->text]; /* in one line; "" when they match */
    double parameters, bytes, layer, head;          /* the helper's, as shares of the target's */
    uint32_t accept_blocks;                         /* of the acceptance head beside a draft model, */
    uint64_t accept_bytes;                          /* in memory; 0: there is none */
};

/* The acceptance head that stands beside a draft model, if it can be read. */
static bool
find_accept(const struct model *helper, enum helper_role role, uint32_t *n_blocks, uint64_t *bytes)
{
    char *path = role == HELPER_DRAFT ? engine_beside(helper, ".accept.safetensors") : NULL;
    const bool ok = path != NULL && accept_head_measure(path, helper, n_blocks, bytes, NULL);
    free(path);
    return ok;
}

static struct comparison
compare(const struct model *target, const struct model *helper, enum helper_role role)
{
    struct comparison c = {.target = target, .helper = helper};
    struct err why = {.kind = ERR_NONE};
    const uint32_t n = tokenizer_size(target->tokenizer), m = tokenizer_size(helper->tokenizer);
    c.shared = n < m ? n : m;
    c.match = vocabularies_match(target->tokenizer, target->name, helper->tokenizer, helper->name, &why);
    snprintf(c.difference, sizeof c.difference, "%s", c.match ? "" : why.text);
    c.parameters = (double)helper->parameters / (double)target->parameters;
    c.bytes = (double)model_weight_bytes(helper, false, false) / (double)model_weight_bytes(target, false, false);
    c.layer = model_layer_bytes(helper, false) / model_layer_bytes(target, false);
    c.head = model_head_bytes(helper, false) / model_head_bytes(target, false);
    if (!find_accept(helper, role, &c.accept_blocks, &c.accept_bytes))
        c.accept_bytes = 0;
    return c;
}

static void
print(const struct comparison *c, enum helper_role role)
{
    char size[24];
    const struct model *h = c->helper;
    printf("%-14s%s: %" PRIu32 " layer%s of width %" PRIu32 ", %" PRIu64
           " parameters (%.3f of the model's), weights %s "
           "(%.3f)\n",
           helper_names[role], h->name, h->desc.n_layers, plural(h->desc.n_layers), h->desc.width, h->parameters,
           c->parameters, memory_text(size, model_weight_bytes(h, false, false)), c->bytes);
    printf("              a layer has %.3f of the bytes of the model's, the head %.3f\n", c->layer, c->head);
    if (c->match)
        printf("              %" PRIu32 " tokens are the same; the model has %" PRIu32 " more, the %s model %" PRIu32
               "\n",
               c->shared, tokenizer_size(c->target->tokenizer) - c->shared, helper_names[role],
               tokenizer_size(h->tokenizer) - c->shared);
    else
        printf("              %s\n", c->difference);
    if (c->accept_bytes > 0)
        printf("              beside it an acceptance head (D = %" PRIu32 "), which takes %s\n", c->accept_blocks,
               memory_text(size, c->accept_bytes));
}

static bool
add(cJSON *json, const struct comparison *c, enum helper_role role)
{
    cJSON *o = cJSON_AddObjectToObject(json, helper_names[role]);
    char hash[24];
    snprintf(hash, sizeof hash, "%016" PRIx64, c->helper->hash);
    return cJSON_AddStringToObject(o, "name", c->helper->name) != NULL &&
           cJSON_AddStringToObject(o, "hash", hash) != NULL &&
           cJSON_AddNumberToObject(o, "layers", c->helper->desc.n_layers) != NULL &&
           cJSON_AddNumberToObject(o, "parameters", (double)c->helper->parameters) != NULL &&
           cJSON_AddNumberToObject(o, "weight_bytes", (double)model_weight_bytes(c->helper, false, false)) != NULL &&
           cJSON_AddNumberToObject(o, "parameters_of_target", c->parameters) != NULL &&
           cJSON_AddNumberToObject(o, "bytes_of_target", c->bytes) != NULL &&
           cJSON_AddNumberToObject(o, "layer_of_target", c->layer) != NULL &&
           cJSON_AddNumberToObject(o, "head_of_target", c->head) != NULL &&
           cJSON_AddNumberToObject(o, "shared_tokens", c->shared) != NULL &&
           cJSON_AddBoolToObject(o, "same_vocabulary", c->match) != NULL &&
           (c->accept_bytes == 0 || cJSON_AddNumberToObject(o, "accept_head_bytes", (double)c->accept_bytes) != NULL) &&
           (c->match || cJSON_AddStringToObject(o, "difference", c->difference) != NULL);
}

bool
info_compare(const struct model *target, enum helper_role role, const char *path, cJSON *json, struct err *err)
{
    if (strncmp(path, "self:", 5) == 0 || strcmp(path, "none") == 0)
        return err_set(err, ERR_USAGE, "info --%s %.24s: a model of its own is wanted", helper_names[role], path);
    if (target->vocabulary_only)
        return err_set(err, ERR_USAGE, "info --%s: %.200s has no weights to compare", helper_names[role], target->path);
    struct model *helper;
    if (!model_open(&helper, path, err))
        return false;
    const struct comparison c = compare(target, helper, role);
    bool ok = true;
    if (json == NULL)
        print(&c, role);
    else
        ok = add(json, &c, role) || err_set(err, ERR_WORK, "out of memory writing JSON");
    model_close(helper);
    return ok;
}
