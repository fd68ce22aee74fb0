/* The interface of host and kernels of the CUDA backend: the layout of weights and activations in device memory, and the
 * arguments of every kernel. Plain C, included by both; pointers are device pointers unless noted.
 *
 * Strips and units. Every product is y = W x with W (rows, cols) and up to 32 columns x at a time, by tensor-core
 * instructions of one shape: mma.m16n8k16, A = 16 rows of W, B = 8 activation rows. Weights are cut into strips of 16
 * packed rows and units of 32 columns; a unit is stored in the order in which the lanes of a warp load it, so that
 * a lane loads its part of the fragments with 16-byte loads, 512 contiguous bytes a warp.
 * With g = lane / 4 and c = lane % 4, of k-step s (columns 16s..16s+15 of the unit) a lane holds
 *     a0 = W[g][2c, 2c+1]   a1 = W[g+8][2c, 2c+1]   a2 = W[g][2c+8, 2c+9]   a3 = W[g+8][2c+8, 2c+9]
 * 8-bit weights: the 16 values of a lane are in the order (s, register, half). 16-bit weights: (s, lane, register, half),
 * so that both are loads of 16 bytes a lane, side by side. Weights of 4 and 6 bits: two units together, a byte being the
 * low four bits of both's values at the same place, the first unit's in its lower half (below, "places in packed data").
 * Activations are packed likewise:
 *     b0 = X[g][2c, 2c+1]   b1 = X[g][2c+8, 2c+9]
 * a lane's 8 values of a unit in the order (s, register, half), tiles of 8 rows outermost. */
#ifndef KERNELS_CUDA_DEVICE_LAYOUT_H
#define KERNELS_CUDA_DEVICE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/backend.h"
#include "kernels/base/host_device.h"
#include "kernels/experts.h"

/* ---- the steps of a layer, with a barrier after each ----
 *
 * The kernel of forward passes executes them (forward_state.cuh), and the host names the one that a block waits after for too long
 * (device.c). */

/* In order. */
enum step {
    START, /* of a forward pass, before its first layer */
    NORM_ATTENTION,
    QKV,
    NORM_HEADS, /* models that norm queries and keys: that, and their rotation */
    ATTEND,
    OUT,
    POST_ATTENTION, /* models that norm what a sublayer adds: that, and the addition */
    NORM_MLP,
    ROUTE, /* layers of experts: which rows go to which */
    GATE_UP,
    DOWN,
    POST_MLP,
    CARRY,       /* both sublayers skipped */
    SHIFT_PROBE, /* an affine head's */
    NORM_PROBE,
    PROBE,
    STEPS
};

/* The barrier after a step of a layer (1 and up) as one number that is never 0. */
static inline HOST_DEVICE uint32_t
grid_place(uint32_t layer, uint32_t step)
{
    return layer * STEPS + step;
}

struct dev_barrier {  /* of a cooperative grid: grid.cuh */
    uint32_t arrived; /* at rest zero but for the highest bit */
    uint32_t apart[31];
    uint32_t
        stop[2]; /* the forward pass was cancelled: block 0 reads the cancel word, all others this; layers alternate */
    uint64_t patience; /* nanoseconds until a waiting block notes it; twice that: it ends the kernel; 0: forever */
    uint32_t *notes;   /* (blocks) of a device, on the host: where a block waits for too long, else 0 */
};
#define GRID_CLOCK_STEP 10000000u /* nanoseconds between two readings of the clock, at most */

#define STRIP     16  /* packed rows in a strip */
#define UNIT      32  /* columns in a unit */
#define PAIR      64  /* columns in a pair of units: what is packed has a whole number of pairs */
#define SUPER     256 /* columns in a block of Q4_K and Q6_K */
#define TILE      8   /* activation rows that one instruction takes */
#define PASS_ROWS 32  /* activation rows that one pass over the weights takes */
#define WARP      32

#define BLOCK_WARPS   16 /* of a block; they divide a strip's units among them: the split that fixes the order of sums */
#define BLOCK_THREADS (BLOCK_WARPS * WARP)

#define ATTEND_BLOCK 32 /* positions that a warp attends to; blocks begin at its multiples */
#define ATTEND_SPLIT                                                                                                   \
    (BLOCK_WARPS * ATTEND_BLOCK) /* those of a block's warps, one partial; they begin at its multiples */
