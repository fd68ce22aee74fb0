/* Converts a model's tensors to the strips and units of layout.h. Runs on the CPU, without a GPU or its runtime. */
#ifndef KERNELS_CUDA_PACK_H
#define KERNELS_CUDA_PACK_H

#include "kernels/cuda/device/layout.h"

/* A matrix in the device's format: the outputs of its parts in order (gate, then up), permuted. */
struct packing {
    const struct tensor *parts[2];
    uint32_t n_parts;
    enum weight_type type;  /* type on the device: pack_type() of the parts' type */
    uint32_t rows, cols;    /* sizes of all parts together */
    uint32_t strips, units; /* as in struct dev_matrix */
    uint32_t *source;       /* (strips * STRIP) or NULL; owned by the caller, released with free() */
};

/* Returns the device's type for a tensor: its own, Q8_0 (pack.c), or F16 (exact: always F32). */
enum weight_type pack_type(enum weight_type, bool exact);

/* Plan the permutation of rows, at little cost. Return false if there is no memory. The tensors remain the caller's. */
bool pack_plain(struct packing *, const struct tensor *, bool exact);
/* q, k: rotated pairs become rows g and g+8 of a strip, followed by the unrotated dimensions; no strip spans two heads.
 * v (rope_dims = 0 and head_dim a multiple of STRIP) needs no permutation. */
bool pack_heads(struct packing *, const struct tensor *, uint32_t head_dim, uint32_t rope_dims, enum rope_layout,
                bool exact);
bool pack_gate_up(struct packing *, const struct tensor *gate, const struct tensor *up, bool exact);

/* Bytes of one strip; multiply by `strips` for the matrix (F32: rows * cols * 4, no scales). */
size_t pack_quant_bytes(const struct packing *);
size_t pack_scale_bytes(const struct packing *);

/* Packs strips [first, first + n) into buffers of that size, with at most `threads` threads. Returns false if there is
 * no memory. If the type is F32, a strip is 16 plain rows and the last strip may be shorter. */
bool pack_strips(const struct packing *, uint32_t first, uint32_t n, uint32_t threads, void *quants, void *scales);

#endif
