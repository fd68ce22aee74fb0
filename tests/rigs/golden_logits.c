#include "tests/rigs/golden_logits.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/cpu/isa.h"

void
golden_read(struct golden *g, const char *path)
{
    FILE *f = fopen(path, "r");
    if (f == NULL)
        fail_msg("%s: cannot be opened", path);
    char line[1024];
    memset(g, 0, sizeof *g);
    while (fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, "tokens", 6) == 0) {
            for (char *at = line + 6, *end; g->n_tokens < GOLDEN_TOKENS; at = end) {
                long id = strtol(at, &end, 10);
                if (end == at)
                    break;
                g->tokens[g->n_tokens++] = (token_t)id;
            }
        } else if (strncmp(line, "row", 3) == 0) {
            assert_true(g->n_rows < GOLDEN_ROWS);
            char *end;
            g->rows[g->n_rows].position = (uint32_t)strtoul(line + 3, &end, 10);
            g->rows[g->n_rows++].layer = (uint32_t)strtoul(end, NULL, 10);
            g->vocab = 0;
        } else if (line[0] != '#') {
            assert_true(g->n_rows > 0 && g->vocab < GOLDEN_VOCAB);
            g->rows[g->n_rows - 1].logits[g->vocab++] = strtod(line, NULL);
        }
    }
    fclose(f);
    assert_true(g->n_tokens > 0 && g->n_rows > 0);
}

double
golden_error_on(const struct backend_ops *ops, const struct model *m, const struct golden *g,
                const struct backend_options *o)
{
    static float logits[GOLDEN_VOCAB];
    struct err err = {.kind = ERR_NONE};
    struct backend *b;
    struct weights *w;
    struct store *s;
    const struct store_desc d = {.slots = 64, .ring = 64, .seqs = 1, .trunk = 64, .max_rows = 64, .max_probes = 1};
    if (!ops->open(&b, o, &err) || !ops->load(b, &m->desc, NULL, NULL, &w, &err) || !ops->store(w, &d, &s, &err))
        fail_msg("%s", err.text);
    struct row rows[GOLDEN_TOKENS];
    slot_t tails[GOLDEN_TOKENS];
    for (uint32_t i = 0; i < g->n_tokens; i++) {
        tails[i] = i;
        rows[i] = (struct row){.token = g->tokens[i], .slot = i, .ring = i, .n_tail = i + 1};
    }
    const struct sweep sweep = {
        .rows = rows, .n = g->n_tokens, .tails = tails, .n_tails = g->n_tokens, .to = m->desc.n_layers};
    assert_true(ops->embed(s, rows, g->n_tokens) && ops->step(s, &sweep));
    double worst = 0;
    for (uint32_t r = 0; r < g->n_rows; r++) {
        assert_true(ops->read_logits(s, g->rows[r].position, g->rows[r].layer, logits));
        if (!ops->wait(s, &err))
            fail_msg("%s", err.text);
        double diff = 0, norm = 0;
        for (uint32_t v = 0; v < g->vocab; v++) {
            diff += (logits[v] - g->rows[r].logits[v]) * (logits[v] - g->rows[r].logits[v]);
            norm += g->rows[r].logits[v] * g->rows[r].logits[v];
        }
        worst = fmax(worst, sqrt(diff / norm));
    }
    ops->drop(s);
    ops->unload(w);
    ops->close(b);
    return worst;
}

double
golden_error(const struct model *m, const struct golden *g, const char *isa, bool exact)
{
    return golden_error_on(&cpu_backend, m, g, &(struct backend_options){.threads = 2, .isa = isa, .exact = exact});
}