#define ATTEND_PAIRS 8           /* (row, head) pairs that share a load of keys and values */
#define MAX_HEAD_DIM 256         /* what a warp's registers hold of some pairs' outputs */
#define SPLIT_ROWS   32 /* up to here the splits of a row are different blocks' work, above a block walks them all */

#define HIDDEN_SHRINK 0.0625f /* silu(gate) * up is stored in F16 times this, and its product with W_down divided by */
                              /* it: models exist whose largest values would not fit F16 */

/* ---- weights ---- */

/* On the device: F32 (exact only; row-major, not packed), F16, BF16, Q8_0, Q4_0, Q4_K, Q6_K. */
struct dev_matrix {
    const void *quants; /* (strips, units, WARP, 16) values; 4 and 6 bits: (strips, pairs); F32: (rows, cols) */
    const void *scales; /* Q8_0: (strips, units, 8, 2) F16: of rows g and g+8 side by side; of pairs: below */
    const uint32_t
        *source; /* (strips * STRIP) which output a packed row is, UINT32_MAX: padding; NULL: its own number */
    enum weight_type type;
    uint32_t rows, cols;    /* as in the model */
    uint32_t strips, units; /* units_of(cols); values after rows and cols are zero */
};

struct dev_norm {
    const float *weight, *bias; /* weight NULL: there is no such norm; bias may be */
};

/* Rows are packed so that a strip needs no other: in q and k the two of a rotated pair are rows g and g+8; in gate_up
 * they are the gate and the up projection of one hidden unit. `source` says which is which:
 * wqkv: output o < heads*head_dim is q, then k, then v. gate_up: o < ffn is gate, then up.
 * A strip of wqkv never spans two heads; one of gate_up holds 8 hidden units. */
struct dev_layer {
#define NO_FIELD(...)
#define VECTOR_FIELD(NAME, field, ...) const float *field; /* a vector that the model lacks is NULL */
    FOR_LAYER_TENSORS(NO_FIELD, VECTOR_FIELD, VECTOR_FIELD)
#undef NO_FIELD
#undef VECTOR_FIELD
    struct dev_matrix wq, wk, wv; /* each with its own strips, taken one after the other; `source` local to each */
    struct dev_matrix wo, gate_up, down; /* without gates gate_up is up alone, each output a hidden unit */
    uint32_t window;                     /* a row at position p attends to positions above p - window; 0: to all */
    enum layer_rope rope;
    bool has_experts;   /* experts are in the MLP's place: dev_model.mixtures */
    struct xielu xielu; /* where the model's activation is this */
};

struct dev_head {       /* a layer's trained head, F32, plain rows; NULL: it has none of the kind */
    const float *a, *b; /* (width, width), (width): the lens looks at h + A h + b */
    const float *full;  /* (vocab, width): in place of the LM head */
};

struct dev_model {
    uint32_t n_layers, width, heads, kv_heads, head_dim, ffn, vocab, rope_dims;
    enum rope_layout rope;
    float rms_eps;
    bool exact;                   /* F32 weights, activations and keys */
    struct model_form form;       /* every scale is a number: 0 was replaced by its meaning */
    const double *inv_freq;       /* (rope_dims/2): position * this is the angle, rope_scale and factors applied */
    const double *inv_freq_local; /* of layers with local rotations; NULL: there are none */
    struct dev_matrix embedding, head;
    const float *positions; /* (n_positions, width) added to the embedding, or NULL */
    uint32_t n_positions;
    struct dev_norm embedding_norm; /* (width) */
    const float *slopes;            /* (heads) form.alibi; NULL: there are no biases of positions */
    struct dev_norm final_norm;     /* (width) */
    const float *head_bias;         /* (vocab), or NULL */
    bool shapes_logits;             /* they have a bias, a scale or a cap */
    const struct dev_layer *layers; /* (n_layers + 1), indexed by layer 1..L */
    const struct dev_moe *moe;      /* (n_layers + 1), of layers that mix (layout.h); NULL: none does */
    const struct dev_head *trained; /* (n_layers + 1), or NULL: none */
};

/* ---- places in packed data, in values ---- */

/* Within a strip's unit: packed row r of 0..15, column k of 0..31; of 8-bit weights. */
static inline HOST_DEVICE uint32_t
unit_place(uint32_t r, uint32_t k)
{
    const uint32_t s = k / 16, within = k % 16, lane = r % 8 * 4 + within % 8 / 2;
    return lane * 16 + s * 8 + (within / 8 * 2 + r / 8) * 2 + within % 2;
}

