#include "tests/rigs/golden_logits.h"

#include <glob.h>
#include <math.h>

#include "tests/rigs/test.h"

static uint32_t
read_tokens(const char *at, token_t *out, uint32_t room)
{
    uint32_t n = 0;
    for (char *end; n < room; at = end) {
        const long id = strtol(at, &end, 10);
        if (end == at)
            break;
        out[n++] = (token_t)id;
    }
    return n;
}

static void
read_said(struct golden *g, const char *line)
{
    const bool fresh = strncmp(line, "fresh", 5) == 0;
    assert_less(g->n_said, sizeof g->said / sizeof *g->said);
    struct golden_said *s = &g->said[g->n_said++];
    s->fresh = fresh;
    s->n = read_tokens(line + (fresh ? 5 : 6), s->tokens, GOLDEN_SAID);
    for (uint32_t i = 0; i < GOLDEN_SAID; i++)
        s->second[i] = TOKEN_NONE;
}

static void
read_near(struct golden *g, const char *line)
{
    unsigned i;
    int second;
    assert_int_equal(sscanf(line, "near %u %d", &i, &second), 2);
    assert_greater(g->n_said, 0);
    assert_less(i, g->said[g->n_said - 1].n);
    g->said[g->n_said - 1].second[i] = second;
}

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
            g->n_tokens = read_tokens(line + 6, g->tokens, GOLDEN_TOKENS);
        } else if (strncmp(line, "greedy", 6) == 0 || strncmp(line, "fresh", 5) == 0) {
            read_said(g, line);
        } else if (strncmp(line, "near", 4) == 0) {
            read_near(g, line);
        } else if (strncmp(line, "row", 3) == 0) {
            assert_less(g->n_rows, GOLDEN_ROWS);
            char *end;
            g->rows[g->n_rows].position = (uint32_t)strtoul(line + 3, &end, 10);
            g->rows[g->n_rows++].layer = (uint32_t)strtoul(end, NULL, 10);
            g->vocab = 0;
        } else if (line[0] != '#') {
            assert_greater(g->n_rows, 0);
            assert_less(g->vocab, GOLDEN_VOCAB);
            g->rows[g->n_rows - 1].logits[g->vocab++] = strtod(line, NULL);
        }
    }
    fclose(f);
    assert_greater(g->n_tokens, 0);
    assert_greater(g->n_rows, 0);
}

/* A model on a backend, and the text that it has read. */
struct reader {
    const struct backend_ops *ops;
    const struct model *model;
    struct backend *backend;
    struct weights *weights;
    struct kv_cache *kv_cache;
    token_t text[GOLDEN_TOKENS];
    uint32_t n; /* number of tokens that it has read */
};

static struct reader
reader_open(const struct backend_ops *ops, const struct model *m, const struct backend_options *o)
{
    struct reader r = {.ops = ops, .model = m};
    struct err err = {.kind = ERR_NONE};
    const struct kv_cache_desc d = {
        .slots = 64, .ring = 64, .seqs = 1, .trunk = 64, .max_rows = 64, .max_probes = 1, .states = 1};
    if (!ops->open(&r.backend, o, &err) || !ops->load(r.backend, &m->desc, NULL, NULL, &r.weights, &err) ||
        !ops->kv_cache(r.weights, &d, &r.kv_cache, &err))
        fail_msg("%s", err.text);
    return r;
}

static void
reader_close(struct reader *r)
{
    r->ops->drop(r->kv_cache);
    r->ops->unload(r->weights);
    r->ops->close(r->backend);
}

/* Reads further tokens in one forward pass. */
static void
reader_read(struct reader *r, const token_t *tokens, uint32_t n)
{
    struct row rows[GOLDEN_TOKENS];
    slot_t tails[GOLDEN_TOKENS];
    assert_at_most(r->n + n, GOLDEN_TOKENS);
    for (uint32_t i = 0; i < r->n + n; i++)
        tails[i] = i;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t at = r->n + i;
        r->text[at] = tokens[i];
        rows[i] = (struct row){.token = tokens[i], .slot = at, .ring = at, .n_tail = at + 1};
    }
    r->n += n;
    const struct forward_pass forward = {
        .rows = rows, .n = n, .tails = tails, .n_tails = r->n, .to = r->model->desc.n_layers};
    assert_true(r->ops->embed(r->kv_cache, rows, n) && r->ops->step(r->kv_cache, &forward));
}

