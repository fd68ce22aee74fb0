#include "engine/model/trained/accept_head.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/blocks.h"
#include "base/program.h"
#include "base/utf8.h"
#include "engine/model/files/safetensors.h"
#include "engine/model/model.h"
#include "kernels/openmp.h"
#include "kernels/tensor.h"

#define GROUP 32   /* outputs that are summed side by side */
#define WIDE  1024 /* from here on several threads are worth waking */

struct accept_predictor {
    struct blocks blocks; /* the memory of all the following */
    uint32_t width, groups, n_blocks, threads;
    const float *w[ACCEPT_HEAD_BLOCKS], *b[ACCEPT_HEAD_BLOCKS]; /* (groups, width, GROUP), (groups, GROUP) */
    float *values;                                              /* owns them */
    float *now, *next; /* (groups, GROUP) x_i, x_{i+1}; zeros after `width` values */
    double *v, c;      /* (width) of z_accept - z_reject */
};

/* out[o] = Σ_k w[k][o] x[k] for the group's outputs; w (n, GROUP). Each output adds its products in the order of the
 * inputs. */
static void
sum_group(const float *w, const float *x, uint32_t n, float out[GROUP])
{
    float sum[GROUP] = {0};
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < GROUP; i++)
            sum[i] += w[(size_t)k * GROUP + i] * x[k];
    memcpy(out, sum, sizeof sum);
}

static size_t
block_values(uint32_t width)
{
    const size_t groups = (width + GROUP - 1) / GROUP;
    return groups * GROUP * ((size_t)width + 1);
}

/* Bytes that one takes, to within a page; n_own: blocks with weights of their own. */
static uint64_t
accept_predictor_bytes(uint32_t width, uint32_t n_own)
{
    return (uint64_t)n_own * block_values(width) * sizeof(float) + width * (2 * sizeof(float) + sizeof(double));
}

/* Copies a block's weights into the order of the groups; values after the last output stay 0. */
static void
lay_out(const struct accept_block *block, uint32_t width, float *to)
{
    const uint32_t groups = (width + GROUP - 1) / GROUP;
    for (uint32_t o = 0; o < width; o++) {
        float *group = to + (size_t)(o / GROUP) * width * GROUP + o % GROUP;
        for (uint32_t k = 0; k < width; k++)
            group[(size_t)k * GROUP] = block->w[(size_t)o * width + k];
    }
    memcpy(to + (size_t)groups * width * GROUP, block->b, width * sizeof *to);
}

bool
accept_predictor_open(struct accept_predictor **out, const struct accept_head *h, uint32_t threads, struct err *err)
{
    *out = NULL;
    struct accept_predictor *p = calloc(1, sizeof *p);
    if (p == NULL)
        return err_set(err, ERR_WORK, "out of memory for the acceptance head");
    const uint32_t own = h->shared ? 1 : h->n_blocks;
    const size_t block = block_values(h->width);
    p->width = h->width;
    p->groups = (h->width + GROUP - 1) / GROUP;
    p->n_blocks = h->n_blocks;
    p->threads = h->width >= WIDE && threads > 1 ? threads : 1;
    p->values = blocks_take(&p->blocks, own * block + 1, sizeof *p->values);
    p->now = blocks_take(&p->blocks, (size_t)p->groups * GROUP, sizeof *p->now);
    p->next = blocks_take(&p->blocks, (size_t)p->groups * GROUP, sizeof *p->next);
    p->v = blocks_take(&p->blocks, h->width, sizeof *p->v);
    if (p->blocks.starved) {
        accept_predictor_close(p);
        return err_set(err, ERR_WORK, "out of memory for the acceptance head");
    }
    for (uint32_t i = 0; i < own; i++)
        lay_out(&h->block[i], h->width, p->values + i * block);
    for (uint32_t i = 0; i < h->n_blocks; i++) {
        p->w[i] = p->values + (h->shared ? 0 : i * block);
        p->b[i] = p->w[i] + (size_t)p->groups * h->width * GROUP;
    }
    for (uint32_t k = 0; k < h->width; k++)
        p->v[k] = (double)h->v[h->width + k] - (double)h->v[k];
    p->c = (double)h->c[1] - (double)h->c[0];
    *out = p;
    return true;
}

void
accept_predictor_close(struct accept_predictor *p)
{
    if (p == NULL)
        return;
    blocks_free(&p->blocks);
    free(p);
}

/* next = now + SiLU(W now + b) */
static void
run_block(const struct accept_predictor *p, const float *w, const float *b)
{
    PARALLEL(omp parallel for num_threads(p->threads) if (p->threads > 1))
    for (uint32_t g = 0; g < p->groups; g++) {
        const size_t at = (size_t)g * GROUP;
        float z[GROUP];
        sum_group(w + at * p->width, p->now, p->width, z);
        for (size_t i = 0; i < GROUP; i++) {
            z[i] += b[at + i];
            p->next[at + i] = p->now[at + i] + z[i] / (1 + expf(-z[i]));
        }
    }
}

