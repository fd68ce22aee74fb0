/* Converts a model's tensors to the strips and units of layout.h. Runs on the CPU, without a GPU or its runtime. */
#pragma once

#include "kernels/cuda/device/layout.h"

/* A matrix in the device's format: the outputs of its parts in order (gate, then up), permuted; or a stack of n
 * matrices that are permuted alike. */
struct packing {
    const struct tensor *parts[2]; /* of the first matrix */
    uint32_t n_parts;              /* 0: there was no memory */
    uint32_t n;
    size_t stride;          /* bytes between a tensor of one matrix and that of the next */
    enum weight_type type;  /* type on the device: pack_type() of the parts' type */
    uint32_t rows, cols;    /* sizes of all parts together */
    uint32_t strips, units; /* as in struct dev_matrix */
    uint32_t *source;       /* (strips * STRIP) or NULL; owned by the caller, released with free() */
};

/* Returns the device's type for a tensor: its own, Q8_0 (pack.c), or F16 (exact: always F32). */
enum weight_type pack_type(enum weight_type, bool exact);

/* Plan the permutation of rows, at little cost. The tensors remain the caller's. */
struct packing pack_plain(const struct tensor *, bool exact);
/* q, k: rotated pairs become rows g and g+8 of a strip, followed by the unrotated dimensions; no strip spans two heads.
 * v (rope_dims = 0 and head_dim a multiple of STRIP) needs no permutation. */
struct packing pack_heads(const struct tensor *, uint32_t head_dim, uint32_t rope_dims, enum rope_layout, bool exact);
/* Without a gate `up` is packed plainly. */
struct packing pack_gate_up(const struct tensor *gate, const struct tensor *up, bool exact);
/* n matrices of the same shape, whose tensors are `stride` bytes apart. */
struct packing pack_stack(struct packing, uint32_t n, size_t stride, bool exact);

/* Returns a part of matrix number e. */
static inline const struct tensor *
pack_part(const struct packing *p, uint32_t part, uint32_t e)
{
    return (const struct tensor *)(const void *)((const unsigned char *)p->parts[part] + e * p->stride);
}

/* Bytes of one strip; multiply by n * strips for all. */
size_t pack_quant_bytes(const struct packing *);
size_t pack_scale_bytes(const struct packing *);

/* Packs strips [first, first + n) of the stack into buffers of that size, with at most `threads` threads. Returns false
 * if there is no memory. If the type is F32, a strip is 16 rows, one after the other. */
bool pack_strips(const struct packing *, uint32_t first, uint32_t n, uint32_t threads, void *quants, void *scales);