static void
reader_logits(struct reader *r, uint32_t position, uint32_t layer, float *logits)
{
    struct err err = {.kind = ERR_NONE};
    assert_true(r->ops->read_logits(r->kv_cache, position, layer, logits));
    assert_ok(r->ops->wait(r->kv_cache, &err), err);
}

double
golden_error_on(const struct backend_ops *ops, const struct model *m, const struct golden *g,
                const struct backend_options *o)
{
    static float logits[GOLDEN_VOCAB];
    struct reader reader = reader_open(ops, m, o);
    reader_read(&reader, g->tokens, g->n_tokens);
    double worst = 0;
    for (uint32_t r = 0; r < g->n_rows; r++) {
        reader_logits(&reader, g->rows[r].position, g->rows[r].layer, logits);
        double diff = 0, norm = 0;
        for (uint32_t v = 0; v < g->vocab; v++) {
            diff += (logits[v] - g->rows[r].logits[v]) * (logits[v] - g->rows[r].logits[v]);
            norm += g->rows[r].logits[v] * g->rows[r].logits[v];
        }
        worst = fmax(worst, sqrt(diff / norm));
    }
    reader_close(&reader);
    return worst;
}

/* Returns the token with the largest logit; if `fresh`, among tokens that are not in the text. */
static token_t
reader_says(struct reader *r, bool fresh)
{
    static float logits[GOLDEN_VOCAB];
    const struct probe probe = {.ring = r->n - 1, .layer = r->model->desc.n_layers, .temperature = 1};
    struct prediction prediction;
    assert_true(r->ops->predict(r->kv_cache, &probe, 1, &prediction));
    reader_logits(r, r->n - 1, r->model->desc.n_layers, logits);
    if (!fresh)
        return prediction.token;
    for (uint32_t i = 0; i < r->n; i++)
        logits[r->text[i]] = -INFINITY;
    token_t best = 0;
    for (uint32_t v = 1; v < r->model->desc.vocab; v++)
        if (logits[v] > logits[best])
            best = (token_t)v;
    return best;
}

static uint32_t
strays(struct reader *r, const struct golden_said *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const token_t said = reader_says(r, s->fresh);
        if (said != s->tokens[i] && said != s->second[i]) {
            print_message("token %u (%s) is %d, should be %d\n", i, s->fresh ? "fresh" : "greedy", said, s->tokens[i]);
            n++;
        }
        reader_read(r, &s->tokens[i], 1);
    }
    return n;
}

uint32_t
golden_strays(const struct backend_ops *ops, const struct model *m, const struct golden *g,
              const struct backend_options *o)
{
    uint32_t n = 0;
    struct reader reader = reader_open(ops, m, o);
    reader_read(&reader, g->tokens, g->n_tokens);
    assert_greater(g->n_said, 0);
    assert_at_most(m->desc.vocab, GOLDEN_VOCAB);
    for (uint32_t i = 0; i < g->n_said; i++) {
        assert_int_equal(g->said[i].n, GOLDEN_SAID);
        reader.n = g->n_tokens - 1; /* reads the last token again, because its logits are needed */
        reader_read(&reader, &g->tokens[g->n_tokens - 1], 1);
        n += strays(&reader, &g->said[i]);
    }
    reader_close(&reader);
    return n;
}

double
golden_error(const struct model *m, const struct golden *g, const char *isa, bool exact)
{
    return golden_error_on(&cpu_backend, m, g, &(struct backend_options){.threads = 2, .isa = isa, .exact = exact});
}

void
golden_assert_listed(const char *folder, const char *ending, const char *const *names, size_t n)
{
    char pattern[128];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s*%s", folder, ending);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *name = found.gl_pathv[i] + strlen(folder);
        const size_t length = strlen(name) - strlen(ending);
        bool listed = false;
        for (size_t j = 0; j < n && !listed; j++)
            listed = strlen(names[j]) == length && memcmp(names[j], name, length) == 0;
        if (!listed)
            fail_msg("%s: no test compares it", found.gl_pathv[i]);
    }
    globfree(&found);
}
