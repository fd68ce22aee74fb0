/* Attention over three splits and more, with the shapes of real models. It is compared with its definition in double,
 * and its bits for other distributions of splits and other rows. */
#include "tests/cuda/smoke/run.h"

#include "tests/rigs/cuda_attention.h"

struct shape {
    uint32_t heads, kv_heads, dim, window, n_trunk, n;
    bool exact;
    float alibi = 0; /* -log2 of the last slope */
};

static const struct shape tiny[] = {{4, 2, 64, 0, 2 * ATTEND_SPLIT + 70, 5, false},
                                    {2, 1, 10, 40, 2 * ATTEND_SPLIT + 2, 17, true, 8}};
static const struct shape real[] = {{32, 32, 128, 0, 3 * ATTEND_SPLIT + 31, 5, false},
                                    {32, 8, 128, 0, 5 * ATTEND_SPLIT + 1, 9, false},
                                    {8, 1, 256, 1500, 4 * ATTEND_SPLIT, 3, false},
                                    {6, 2, 64, 0, 3 * ATTEND_SPLIT - 1, 7, true}};
static const struct shape whole[] = {{32, 32, 128, 0, 7 * ATTEND_SPLIT + 31, 40, false}, /* Llama-2-7B */
                                     {32, 8, 128, 0, 15 * ATTEND_SPLIT + 1, 9, false},   /* Llama 3 8B, Qwen 3 */
                                     {28, 4, 128, 0, 3 * ATTEND_SPLIT - 2, 33, false},   /* Qwen 2 7B */
                                     {32, 8, 128, 4096, 12 * ATTEND_SPLIT, 8, false},    /* Mistral's window */
                                     {8, 1, 256, 0, 4 * ATTEND_SPLIT, 17, false},
                                     {14, 2, 64, 0, 8 * ATTEND_SPLIT - 1, 8, false},  /* Qwen 2 0.5B */
                                     {32, 32, 128, 0, 4 * ATTEND_SPLIT, 8, false, 8}, /* BLOOM 7B */
                                     {32, 32, 128, 0, 3 * ATTEND_SPLIT, 8, true}};

static bool
near_definition(struct smoke *s, const attention_case &c, const std::vector<uint32_t> &got, double *worst)
{
    const struct dev_model &m = c.a.model;
    std::vector<double> off(c.a.forward.n * m.heads);
#pragma omp parallel for
    for (uint32_t u = 0; u < c.a.forward.n * m.heads; u++) {
        const uint32_t i = u / m.heads, head = u % m.heads;
        std::vector<float> values;
        for (uint32_t d = 0; d < m.head_dim; d++)
            values.push_back(attended_value(c, got, i, head * m.head_dim + d));
        if (c.rows[i].from < c.a.layer)
            off[u] = difference(define_attention(c, c.rows[i], i, head), values.data());
        else
            for (float x : values)
                off[u] += x != 0; /* the layer does not compute this row */
    }
    for (uint32_t u = 0; u < off.size(); u++) {
        *worst = off[u] > *worst ? off[u] : *worst;
        if (!(off[u] < (m.exact ? 1e-5 : 1e-3)))
            return smoke_says(s, false,
                              "row %u, head %u of %u on %u, %u dimensions, %u positions: %.2g from the definition",
                              u / m.heads, u % m.heads, m.heads, m.kv_heads, m.head_dim, c.rows[0].n_trunk, off[u]);
    }
    return true;
}

/* Checks that a row has the same bits in a call of its own. */
static bool
same_alone(struct smoke *s, attention_case &c, const std::vector<uint32_t> &together, uint32_t i)
{
    const uint32_t values = c.a.model.heads * c.a.model.head_dim;
    struct attend_args alone = c.a;
    alone.forward.groups = c.own(std::vector<struct row_group>(1, {i, 1}));
    alone.forward.n_groups = 1;
    run_attention(alone);
    const std::vector<uint32_t> got = attended_words(c);
    for (uint32_t k = 0; k < values; k++)
        if (attended_value(c, got, i, k) != attended_value(c, together, i, k))
            return smoke_says(s, false, "row %u of %u has other bits alone (%u heads, %u dimensions)", i, c.a.forward.n,
                              c.a.model.heads, c.a.model.head_dim);
    return true;
}

static bool
check(struct smoke *s, const struct shape &k, double *worst)
{
    attention_case c(k.heads, k.kv_heads, k.dim, k.window, k.n_trunk, k.n, k.exact);
    c.a.apart = true;
    if (k.alibi > 0)
        c.use_alibi({k.alibi, 0, false});
    run_attention(c.a);
    const std::vector<uint32_t> apart = attended_words(c);
    for (uint32_t left : fetched(c.a.forward.kv_cache.arrivals, (size_t)k.n * k.heads))
        if (left != 0)
            return smoke_says(s, false, "splits that arrived are not counted back to 0 (%u)", left);
    if (!near_definition(s, c, apart, worst))
        return false;
    for (bool quarters : {false, true}) {
        SUCCEEDS(cudaMemset(c.a.forward.kv_cache.attended, 0, apart.size() * sizeof apart[0]));
        c.a.quarters = c.a.apart = quarters;
        run_attention(c.a);
        if (attended_words(c) != apart)
            return smoke_says(s, false,
                              "%u heads on %u, %u dimensions, %u positions: a block a %s gives other bits than a block "
                              "a split",
                              k.heads, k.kv_heads, k.dim, k.n_trunk, quarters ? "quarter" : "path");
    }
    c.a.quarters = false;
    for (uint32_t i = 0; i < k.n; i += 7)
        if (c.rows[i].from < c.a.layer && !same_alone(s, c, apart, i))
            return false;
    return true;
}

bool
smoke_attention(struct smoke *s)
{
    const struct shape *shapes = s->size == SMOKE_WHOLE ? whole : s->size == SMOKE_REAL ? real : tiny;
    const size_t n = s->size == SMOKE_WHOLE  ? sizeof whole / sizeof *whole
                     : s->size == SMOKE_REAL ? sizeof real / sizeof *real
                                             : sizeof tiny / sizeof *tiny;
    double worst[2] = {0, 0};
    uint32_t longest = 0;
    begin(s);
    for (size_t i = 0; i < n; i++) {
        if (!check(s, shapes[i], &worst[shapes[i].exact]))
            return false;
        longest = shapes[i].n_trunk > longest ? shapes[i].n_trunk : longest;
    }
    return smoke_says(s, true, "%zu shapes, up to %u positions, off by %.1g (F16), %.1g (F32), the same bits", n,
                      longest, worst[0], worst[1]);
}
