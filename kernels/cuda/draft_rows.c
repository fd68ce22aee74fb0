/* Sets of tokens (kernels/backend.h): their rows of the head, which are gathered on the device, and the products with
 * them. The rows of the largest base of all sets are stored once, those of each set's recent tokens by themselves. An
 * exact head is read where it is. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/requests.h"

#define RECENT_STRIPS (DRAFT_RECENT / STRIP)

/* ---- memory ---- */

bool
cuda_draft_open(struct kv_cache *s, struct err *err)
{
    const size_t vocab = s->desc.sets > 0 ? s->weights->sizes.vocab * sizeof *s->desc.rank : 0;
    if (vocab == 0)
        return true;
    s->sets = calloc(s->desc.sets, sizeof *s->sets);
    if (s->sets == NULL)
        return err_set(err, ERR_WORK, "not enough memory for draft vocabularies");
    return memory_take(&s->memory, s->backend, vocab, false, "draft vocabularies", (void **)&s->rank, err) &&
           cuda_did(s->backend, cudaMemcpy(s->rank, s->desc.rank, vocab, cudaMemcpyHostToDevice), "opening a context",
                    err);
}

void
cuda_draft_close(struct kv_cache *s)
{
    for (uint32_t i = 0; s->sets != NULL && i < s->desc.sets; i++)
        memory_free(&s->sets[i].memory);
    memory_free(&s->base_memory);
    free(s->sets);
}

/* Takes memory for so many strips of rows of the head. */
static bool
take_strips(struct kv_cache *s, struct memory *memory, uint32_t strips, const token_t *ids, struct dev_matrix *out)
{
    static const char what[] = "a draft vocabulary";
    struct dev_matrix m = s->weights->sizes.head;
    const bool packed = m.type != WEIGHT_F32;
    m.ids = ids;
    m.strips = strips;
    const size_t quants = packed ? strips * strip_quants(m.type, m.units) : 0,
                 scales = packed ? strips * strip_scales(m.type, m.units) : 0;
    if ((quants > 0 && !memory_take(memory, s->backend, quants, false, what, (void **)&m.quants, &s->err)) ||
        (scales > 0 && !memory_take(memory, s->backend, scales, false, what, (void **)&m.scales, &s->err))) {
        memory_free(memory);
        s->failed = true;
        return false;
    }
    *out = m;
    return true;
}

/* ---- gathering ---- */

/* Queues the gathering of strips [first, last) of a matrix whose rows are those of n tokens. */
static bool
gather(struct kv_cache *s, const struct dev_matrix *to, uint32_t n, uint32_t first, uint32_t last)
{
    const struct gather_args a = {
        .from = s->weights->sizes.head, .to = *to, .ids = to->ids, .n = n, .first = first, .strips = last - first};
    return a.from.type == WEIGHT_F32 || a.strips == 0 ||
           cuda_kv_cache_did(s, launch_gather(a, s->stream), "gathering a draft vocabulary");
}

/* Gathers the first `base` rows by rank, unless they are there. The earlier ones are released when queued work has read
 * them. */
static bool
hold_base(struct kv_cache *s, uint32_t base)
{
    struct memory memory = {0}, before = s->base_memory;
    struct dev_matrix m;
    const uint32_t strips = (base + STRIP - 1) / STRIP, all = strips * STRIP, vocab = s->weights->sizes.vocab;
    if (strips <= s->base.strips)
        return true;
    if (!take_strips(s, &memory, strips, s->rank, &m))
        return false;
    s->base = m;
    s->base_memory = memory;
    const bool ok = gather(s, &m, all < vocab ? all : vocab, 0, strips) &&
                    cuda_kv_cache_did(s, cudaStreamSynchronize(s->stream), "gathering a draft vocabulary");
    memory_free(&before);
    return ok;
}