double
accept_predictor_ask(struct accept_predictor *p, const float *x)
{
    memcpy(p->now, x, p->width * sizeof *x);
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        run_block(p, p->w[i], p->b[i]);
        float *was = p->now;
        p->now = p->next;
        p->next = was;
    }
    double difference = p->c;
    for (uint32_t k = 0; k < p->width; k++)
        difference += p->v[k] * (double)p->now[k];
    return 1 / (1 + exp(-difference));
}

#define FORMAT "specscope acceptance head 1"

const struct file_kind accept_head_file = {
    .what = "an acceptance head of specscope", .skipped = 8, .begins = "{\"__metadata__\":{\"format\":\"" FORMAT "\""};

bool
accept_head_new(struct accept_head **out, uint32_t width, uint32_t n_blocks, bool shared, struct err *err)
{
    *out = NULL;
    if (n_blocks > ACCEPT_HEAD_BLOCKS)
        return err_set(err, ERR_USAGE, "an acceptance head has at most %d blocks, not %" PRIu32, ACCEPT_HEAD_BLOCKS,
                       n_blocks);
    struct accept_head *h = calloc(1, sizeof *h);
    if (h == NULL)
        return err_set(err, ERR_WORK, "out of memory for an acceptance head");
    const size_t block = (size_t)width * width + width, own = shared && n_blocks > 0 ? 1 : n_blocks;
    h->width = width;
    h->n_blocks = n_blocks;
    h->shared = shared && n_blocks > 1;
    h->n_values = own * block + 2 * (size_t)width + 2;
    h->values = calloc(h->n_values, sizeof *h->values);
    if (h->values == NULL) {
        free(h);
        return err_set(err, ERR_WORK, "out of memory for an acceptance head of %" PRIu32 " blocks of width %" PRIu32,
                       n_blocks, width);
    }
    for (uint32_t i = 0; i < n_blocks; i++) {
        float *values = h->values + (h->shared ? 0 : i * block);
        h->block[i] = (struct accept_block){.w = values, .b = values + (size_t)width * width};
    }
    h->v = h->values + own * block;
    h->c = h->v + 2 * (size_t)width;
    *out = h;
    return true;
}

void
accept_head_free(struct accept_head *h)
{
    if (h == NULL)
        return;
    free(h->values);
    free(h);
}

uint64_t
accept_head_bytes(uint32_t width, uint32_t n_blocks, bool shared)
{
    const uint32_t own = shared && n_blocks > 0 ? 1 : n_blocks;
    const uint64_t values = (uint64_t)own * width * ((uint64_t)width + 1) + 2 * (uint64_t)width + 2;
    return values * sizeof(float) + accept_predictor_bytes(width, own);
}

/* ---- the file ---- */

/* Tensors of the file, at most 2 * (ACCEPT_HEAD_BLOCKS + 1). Returns how many. */
static size_t
parts_of(const struct accept_head *h, struct safetensors_part *parts)
{
    size_t n = 0;
    for (uint32_t i = 0; i < (h->shared ? 1 : h->n_blocks); i++) {
        parts[n] = (struct safetensors_part){.rows = h->width, .cols = h->width, .values = h->block[i].w};
        snprintf(parts[n++].name, sizeof parts->name, "model.%" PRIu32 ".linear.weight", i);
        parts[n] = (struct safetensors_part){.cols = h->width, .values = h->block[i].b};
        snprintf(parts[n++].name, sizeof parts->name, "model.%" PRIu32 ".linear.bias", i);
    }
    parts[n] = (struct safetensors_part){.rows = 2, .cols = h->width, .values = h->v};
    snprintf(parts[n++].name, sizeof parts->name, "model.%" PRIu32 ".weight", h->n_blocks);
    parts[n] = (struct safetensors_part){.cols = 2, .values = h->c};
    snprintf(parts[n++].name, sizeof parts->name, "model.%" PRIu32 ".bias", h->n_blocks);
    return n;
}

bool
accept_head_write(const struct accept_head *h, const char *path, struct err *err)
{
    struct safetensors_part parts[2 * (ACCEPT_HEAD_BLOCKS + 1)];
    char draft[24], target[24], layers[16];
    snprintf(draft, sizeof draft, "%016" PRIx64, h->draft_hash);
    snprintf(layers, sizeof layers, "%" PRIu32, h->draft_layers);
    snprintf(target, sizeof target, "%016" PRIx64, h->target_hash);
    const struct safetensors_note notes[] = {{"format", FORMAT},    {"draft", h->draft},     {"draft_hash", draft},
                                             {"target", h->target}, {"target_hash", target}, {"draft_layers", layers}};
    const size_t n_notes = sizeof notes / sizeof *notes - (h->draft_layers == 0); /* the last one is of few */
    return safetensors_write(path, notes, n_notes, parts, parts_of(h, parts), err);
}