/* The same of 16-bit weights. */
static inline HOST_DEVICE uint32_t
unit_place_16(uint32_t r, uint32_t k)
{
    const uint32_t s = k / 16, within = k % 16, lane = r % 8 * 4 + within % 8 / 2;
    return s * (WARP * 8) + lane * 8 + (within / 8 * 2 + r / 8) * 2 + within % 2;
}

/* Activations: row r, column k of a buffer with `units` units. */
static inline HOST_DEVICE size_t
packed_place(uint32_t units, uint32_t r, uint32_t k)
{
    const uint32_t within = k % 16, lane = r % TILE * 4 + within % 8 / 2;
    return (((size_t)(r / TILE) * units + k / UNIT) * WARP + lane) * 8 + k % UNIT / 16 * 4 + within / 8 * 2 +
           within % 2;
}

/* Whole pairs of them. */
static inline HOST_DEVICE uint32_t
units_of(uint32_t cols)
{
    return (cols / PAIR + (cols % PAIR != 0)) * (PAIR / UNIT);
}

/* Elements that a head has in the store's keys and values: a whole number of loads of 16 bytes. */
static inline HOST_DEVICE uint32_t
head_room(uint32_t head_dim)
{
    return (head_dim + 7) / 8 * 8;
}

/* Weights of 4 and 6 bits, by pairs of units. A pair is PAIR_NIBBLES bytes, a lane's 16 side by side: of packed row r and
 * column k of either unit this byte holds the low four bits, the second unit's in its upper half. As 32-bit words a lane has
 * (s, register / 2), so that registers 0 and 1 of a step are a word's bits 0..7 and 8..15 of both halves: each unit's
 * values are had by masks, and by a shift for every other register.
 * Q6_K: then PAIR_HIGHS bytes, a lane's 8 side by side, with the two high bits of both rows g and g+8: row r's of the first
 * unit at bit 2 (r / 8) and of the second at 4 + 2 (r / 8).
 * Scales: for each pair PAIR_SCALES bytes, 8 for each g, 0 to 7:
 *     Q4_0   F16 (unit, 2): of rows g and g+8
 *     Q4_K   bytes (2, 4): of either row the scales of both units, then the minima of both
 *     Q6_K   int8 (2, 4): of either row the scales of steps 0 to 3
 * and after those of the strip's last pair, for each block of SUPER columns F16 (8, 2, SUPER_SCALES): of rows g and g+8
 * d and dmin (Q4_K), d (Q6_K). A value is d q - 8 d, d scale q - dmin min, d scale (q - 32). */
#define PAIR_NIBBLES 512
#define PAIR_HIGHS   256
#define PAIR_SCALES  64

static inline HOST_DEVICE uint32_t
nibble_place(uint32_t r, uint32_t k)
{
    const uint32_t s = k / 16, within = k % 16, lane = r % 8 * 4 + within % 8 / 2;
    return lane * 16 + s * 8 + within / 8 * 4 + within % 2 * 2 + r / 8;
}

static inline HOST_DEVICE uint32_t
high_place(uint32_t r, uint32_t k)
{
    const uint32_t s = k / 16, within = k % 16, lane = r % 8 * 4 + within % 8 / 2;
    return lane * 8 + s * 4 + within % 2 * 2 + within / 8;
}

/* Is a type packed by pairs? */
static inline HOST_DEVICE bool
has_pairs(enum weight_type type)
{
    return type == WEIGHT_Q4_0 || type == WEIGHT_Q4_K || type == WEIGHT_Q6_K;
}

/* Values beside a pair's scales that a row has for each block of SUPER columns. */
static inline HOST_DEVICE uint32_t
super_scales(enum weight_type type)
{
    return type == WEIGHT_Q4_K ? 2 : type == WEIGHT_Q6_K ? 1 : 0;
}

/* Bytes of a strip's quants, and of its scales; of types that are packed. */
static inline HOST_DEVICE size_t
strip_quants(enum weight_type type, uint32_t units)
{
    const size_t pairs = units / 2;
    switch (type) {
    case WEIGHT_Q8_0: return (size_t)units * STRIP * UNIT;
    case WEIGHT_Q4_0:
    case WEIGHT_Q4_K: return pairs * PAIR_NIBBLES;
    case WEIGHT_Q6_K: return pairs * (PAIR_NIBBLES + PAIR_HIGHS);
    default: return (size_t)units * STRIP * UNIT * 2;
    }
}

