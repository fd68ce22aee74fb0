/* Attention of a random tree of rows after a trunk, as a kernel of its own, and its definition. The including file must
 * define run(kernel, arguments, shared memory). */
#pragma once

#include <algorithm>

#include "kernels/cuda/device/attention.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/half.h"
#include "tests/rigs/cuda_numbers.h"

struct attend_args {
    struct forward_args forward;
    struct dev_model model;
    uint32_t layer, splits, window;
    bool quarters; /* parts are quarters of splits */
    bool apart;
    const float *slopes; /* (heads), or NULL */
};

template <class KV, int PAIRS, int DIMS>
static __global__ void
__launch_bounds__(BLOCK_THREADS, 1) attend_all(struct attend_args a)
{
    SHARED_MEMORY(struct attend_place, place);
    const uint32_t part = a.quarters ? ATTEND_QUARTER : ATTEND_SPLIT;
    const struct attend_scene c = {&a.forward, &a.model, a.layer, part,    a.splits * (ATTEND_SPLIT / part),
                                   a.window,   a.apart,  NULL,    a.slopes};
    attend_rows<KV, PAIRS, DIMS>(c, place);
}

static void
run_attention(const struct attend_args &a)
{
    if (a.model.exact)
        run(a.model.head_dim <= 128 ? attend_all<float, ATTEND_PAIRS, 4> : attend_all<float, ATTEND_PAIRS / 2, 8>, a,
            ATTEND_SHARED);
    else
        run(a.model.head_dim <= 128 ? attend_all<uint16_t, ATTEND_PAIRS, 4> : attend_all<uint16_t, ATTEND_PAIRS / 2, 8>,
            a, ATTEND_SHARED);
}

/* A tree of rows after a trunk, with random keys, values and queries. */
struct attention_case {
    struct attend_args a = {};
    std::vector<struct row> rows;
    std::vector<slot_t> tails, trunk;
    std::vector<struct row_group> groups;
    std::vector<float> keys, values, q; /* after rounding */
    std::vector<void *> owned;

    template <class T>
    T *
    own(const std::vector<T> &from)
    {
        T *p = on_device(from);
        owned.push_back(p);
        return p;
    }
    attention_case(uint32_t heads, uint32_t kv_heads, uint32_t dim, uint32_t window, uint32_t n_trunk, uint32_t n,
                   bool exact)
    {
        struct dev_kv_cache &s = a.forward.kv_cache;
        a.model.heads = heads;
        a.model.kv_heads = kv_heads;
        a.model.head_dim = dim;
        a.window = window;
        a.model.exact = exact;
        a.layer = 2;
        s.slots = n_trunk + n + 5;
        s.trunk_room = n_trunk + 3;
        for (slot_t slot = 0; slot < s.slots; slot++)
            trunk.push_back(slot);
        for (uint32_t i = 0; i + 1 < s.slots; i++)
            std::swap(trunk[i], trunk[i + below(s.slots - i)]);
        const std::vector<slot_t> places(trunk.begin() + n_trunk, trunk.end());
        grow(n_trunk, n, places);
        trunk.resize(s.trunk_room);
        fill(n, exact);
    }
    /* Makes scores that grow with positions. */
    void
    use_alibi(const struct alibi &form)
    {
        std::vector<float> slopes;
        for (uint32_t h = 0; h < a.model.heads; h++)
            slopes.push_back(form_slope(&form, h, a.model.heads));
        a.model.form.alibi = form;
        a.slopes = own(slopes);
    }
    attention_case(const attention_case &) = delete;
    ~attention_case()
    {
        for (void *p : owned)
            cudaFree(p);
    }

