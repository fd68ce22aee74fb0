#include "kernels/cuda/pack.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/pack_bytes.h"
#include "kernels/cuda/pack_pairs.h"
#include "kernels/half.h"
#include "kernels/openmp.h"
#include "kernels/synthetic.h"
#include "kernels/tensor.h"

#define UNIT_VALUES (STRIP * UNIT)
#define Q8_BYTES    34 /* in a file: an F16 scale, 32 int8 */

enum weight_type
pack_type(enum weight_type type, bool exact)
{
    if (exact)
        return WEIGHT_F32;
    switch (type) {
    case WEIGHT_F16:
    case WEIGHT_BF16:
    case WEIGHT_Q8_0:
    case WEIGHT_Q4_0:
    case WEIGHT_Q4_K:
    case WEIGHT_Q6_K: return type;
    default: return packs_as_bytes(type) ? WEIGHT_Q8_0 : WEIGHT_F16;
    }
}

/* ---- plans ---- */

bool
pack_plain(struct packing *p, const struct tensor *t, bool exact)
{
    *p = (struct packing){.parts = {t},
                          .n_parts = 1,
                          .type = pack_type(t->type, exact),
                          .rows = t->rows,
                          .cols = t->cols,
                          .strips = t->rows / STRIP + (t->rows % STRIP != 0),
                          .units = units_of(t->cols)};
    return true;
}

static bool
take_source(struct packing *p, uint32_t strips)
{
    p->strips = strips;
    p->source = malloc((size_t)strips * STRIP * sizeof *p->source);
    if (p->source == NULL)
        return false;
    memset(p->source, 0xff, (size_t)strips * STRIP * sizeof *p->source); /* padding */
    return true;
}

bool
pack_heads(struct packing *p, const struct tensor *t, uint32_t head_dim, uint32_t rope_dims, enum rope_layout rope,
           bool exact)
{
    pack_plain(p, t, exact);
    if (exact || (rope_dims == 0 && head_dim % STRIP == 0))
        return true;
    const uint32_t heads = t->rows / head_dim, pairs = head_dim / 2, rotated = rope_dims / 2;
    const uint32_t per_head = (pairs + STRIP / 2 - 1) / (STRIP / 2);
    if (!take_source(p, heads * per_head))
        return false;
    for (uint32_t h = 0; h < heads; h++)
        for (uint32_t i = 0; i < pairs; i++) {
            uint32_t *strip = p->source + ((size_t)h * per_head + i / (STRIP / 2)) * STRIP;
            const bool apart = i < rotated && rope == ROPE_HALVES;
            const uint32_t a = apart ? i : 2 * i, b = apart ? i + rotated : a + 1;
            strip[i % (STRIP / 2)] = h * head_dim + a;
            strip[i % (STRIP / 2) + STRIP / 2] = h * head_dim + b;
        }
    return true;
}

bool
pack_gate_up(struct packing *p, const struct tensor *gate, const struct tensor *up, bool exact)
{
    const uint32_t ffn = gate->rows;
    pack_plain(p, gate, exact);
    p->parts[p->n_parts++] = up;
    p->rows = 2 * ffn;
    if (pack_type(up->type, exact) != p->type) /* one matrix has one type */
        p->type = WEIGHT_F16;
    if (exact) {
        p->strips = p->rows / STRIP + (p->rows % STRIP != 0);
        return true;
    }
    if (!take_source(p, (ffn + STRIP / 2 - 1) / (STRIP / 2)))
        return false;
    for (uint32_t i = 0; i < ffn; i++) {
        uint32_t *strip = p->source + (size_t)(i / (STRIP / 2)) * STRIP;
        strip[i % (STRIP / 2)] = i;
        strip[i % (STRIP / 2) + STRIP / 2] = ffn + i;
    }
    return true;
}

/* ---- sizes ---- */

size_t
pack_quant_bytes(const struct packing *p)
{
    return p->type == WEIGHT_F32 ? (size_t)p->cols * STRIP * sizeof(float) : strip_quants(p->type, p->units);
}

size_t
pack_scale_bytes(const struct packing *p)
{
    return p->type == WEIGHT_F32 ? 0 : strip_scales(p->type, p->units);
}

/* ---- one row at a time ---- */

/* Packed row -> the tensor and its row; false: padding. */
static bool
find_row(const struct packing *p, uint32_t packed, const struct tensor **t, uint32_t *row)
{
    uint32_t output = p->source != NULL ? p->source[packed] : packed;
    if (output >= p->rows)
        return false;
    *t = p->parts[0];
    if (output >= p->parts[0]->rows) {
        output -= p->parts[0]->rows;
        *t = p->parts[1];
    }
    *row = output;
    return true;
}

