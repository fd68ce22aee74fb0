/* Logits for scripts that compare: a line in, `MODEL TOKEN TOKEN …`, MODEL a path without blanks; out a line, either
 * `error MESSAGE` or `logits ROWS VOCABULARY CONTEXT` and, behind it, that many numbers in F32 of this machine: those of every
 * position, as --exact computes them. CONTEXT is how far the model says that it can read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/planted/model_open.h"

#define MOST_TOKENS 4096

/* The path ends where the first token begins. */
static uint32_t
read_tokens(char *line, struct row *rows, slot_t *tails)
{
    uint32_t n = 0;
    line[strcspn(line, "\n")] = '\0';
    char *at = strchr(line, ' '), *end;
    if (at == NULL)
        return 0;
    *at++ = '\0';
    for (; n < MOST_TOKENS; n++, at = end) {
        const long id = strtol(at, &end, 10);
        if (end == at)
            break;
        tails[n] = n;
        rows[n] = (struct row){.token = (token_t)id, .slot = n, .ring = n, .n_tail = n + 1};
    }
    return n;
}

static bool
print_logits(const struct model *m, const struct row *rows, const slot_t *tails, uint32_t n, struct err *err)
{
    const struct backend_ops *ops = &cpu_backend;
    const struct backend_options options = {.threads = 1, .exact = true};
    const struct store_desc d = {.slots = n, .ring = n, .seqs = 1, .trunk = n, .max_rows = n, .max_probes = 1};
    const struct sweep sweep = {.rows = rows, .n = n, .tails = tails, .n_tails = n, .to = m->desc.n_layers};
    struct backend *b = NULL;
    struct weights *w = NULL;
    struct store *s = NULL;
    const size_t vocab = m->desc.vocab;
    float *logits = calloc(n * vocab, sizeof *logits);
    bool ok = logits != NULL && ops->open(&b, &options, err) && ops->load(b, &m->desc, NULL, NULL, &w, err) &&
              ops->store(w, &d, &s, err) && ops->embed(s, rows, n) && ops->step(s, &sweep);
    for (uint32_t i = 0; ok && i < n; i++)
        ok = ops->read_logits(s, i, m->desc.n_layers, logits + i * vocab) && ops->wait(s, err);
    if (ok) {
        printf("logits %u %zu %u\n", (unsigned)n, vocab, (unsigned)m->ctx_train);
        fwrite(logits, sizeof *logits, n * vocab, stdout);
    }
    free(logits);
    if (s != NULL)
        ops->drop(s);
    if (w != NULL)
        ops->unload(w);
    if (b != NULL)
        ops->close(b);
    return ok;
}

int
main(void)
{
    static struct row rows[MOST_TOKENS];
    static slot_t tails[MOST_TOKENS];
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        struct model *m = NULL;
        struct err err = {.kind = ERR_NONE, .text = "cannot be computed"};
        const uint32_t n = read_tokens(line, rows, tails);
        const struct model_options options = {.exact = true, .ctx = n};
        if (!model_open_with(&m, line, &options, &err) || !print_logits(m, rows, tails, n, &err))
            printf("error %s\n", err.text);
        fflush(stdout);
        model_close(m);
    }
    free(line);
    return 0;
}