  private:
    /* Makes chains; some end and continue from their own beginnings. */
    void
    grow(uint32_t n_trunk, uint32_t n, const std::vector<slot_t> &places)
    {
        for (uint32_t i = 0; i < n; i++) {
            const bool follows = i > 0 && below(4) > 0;
            struct row r = {};
            r.slot = places[i];
            r.n_trunk = n_trunk;
            r.from = below(5) == 0 ? 2 : below(2); /* 2: the layer does not compute the row */
            if (follows) {
                r.tail = rows.back().tail;
                r.n_tail = rows.back().n_tail + 1;
                tails.push_back(r.slot);
            } else { /* the parent of row `on`, or only the trunk */
                r.tail = (uint32_t)tails.size();
                r.n_tail = 1;
                if (i > 0 && below(2)) {
                    const struct row on = rows[below(i)];
                    for (uint32_t t = 0; t < on.n_tail; t++)
                        tails.push_back(tails[on.tail + t]);
                    r.n_tail = on.n_tail + 1;
                }
                tails.push_back(r.slot);
            }
            if (i > 0 && groups.back().n < ATTEND_PAIRS)
                groups.back().n++;
            else
                groups.push_back({i, 1});
            rows.push_back(r);
        }
    }
    void *
    round_and_own(std::vector<float> &x, uint32_t dim, uint32_t room, bool exact)
    {
        std::vector<uint16_t> halves;
        for (size_t i = 0; i < x.size(); i++) {
            float &v = x[i];
            v = i % room < dim ? uniform() : 0;
            if (!exact) {
                halves.push_back(f32_to_f16(v));
                v = f16_to_f32(halves.back());
            }
        }
        return exact ? (void *)own(x) : (void *)own(halves);
    }
    void
    fill(uint32_t n, bool exact)
    {
        struct dev_kv_cache &s = a.forward.kv_cache;
        const struct dev_model &m = a.model;
        const uint32_t dim = m.head_dim, room = head_room(dim);
        keys.resize((size_t)2 * s.slots * m.kv_heads * room);
        values.resize(keys.size());
        q.resize((size_t)n * m.heads * m.head_dim);
        s.keys = round_and_own(keys, dim, room, exact);
        s.values = round_and_own(values, dim, room, exact);
        s.q = (float *)round_and_own(q, 1, 1, true);
        s.trunk = own(trunk);
        s.partials =
            own(std::vector<float>((size_t)n * m.heads * 4 * (s.slots / ATTEND_SPLIT + 2) * (2 + m.head_dim), NAN));
        s.arrivals = own(std::vector<uint32_t>((size_t)n * m.heads, 0));
        s.attended = own(std::vector<float>((size_t)(n + 31) / 32 * 32 * units_of(m.heads * m.head_dim) * UNIT, 0));
        a.forward.rows = own(rows);
        a.forward.tails = own(tails);
        a.forward.groups = own(groups);
        a.forward.n = n;
        a.forward.n_groups = (uint32_t)groups.size();
        for (const struct row &r : rows)
            a.splits = std::max(a.splits, (r.n_trunk + r.n_tail - 1) / ATTEND_SPLIT + 1);
    }
};

/* (whole tiles of rows, heads * head_dim in whole units); F16 uses half of the bytes */
static std::vector<uint32_t>
attended_words(const attention_case &c)
{
    const struct dev_model &m = c.a.model;
    return fetched((const uint32_t *)c.a.forward.kv_cache.attended,
                   (size_t)(c.a.forward.n + 31) / 32 * 32 * units_of(m.heads * m.head_dim) * UNIT);
}

static float
attended_value(const attention_case &c, const std::vector<uint32_t> &words, uint32_t row, uint32_t k)
{
    const uint32_t cols = c.a.model.heads * c.a.model.head_dim;
    return c.a.model.exact ? ((const float *)words.data())[(size_t)row * cols + k]
                           : f16_to_f32(((const uint16_t *)words.data())[packed_place(units_of(cols), row, k)]);
}

/* Returns what ALiBi adds to the score at a position for the row at `own`, computed from the rounded numbers where the
 * kernel rounds. */
static double
define_alibi_bias(const struct alibi &form, uint32_t head, uint32_t heads, uint32_t own, uint32_t position)
{
    if (!(form.most > 0))
        return 0;
    const float slope = form_slope(&form, head, heads);
    const double scale = (double)form_factor(form.scale);
    if (form.in_bf16)
        return scale * ((double)bf16_nearest(slope * (float)position) - (double)bf16_nearest(slope * (float)own));
    return scale * (double)slope * ((double)position - (double)own);
}

/* Returns softmax(q k) v of one head of a row. */
static std::vector<double>
define_attention(const attention_case &c, const struct row &r, uint32_t i, uint32_t head)
{
    const struct dev_model &m = c.a.model;
    const uint32_t last = r.n_trunk + r.n_tail - 1, window = c.a.window,
                   first = window > 0 && last >= window ? last + 1 - window : 0;
    const float *q = &c.q[((size_t)i * m.heads + head) * m.head_dim];
    std::vector<double> out(m.head_dim);
    double sum = 0;
    for (uint32_t p = first; p <= last; p++) {
        const slot_t slot = p < r.n_trunk ? c.trunk[p] : c.tails[r.tail + p - r.n_trunk];
        const size_t at = ((c.a.forward.kv_cache.slots + (size_t)slot) * m.kv_heads + head / (m.heads / m.kv_heads)) *
                          head_room(m.head_dim);
        double z = 0;
        for (uint32_t d = 0; d < m.head_dim; d++)
            z += (double)q[d] * (double)c.keys[at + d];
        const double cap = (double)m.form.attention_cap,
                     alibi_bias = define_alibi_bias(m.form.alibi, head, m.heads, last, p);
        const double weight = exp((cap > 0 ? cap * tanh(z / cap) : z) + alibi_bias);
        for (uint32_t d = 0; d < m.head_dim; d++)
            out[d] += weight * (double)c.values[at + d];
        sum += weight;
    }
    for (double &x : out)
        x /= sum;
    return out;
}