static inline HOST_DEVICE size_t
strip_scales(enum weight_type type, uint32_t units)
{
    if (type == WEIGHT_Q8_0)
        return (size_t)units * STRIP * 2;
    return has_pairs(type) ? (size_t)units / 2 * PAIR_SCALES + (size_t)units / 8 * STRIP * 2 * super_scales(type) : 0;
}

/* ---- a store ---- */

#define HEAD_PIECE 4096 /* logits that one block reads */

static inline HOST_DEVICE uint32_t
head_pieces_of(uint32_t vocab)
{
    return (vocab + HEAD_PIECE - 1) / HEAD_PIECE;
}

struct head_piece {                     /* what a piece of a row of logits adds to the row's guess */
    float max, sum, weighted, annealed; /* z relative to max: sum exp z, sum z exp z, sum exp(z/T) */
    token_t top[GUESS_TOP];             /* best first, TOKEN_NONE after the last */
    float top_z[GUESS_TOP];
    float final_max, cross; /* of the final row f: its max here, sum exp(f - max) (f - z) */
    uint32_t above;         /* logits that come before that of the final row's argmax */
    uint32_t arrived;       /* in a row's first piece: pieces that are compared */
};

/* A distribution that is not written out: p(v) = weight(v) * scale, weight(v) = exp((z_v - max)/T) where the token is
 * not cut off and 0 where it is. Tokens are in order of their logits, and of ids among equals. */
struct row_dist {
    float max, temperature, inverse; /* of T */
    float cut;                       /* the last one that stays: its logit */
    uint32_t cut_id;                 /* and its id */
    float scale;                     /* 1 / sum */
    double total, q_total;           /* of p as it is rounded; of the node's q */
};

#define VERIFY_WALKS 16 /* sampled rounds that are walked side by side */

/* What lives as long as a store. Activations are packed F16, or (rows, cols) F32 when exact. */
struct dev_store {
    uint32_t slots, ring, trunk_room, max_rows; /* rows of any forward pass */
    float *hidden;                              /* (ring, L + 1, width) */
    void *keys, *values; /* (L + 1, slots, kv_heads, head_room): layer l at index l - 1; F16, F32 when exact; beyond */
                         /* head_dim they are zero */
    slot_t *trunk;       /* (seqs, trunk_room) */
    float *dists_p;      /* (dists, dists_vocab) the pool's, not the store's own; NULL: none */
    uint32_t dists_vocab;

    void *normed;     /* (max_rows rounded up to a tile, width): what a product reads */
    void *attended;   /* as above, (rows, heads * head_dim) */
    void *gated;      /* as above, (rows, ffn) */
    float *rotations; /* (2, max_rows, rope_dims / 2, 2) cosine and sine of what a row's pairs are rotated by: in */
                      /* most layers, then in those with local rotations */
    float *q;         /* (max_rows, heads * head_dim), rotated and scaled */
    float *qk_raw;    /* (max_rows, heads + kv_heads, head_dim) before norm and rotation, in layers that norm them */
    float *raw;       /* (max_rows, width) what a sublayer adds, before its norm */
    float *router_logits; /* (max_rows, experts + 1) in layers of experts; the last one: of the one that all go to */
    struct route *routes; /* (max_rows, used) of each row, by expert */
    struct expert_row *expert_rows;  /* (max_rows, used + 1) */
    struct expert_list *expert_list; /* of the layer that is being done */
    void *expert_hidden;             /* like gated, (expert rows, ffn of an expert) */
    void *shared_hidden;             /* like gated, (rows, ffn of the one that all go to) */
    float *partials;                 /* (SPLIT_ROWS, heads, max_splits, 2 + head_dim): max, sum, unnormalised output */
    uint32_t max_splits;             /* of the longest path */
    uint32_t *arrivals;              /* (SPLIT_ROWS * heads) splits that are done; zero at rest */
    struct dev_barrier *barrier;
    uint32_t *cancel; /* the host sets it through a stream of its own */

    float *until_logits;  /* (L, vocab) of the layers that a forward pass probed, in order */
    float *until_parts;   /* (blocks, 2): max of z and sum exp((z - max)/T) over a block's strips */
    void *until_normed;   /* (TILE, width), or one row in F32 for a full head */
    float *until_shifted; /* (width) what the final norm sees where a layer has an affine head */