/* Copies the tokens whose place has another token than before, and gathers their rows. */
static bool
hold_recent(struct kv_cache *s, struct draft_set *to, const token_t *recent, uint32_t n)
{
    uint32_t first = 0, last = n;
    if (to->rows.strips == 0 && (!memory_take(&to->memory, s->backend, DRAFT_RECENT * sizeof *to->ids, false,
                                              "a draft vocabulary", (void **)&to->ids, &s->err) ||
                                 !take_strips(s, &to->memory, RECENT_STRIPS, to->ids, &to->rows))) {
        s->failed = true;
        return false;
    }
    while (first < n && first < to->n && recent[first] == to->recent[first])
        first++;
    while (last > first && last <= to->n && recent[last - 1] == to->recent[last - 1])
        last--;
    if (first == last)
        return true;
    const size_t bytes = (last - first) * sizeof *recent;
    const token_t *const there = cuda_kv_cache_copy(s, recent + first, last - first, sizeof *recent);
    if (!cuda_kv_cache_send(s) ||
        !cuda_kv_cache_did(s, cudaMemcpyAsync(to->ids + first, there, bytes, cudaMemcpyDeviceToDevice, s->stream),
                           "copying recent tokens") ||
        !gather(s, &to->rows, n, first / STRIP, (last + STRIP - 1) / STRIP))
        return false;
    memcpy(to->recent + first, recent + first, bytes);
    return true;
}

bool
cuda_draft_set(struct kv_cache *s, uint32_t set, uint32_t base, const token_t *recent, size_t n)
{
    if (!request_draft_set(s->limits, set, base, recent, n))
        return false;
    struct draft_set *to = &s->sets[set - 1];
    if (cuda_kv_cache_alive(s) && hold_base(s, base) && (n == 0 || hold_recent(s, to, recent, (uint32_t)n))) {
        to->base = base;
        to->n = (uint32_t)n;
    }
    return true;
}

/* ---- products ---- */

struct dev_set
cuda_draft_outputs(const struct kv_cache *s, uint32_t set)
{
    const struct draft_set *of = set > 0 ? &s->sets[set - 1] : NULL;
    if (of == NULL || of->base + of->n == 0)
        return (struct dev_set){0};
    return (struct dev_set){.number = set, .base = of->base, .n = of->base + of->n, .rank = s->rank, .recent = of->ids};
}

/* Returns the first n rows of a gathered matrix. */
static struct dev_matrix
first_rows(struct dev_matrix m, uint32_t n)
{
    m.rows = n;
    m.strips = (n + STRIP - 1) / STRIP;
    return m;
}

static struct dev_matrix
recent_rows(const struct kv_cache *s, const struct dev_set *set)
{
    return first_rows(s->sets[set->number - 1].rows, set->n - set->base);
}

const struct dev_product *
cuda_draft_probe(struct kv_cache *s, const struct dev_set *set)
{
    struct dev_product p = s->weights->products[PROBE_PRODUCT];
    p.n_matrices = 0;
    if (set->number == 0)
        return NULL;
    if (set->base > 0)
        p.matrices[p.n_matrices++] = first_rows(s->base, set->base);
    if (set->n > set->base)
        p.matrices[p.n_matrices++] = recent_rows(s, set);
    return cuda_kv_cache_copy(s, &p, 1, sizeof p);
}

void
cuda_draft_parts(struct kv_cache *s, struct head_args *a)
{
    const struct head_row *rows = s->head_rows;
    uint32_t first = a->n, last = 0, base = 0;
    void *host;
    for (uint32_t i = 0; i < a->n; i++)
        if (rows[i].set.number > 0) {
            first = i < first ? i : first;
            last = i + 1;
            base = rows[i].set.base > base ? rows[i].set.base : base;
        }
    if (last == 0)
        return;
    a->parts_there = cuda_kv_cache_take(s, &s->args, 1 + (size_t)a->n, sizeof *a->parts, &host);
    struct head_part *parts = host;
    a->parts = parts;
    if (parts != NULL && base > 0)
        parts[a->n_parts++] = (struct head_part){first_rows(s->base, base), first, last - first, PART_BASE};
    for (uint32_t i = 0, next; parts != NULL && i < a->n; i = next) {
        const struct dev_set *set = &rows[i].set;
        for (next = i + 1; next < a->n && rows[next].set.number == set->number;)
            next++;
        if (set->number == 0)
            parts[a->n_parts++] = (struct head_part){s->weights->sizes.head, i, next - i, PART_WHOLE};
        else if (set->n > set->base)
            parts[a->n_parts++] = (struct head_part){recent_rows(s, set), i, next - i, PART_RECENT};
    }
}