/* Columns 2i and 2i+1 are neighbours in a unit too, so they move together. Values beyond the last column stay zero. */
static void
spread_halves(const struct packing *p, const uint32_t *places, const uint16_t *from, uint16_t *strip)
{
    for (uint32_t k = 0; k < p->cols; k += 2)
        memcpy(strip + (size_t)(k / UNIT) * UNIT_VALUES + places[k % UNIT], from + k,
               (k + 1 < p->cols ? 2 : 1) * sizeof *from);
}

static void
spread_bytes(const struct packing *p, uint32_t r, const uint32_t *places, const unsigned char *from,
             unsigned char *strip, uint16_t *scales)
{
    for (uint32_t u = 0; u < p->cols / UNIT; u++, from += Q8_BYTES) {
        memcpy(scales + (size_t)u * STRIP + r % 8 * 2 + r / 8, from, sizeof *scales);
        for (uint32_t k = 0; k < UNIT; k += 2)
            memcpy(strip + (size_t)u * UNIT_VALUES + places[k], from + 2 + k, 2);
    }
}

struct scratch {
    float *values;       /* (cols) */
    uint16_t *halves;    /* (cols) */
    unsigned char *file; /* a row as a file has it, in a type that the device holds */
};

/* The row's bytes in its own type: the tensor's, or made. */
static const unsigned char *
file_row(const struct tensor *t, uint32_t row, const struct scratch *scratch)
{
    if (t->data != NULL)
        return (const unsigned char *)t->data + row * tensor_row_bytes(t->type, t->cols);
    synthetic_row(t, row, scratch->file);
    return scratch->file;
}

static void
pack_row(const struct packing *p, uint32_t packed, const struct scratch *scratch, unsigned char *quants,
         unsigned char *scales)
{
    const uint32_t r = packed % STRIP;
    const struct tensor *t;
    uint32_t row, places[UNIT];
    if (!find_row(p, packed, &t, &row))
        return;
    if (has_pairs(p->type)) {
        pack_pairs(p->type, r, p->cols, file_row(t, row, scratch), quants, scales);
        return;
    }
    for (uint32_t k = 0; k < UNIT; k++)
        places[k] = p->type == WEIGHT_Q8_0 ? unit_place(r, k) : unit_place_16(r, k);
    switch (p->type) {
    case WEIGHT_F32: tensor_row(t, row, (float *)(void *)quants + (size_t)r * p->cols); break;
    case WEIGHT_Q8_0: {
        const unsigned char *from = file_row(t, row, scratch);
        if (t->type != WEIGHT_Q8_0) {
            row_as_bytes(t->type, from, p->cols, scratch->file);
            from = scratch->file;
        }
        spread_bytes(p, r, places, from, quants, (uint16_t *)(void *)scales);
        break;
    }
    default:
        if (t->type == p->type) {
            memcpy(scratch->halves, file_row(t, row, scratch), p->cols * sizeof *scratch->halves);
        } else {
            tensor_row(t, row, scratch->values);
            for (uint32_t k = 0; k < p->cols; k++)
                scratch->halves[k] = f32_to_f16(scratch->values[k]);
        }
        spread_halves(p, places, scratch->halves, (uint16_t *)(void *)quants);
    }
}

bool
pack_strips(const struct packing *p, uint32_t first, uint32_t n, uint32_t threads, void *quants, void *scales)
{
    const size_t quant_bytes = pack_quant_bytes(p), scale_bytes = pack_scale_bytes(p);
    atomic_bool ok = true;
    (void)threads;
    PARALLEL(omp parallel num_threads(threads))
    {
        float *values = malloc(p->cols * (2 * sizeof(float) + sizeof(uint16_t)) + Q8_BYTES);
        const bool ready = values != NULL;
        const struct scratch scratch = {.values = values,
                                        .halves = ready ? (uint16_t *)(void *)(values + p->cols) : NULL,
                                        .file = ready ? (unsigned char *)values + p->cols * 6 : NULL};
        if (!ready)
            ok = false;
        PARALLEL(omp for schedule(dynamic))
        for (uint32_t s = 0; s < n; s++) {
            unsigned char *q = (unsigned char *)quants + s * quant_bytes, *x = NULL;
            if (scale_bytes > 0)
                x = memset((unsigned char *)scales + s * scale_bytes, 0, scale_bytes);
            if (p->type != WEIGHT_F32)
                memset(q, 0, quant_bytes);
            for (uint32_t r = 0; r < STRIP && ready; r++)
                pack_row(p, (first + s) * STRIP + r, &scratch, q, x);
        }
        free(values);
    }
    return ok;
}