static bool
check_draft(struct accept_head *h, const struct safetensors *s, const char *path, const struct accept_whose *whose,
            struct err *err)
{
    const struct model *draft = whose->draft;
    const char *name = safetensors_metadata(s, "draft"), *hash = safetensors_metadata(s, "draft_hash");
    const char *target = safetensors_metadata(s, "target"), *target_hash = safetensors_metadata(s, "target_hash");
    const char *layers = safetensors_metadata(s, "draft_layers");
    name = name != NULL ? name : draft->name;
    target = target != NULL ? target : "";
    printable_line(h->draft, sizeof h->draft, name, strlen(name));
    printable_line(h->target, sizeof h->target, target, strlen(target));
    h->draft_hash = hash != NULL ? strtoull(hash, NULL, 16) : 0;
    h->target_hash = target_hash != NULL ? strtoull(target_hash, NULL, 16) : 0;
    h->draft_layers = layers != NULL ? (uint32_t)strtoul(layers, NULL, 10) : 0;
    if (h->draft_hash == 0 || (h->draft_hash == draft->hash && h->draft_layers == whose->layers))
        return true;
    char is[32], other[MODEL_NOT];
    if (whose->layers == 0 && h->draft_layers == 0)
        return err_set(err, ERR_WORK, "%s: this acceptance head was trained for %s; train one with `%s train accept`",
                       path, model_not(draft, h->draft, other, sizeof other), program_name());
    snprintf(is, sizeof is, "self:%" PRIu32, whose->layers);
    return err_set(err, ERR_WORK,
                   "%s: this acceptance head was trained for another draft model (%.48s; this is %s); train one with "
                   "`%s train accept`",
                   path, h->draft, whose->layers > 0 ? is : draft->name, program_name());
}

/* The number of blocks is the index of the last linear layer; those that are missing in between are the first one. */
static bool
find_shape(const struct safetensors *s, const char *path, uint32_t width, uint32_t *n_blocks, bool *shared,
           struct err *err)
{
    char name[64];
    for (uint32_t d = 0; d <= ACCEPT_HEAD_BLOCKS; d++) {
        snprintf(name, sizeof name, "model.%" PRIu32 ".weight", d);
        const struct safetensor *last = safetensors_find(s, name);
        if (last == NULL)
            continue;
        if (last->rows != 2 || last->cols != width)
            return err_set(err, ERR_WORK,
                           "%s: %s is (%" PRIu64 ", %" PRIu64 "), a head of this draft model has (2, %" PRIu32
                           "); is it another model's?",
                           path, name, last->rows, last->cols, width);
        *n_blocks = d;
        *shared = d > 1 && safetensors_find(s, "model.1.linear.weight") == NULL;
        return true;
    }
    return err_set(err, ERR_WORK,
                   "%s: not an acceptance head: no tensor model.N.weight with N from 0 to %d; `%s train accept` "
                   "makes one",
                   path, ACCEPT_HEAD_BLOCKS, program_name());
}

static bool
read_file(struct accept_head **out, const struct safetensors *s, const char *path, const struct accept_whose *whose,
          struct err *err)
{
    struct accept_head *h = NULL;
    uint32_t n_blocks = 0;
    bool shared = false;
    bool ok = find_shape(s, path, whose->draft->desc.width, &n_blocks, &shared, err) &&
              accept_head_new(&h, whose->draft->desc.width, n_blocks, shared, err) &&
              check_draft(h, s, path, whose, err);
    struct safetensors_part parts[2 * (ACCEPT_HEAD_BLOCKS + 1)];
    const size_t n = ok ? parts_of(h, parts) : 0;
    for (size_t i = 0; i < n && ok; i++)
        ok = safetensors_read_part(s, &parts[i], err);
    if (!ok) {
        accept_head_free(h);
        return false;
    }
    snprintf(h->path, sizeof h->path, "%s", path);
    h->hash = hash_map(HASH_START, s->map, s->file_bytes, s->data_start);
    *out = h;
    return true;
}

bool
accept_head_parse(struct accept_head **out, const char *path, const void *bytes, size_t len,
                  const struct accept_whose *whose, struct err *err)
{
    *out = NULL;
    struct safetensors *s;
    if (!safetensors_parse(&s, path, bytes, len, err))
        return false;
    const bool ok = read_file(out, s, path, whose, err);
    safetensors_close(s);
    return ok;
}

bool
accept_head_read(struct accept_head **out, const char *path, const struct accept_whose *whose, struct err *err)
{
    return accept_head_parse(out, path, NULL, 0, whose, err);
}

bool
accept_head_measure(const char *path, const struct model *draft, uint32_t *n_blocks, uint64_t *bytes, struct err *err)
{
    struct safetensors *s;
    if (!safetensors_open(&s, path, err))
        return false;
    bool shared;
    const bool ok = find_shape(s, path, draft->desc.width, n_blocks, &shared, err);
    if (ok)
        *bytes = accept_head_bytes(draft->desc.width, *n_blocks, shared);
    safetensors_close(s);
    return ok;
}