    void *head_normed;              /* (head_rows, width) */
    float *head_shifted;            /* (head_rows, width) of rows with an affine head */
    float *head_logits;             /* (head_rows, vocab) */
    uint32_t head_rows;             /* rows in one pass of the head, >= VERIFY_NODES */
    float *verify_p;                /* (VERIFY_WALKS, 2, vocab) what verification works in */
    struct head_piece *head_pieces; /* (max(head_rows, n_layers), head_pieces_of(vocab)) */
    struct row_dist *row_dists;     /* (head_rows) by node */
};

/* ---- forward passes ---- */

/* Rows that share their path: consecutive in the forward pass, same seq, n_trunk and tail, at most ATTEND_PAIRS of them; so
 * position p is trunk[p], or tails[tail + p - n_trunk] after that, for all of them, each up to its own position. */
struct row_group {
    uint32_t first, n;
};

struct until_args {
    const float *temperature, *threshold; /* (L + 1) */
    struct until_state *state;
    bool trained; /* by trained heads: model->trained is there */
};

struct until_state { /* in the results arena */
    uint32_t exited, depth, probes;
    uint32_t probed[256]; /* the layers probed, in order */
    float annealed[256];  /* what each decision saw */
    uint64_t probe_ns;
};
#define MAX_LAYERS 255

struct forward_args {
    const struct dev_model *model; /* on the device */
    struct dev_store store;
    const struct row *rows; /* (n) */
    const slot_t *tails;
    const struct row_group *groups;           /* (n_groups) */
    const uint8_t *skip_attention, *skip_mlp; /* (L + 1) or NULL */
    uint32_t n, n_groups;
    uint32_t first, to;       /* layers first..to; the smallest from is first - 1 */
    uint64_t *stamps;         /* of its phases, as layout.h has them; NULL: none */
    uint32_t window;          /* bytes of weights that a block fetches ahead at a barrier, a multiple of 128; 0: none */
    struct until_args until;  /* temperature NULL: a plain forward pass */
    uint32_t *touched;        /* (L + 1) how many experts rows went to, zero before; NULL: not requested */
    struct route *routes_out; /* (n, L + 1, used) where rows went, likewise */
};

/* ---- the head ---- */

struct head_row {
    uint32_t ring, layer;
    bool trained; /* by the layer's trained head: model->trained is there */
    float temperature;
    int32_t final; /* the row of this call whose logits are layer L's for the same ring entry, or -1 */
};

struct head_args {
    const struct dev_model *model;
    struct dev_store store;
    const struct head_row *rows; /* (n), n <= store.head_rows */
    uint32_t n;
    bool trained;          /* some of the rows are */
    struct guess *guesses; /* (n), or NULL: logits only */
    uint32_t blocks;       /* that fill the device, one a multiprocessor: forward_prepare() */
};

/* Predictions from rows of logits, by statistics of pieces (struct head_piece). */
struct prediction_args {
    const float *logits; /* (n, vocab) */
    uint32_t vocab, n;
    struct head_piece *pieces; /* (n, head_pieces_of(vocab)) */

    /* Rows of a head call: what is asked and where the answers go; or, `rows` being NULL, */
    const struct head_row *rows; /* (n) */
    struct guess *guesses;       /* (n) */

    /* the layers that a forward pass probed, at most n of them, in order. */
    const struct until_state *until;
    const float *temperature; /* by layer */
    struct guess *by_layer;   /* by layer, or NULL */
    struct guess *last;
};

struct dist_args {
    const struct dev_model *model;
    struct dev_store store;
    const struct dist_req *requests; /* (n); their logits are rows 0..n-1 of head_logits */
    uint32_t n;
};

struct dev_draw {
    struct draw_req request; /* `without` and `out` are device pointers */
};

struct draw_args {
    struct dev_store store;
    const struct dev_draw *draws;
    uint32_t n;
};

struct overlap_args {
    struct dev_store store;
    const struct overlap_req *requests; /* (n); `out` is a device pointer */
    uint32_t n;
};

struct dev_round {     /* a round to verify */
    uint32_t first, n; /* its nodes; the parents of nodes count from the first */
    struct sampling sampling;
    uint64_t seed;
    struct verdict *verdict;
};

