#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/fuzz/fuzz.h"

#define NODES_MOST 4096

struct tree {
    cJSON *node[NODES_MOST]; /* all nodes, the root first */
    cJSON *parent[NODES_MOST];
    uint32_t n;
};

static void
collect(struct tree *t, cJSON *node, cJSON *parent)
{
    if (t->n == NODES_MOST)
        return;
    t->node[t->n] = node;
    t->parent[t->n++] = parent;
    for (cJSON *child = node->child; child != NULL; child = child->next)
        collect(t, child, node);
}

static cJSON *
another_number(uint64_t *random, const cJSON *old)
{
    static const double numbers[] = {0,
                                     -1,
                                     1,
                                     2,
                                     0.5,
                                     1e-9,
                                     255,
                                     256,
                                     65535,
                                     65536,
                                     2147483647,
                                     2147483648.0,
                                     -2147483648.0,
                                     4294967295.0,
                                     4294967296.0,
                                     9007199254740993.0,
                                     1e19,
                                     1e300,
                                     -1e300};
    const uint32_t what = (uint32_t)(splitmix64(random) % 4);
    double value = numbers[splitmix64(random) % (sizeof numbers / sizeof *numbers)];
    if (what == 0 && cJSON_IsNumber(old))
        value = old->valuedouble + (splitmix64(random) % 2 != 0 ? 1 : -1);
    else if (what == 1 && cJSON_IsNumber(old))
        value = old->valuedouble * (splitmix64(random) % 2 != 0 ? 2 : -1);
    else if (what == 2)
        value = (double)(splitmix64(random) % 1000);
    return cJSON_CreateNumber(value);
}

static cJSON *
another_text(uint64_t *random, const cJSON *old)
{
    static const char *const texts[] = {"",   "a",   "\xff\xfe", "\x1b[31m", "%s%n",   "0",
                                        "-1", "nan", "../../x",  "self:1",   "{{ x }}"};
    char *text = cJSON_IsString(old) && old->valuestring != NULL ? strdup(old->valuestring) : NULL;
    if (text == NULL || text[0] == '\0' || splitmix64(random) % 3 == 0) {
        free(text);
        return cJSON_CreateString(texts[splitmix64(random) % (sizeof texts / sizeof *texts)]);
    }
    const size_t n = strlen(text), at = splitmix64(random) % n;
    if (splitmix64(random) % 2 == 0)
        text[at] = (char)(1 + splitmix64(random) % 255);
    else
        text[at] = '\0';
    cJSON *made = cJSON_CreateString(text);
    free(text);
    return made;
}

static cJSON *
another_value(uint64_t *random, const cJSON *old)
{
    switch (splitmix64(random) % 8) {
    case 0: return cJSON_CreateNull();
    case 1: return cJSON_CreateBool(splitmix64(random) % 2 != 0);
    case 2: return cJSON_CreateArray();
    case 3: return cJSON_CreateObject();
    case 4: return cJSON_IsString(old) ? another_number(random, old) : another_text(random, old);
    default: return cJSON_IsNumber(old) ? another_number(random, old) : another_text(random, old);
    }
}

/* Makes one change. Members keep their names, except one in eight. */
static void
change(struct tree *t, uint64_t *random)
{
    const uint32_t i = t->n > 1 ? 1 + (uint32_t)(splitmix64(random) % (t->n - 1)) : 0;
    cJSON *node = t->node[i], *parent = t->parent[i];
    if (parent == NULL)
        return;
    const uint32_t what = (uint32_t)(splitmix64(random) % 8);
    if (what == 0) {
        cJSON_Delete(cJSON_DetachItemViaPointer(parent, node));
        return;
    }
    cJSON *made = what == 1   ? cJSON_Duplicate(node, 1)
                  : what == 2 ? cJSON_Duplicate(t->node[splitmix64(random) % t->n], 1)
                              : another_value(random, node);
    if (made == NULL)
        return;
    if (what == 1 || what == 3) {
        char name[24] = "x";
        if (what == 1 && node->string != NULL)
            snprintf(name, sizeof name, "%.20s", node->string);
        if (cJSON_IsArray(parent) ? !cJSON_AddItemToArray(parent, made) : !cJSON_AddItemToObject(parent, name, made))
            cJSON_Delete(made);
        return;
    }
    if (node->string != NULL) { /* the new value takes the old one's name, which the replacement frees */
        char *name = strdup(node->string);
        if (name == NULL || !cJSON_ReplaceItemViaPointer(parent, node, made)) {
            free(name);
            cJSON_Delete(made);
        } else {
            cJSON_free(made->string); /* a copy has a name */
            made->string = name;
        }
        return;
    }
    if (!cJSON_ReplaceItemViaPointer(parent, node, made))
        cJSON_Delete(made);
}

size_t
mutate_json(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    uint64_t random = seed;
    cJSON *root = splitmix64(&random) % 8 == 0 ? NULL : cJSON_ParseWithLength((const char *)data, size);
    if (root == NULL || (!cJSON_IsObject(root) && !cJSON_IsArray(root))) {
        cJSON_Delete(root);
        return LLVMFuzzerMutate(data, size, max_size);
    }
    struct tree *t = malloc(sizeof *t);
    for (uint64_t n = 1 + splitmix64(&random) % 3; t != NULL && n > 0; n--) {
        t->n = 0;
        collect(t, root, NULL);
        change(t, &random);
    }
    free(t);
    char *text = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    size_t n = text == NULL ? size : strlen(text);
    if (text != NULL && n <= max_size)
        memcpy(data, text, n);
    else
        n = size;
    cJSON_free(text);
    return n;
}

size_t
mutate_json_part(uint8_t *data, size_t size, size_t max_size, unsigned int seed, size_t skip)
{
    uint8_t *end = size > skip ? memchr(data + skip, 0xff, size - skip) : NULL;
    const size_t behind = end == NULL ? 0 : size - (size_t)(end - data);
    if (size <= skip || seed % 8 == 1)
        return LLVMFuzzerMutate(data, size, max_size);
    uint8_t *rest = malloc(behind + 1);
    if (rest == NULL)
        return size;
    if (behind > 0)
        memcpy(rest, end, behind);
    size_t n = skip + mutate_json(data + skip, size - skip - behind, max_size - skip - behind, seed / 8);
    if (behind > 0)
        memcpy(data + n, rest, behind);
    free(rest);
    return n + behind;
}
