/* Prints the logits of models for scripts that compare them. An input line contains a model's path, a tab and token
 * ids. The output line is JSON: {"logits": a list for each token, "context": the model's context length}, computed
 * exactly by the CPU, or {"error": the reason why the model cannot be opened}. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/model_open.h"

#define MOST_TOKENS 64u

struct text {
    token_t ids[MOST_TOKENS];
    uint32_t n;
};

static struct text
read_ids(const char *at)
{
    struct text t = {.n = 0};
    char *end;
    for (; t.n < MOST_TOKENS; at = end) {
        const long id = strtol(at, &end, 10);
        if (end == at)
            break;
        t.ids[t.n++] = (token_t)id;
    }
    return t;
}

/* Computes the whole text in one forward pass. */
static bool
compute(struct kv_cache *s, const struct model *m, const struct text *t, float *logits, struct err *err)
{
    struct row rows[MOST_TOKENS];
    slot_t tails[MOST_TOKENS];
    for (uint32_t i = 0; i < t->n; i++) {
        tails[i] = i;
        rows[i] = (struct row){.token = t->ids[i], .slot = i, .ring = i, .n_tail = i + 1};
    }
    const struct forward_pass forward = {
        .rows = rows, .n = t->n, .tails = tails, .n_tails = t->n, .to = m->desc.n_layers};
    bool ok = cpu_backend.embed(s, rows, t->n) && cpu_backend.step(s, &forward);
    for (uint32_t i = 0; i < t->n && ok; i++)
        ok = cpu_backend.read_logits(s, i, m->desc.n_layers, logits + (size_t)i * m->desc.vocab);
    return (ok || err_set(err, ERR_WORK, "the text can't be asked for")) && cpu_backend.wait(s, err);
}

static bool
run(const struct model *m, const struct text *t, float *logits, struct err *err)
{
    const struct backend_options options = {.threads = 1, .exact = true};
    const struct kv_cache_desc d = {.slots = MOST_TOKENS,
                                    .ring = MOST_TOKENS,
                                    .seqs = 1,
                                    .trunk = MOST_TOKENS,
                                    .max_rows = MOST_TOKENS,
                                    .max_probes = 1,
                                    .states = 1};
    struct backend *b = NULL;
    struct weights *w = NULL;
    struct kv_cache *s = NULL;
    const bool ok = cpu_backend.open(&b, &options, err) && cpu_backend.load(b, &m->desc, NULL, NULL, &w, err) &&
                    cpu_backend.kv_cache(w, &d, &s, err) && compute(s, m, t, logits, err);
    if (s != NULL)
        cpu_backend.drop(s);
    if (w != NULL)
        cpu_backend.unload(w);
    if (b != NULL)
        cpu_backend.close(b);
    return ok;
}

static cJSON *
answer(const char *path, const struct text *t)
{
    cJSON *o = cJSON_CreateObject(), *rows;
    struct model *m = NULL;
    struct err err = {.kind = ERR_NONE};
    float *logits = NULL;
    bool ok = model_open_with(&m, path, &(struct model_options){.exact = true, .ctx = t->n}, &err);
    for (uint32_t i = 0; i < t->n && ok; i++)
        ok = (t->ids[i] >= 0 && (uint32_t)t->ids[i] < m->desc.vocab) ||
             err_set(&err, ERR_WORK, "there is no such token");
    if (ok)
        logits = calloc((size_t)t->n * m->desc.vocab + 1, sizeof *logits);
    if (ok && logits != NULL && run(m, t, logits, &err)) {
        cJSON_AddNumberToObject(o, "context", m->ctx_train);
        rows = cJSON_AddArrayToObject(o, "logits");
        for (uint32_t i = 0; i < t->n; i++)
            cJSON_AddItemToArray(rows, cJSON_CreateFloatArray(logits + (size_t)i * m->desc.vocab, (int)m->desc.vocab));
    } else {
        cJSON_AddStringToObject(o, "error", err.text);
    }
    free(logits);
    model_close(m);
    return o;
}

int
main(void)
{
    char line[8192];
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *tab = strchr(line, '\t');
        if (tab == NULL)
            return 1;
        *tab = '\0';
        const struct text t = read_ids(tab + 1);
        cJSON *o = answer(line, &t);
        char *text = cJSON_PrintUnformatted(o);
        puts(text != NULL ? text : "{}");
        fflush(stdout);
        free(text);
        cJSON_Delete(o);
    }
    return 0;
}