struct verify_args {
    const struct dev_model *model;
    struct dev_store store;
    const struct dev_round *rounds;  /* (n) */
    const struct verify_node *nodes; /* of all rounds, store.head_rows at most */
    const int32_t *logits_row;       /* of each: row of head_logits, -1: none */
    uint32_t n;
    uint32_t longest;            /* nodes of a round, at most */
    bool greedy, sampled;        /* some of the rounds are */
    const struct guess *guesses; /* of the rows of head_logits */
};

/* ---- layers of experts ----
 *
 * Experts of a layer are stacked: expert e's strips are number e * strips and up of one matrix, of which `rows` and `strips` say
 * what one expert has, and `source` which output a packed row of any is.
 *
 * An expert row is a row at one of its experts. Expert rows are in order of the experts, so that an expert is read once for all of
 * its rows; those at the one that all rows go to come last. */

#define MOST_EXPERTS 512 /* of a layer: one a thread of a block */

struct expert_stack {
    struct dev_matrix gate_up, down;  /* without gates gate_up is up alone */
    const float *bgate, *bup, *bdown; /* (experts, ffn) twice, (experts, width); NULL: none has one */
};

struct dev_moe {
    const float *router;                /* (experts, width) */
    struct expert_stack routed, shared; /* shared: of the one that all go to, no matrix if there is none */
};

struct expert_row {
    uint32_t row, expert; /* of the forward pass; of the routed ones, number `experts` for the one that all go to */
    float weight;         /* what the expert's output is multiplied by */
    uint32_t edge;        /* ROW_FIRST, ROW_LAST: of the row */
};
#define ROW_FIRST 1u
#define ROW_LAST  2u

struct listed_expert { /* expert rows [first, first + n) */
    uint32_t expert, first, n;
};

struct expert_list {
    uint32_t arrived;           /* blocks that have computed their logits; zero at rest */
    uint32_t n;                 /* experts with rows */
    uint32_t most;              /* rows of one of them */
    uint32_t rows;              /* that take part */
    struct listed_expert alone; /* the one that all go to */
    struct listed_expert experts[MOST_EXPERTS];
};

/* Layout of the stamps of a forward pass (trace.h), in words of 64 bits: how many phases there are; when block 0 began; then of each
 * phase its layer and step, when block 0 left the barrier behind it, and when each block arrived there. */

enum { STAMPED_PHASES, STAMPED_BEGIN, STAMPS_HEAD };
enum { STAMP_PLACE, STAMP_LEFT, STAMP_CAME }; /* STAMP_PLACE: grid_place() */

static inline HOST_DEVICE size_t
stamps_at(uint32_t phase, uint32_t blocks)
{
    return STAMPS_HEAD + (size_t)phase * (STAMP_CAME + blocks);
}

/* Words of so many layers' stamps. */
static inline size_t
stamps_room(uint32_t layers, uint32_t blocks)
{
    return stamps_at(layers * STEPS, blocks);
}

/* What the host and the kernels agree on about chunks of prompts, whose products a library computes (requests.h). */

/* A step of a layer of a chunk, one launch; what the forward pass's steps of these names do. */
enum prefill_step {
    PREFILL_NORM_ATTENTION,
    PREFILL_QKV,
    PREFILL_NORM_HEADS,
    PREFILL_ATTEND,
    PREFILL_OUT,
    PREFILL_POST_ATTENTION,
    PREFILL_NORM_MLP,
    PREFILL_GATE_UP,
    PREFILL_DOWN,
    PREFILL_POST_MLP
};

struct prefill_args {
    struct forward_args forward;
    uint32_t layer;
    enum prefill_step step;
    const uint32_t *stop; /* the chunk was cancelled: nothing is done */
    /* Of a product: the sums of strips [first, first + strips) of a matrix, number `part` of wq, wk, wv. */
    uint32_t part, first, strips;
    const float *y; /* (chunk, strips * STRIP) */
};

struct unpack_args { /* strips [first, first + strips) of a matrix to plain rows of units * UNIT halves */
    struct dev_matrix m;
    uint32_t first, strips;
    uint16_t *to; /* F16, or BF16 where the matrix is */
};

struct gather_args { /* packed activations of n rows to `rows` plain ones, those after the n-th zero */
    const void *packed;
    uint32_t units, n, rows;
    uint16_t *to;  /* (rows, units * UNIT) F16 */
    uint16_t *low; /* not NULL: the same in BF16, of which `low` is what `to` leaves */
};

#endif
