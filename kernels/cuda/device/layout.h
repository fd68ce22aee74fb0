/* The interface of host and kernels of the CUDA backend: the layout of weights and activations in device memory, and
 * the arguments of every kernel. Plain C, included by both; pointers are device pointers unless noted.
 *
 * Strips and units. Every product is y = W x with W (rows, cols) and up to 32 columns x at a time, by tensor-core
 * instructions of one shape: mma.m16n8k16, A = 16 rows of W, B = 8 activation rows. Weights are cut into strips of 16
 * packed rows and units of 32 columns; a unit is stored in the order in which the lanes of a warp load it, so that
 * a lane loads its part of the fragments with 16-byte loads, 512 contiguous bytes a warp.
 * With g = lane / 4 and c = lane % 4, of k-step s (columns 16s..16s+15 of the unit) a lane holds
 *     a0 = W[g][2c, 2c+1]   a1 = W[g+8][2c, 2c+1]   a2 = W[g][2c+8, 2c+9]   a3 = W[g+8][2c+8, 2c+9]
 * 8-bit weights: the 16 values of a lane are in the order (s, register, half). 16-bit weights: (s, lane, register,
 * half), so that both are loads of 16 bytes a lane, side by side. Weights of 4 and 6 bits: two units together, a byte
 * being the low four bits of both's values at the same place, the first unit's in its lower half (below, "places in
 * packed data"). Activations are packed likewise:
 *     b0 = X[g][2c, 2c+1]   b1 = X[g][2c+8, 2c+9]
 * a lane's 8 values of a unit in the order (s, register, half), tiles of 8 rows outermost. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/host_device.h"
#include "kernels/backend.h"
#include "kernels/experts.h"

/* ---- the steps of a layer, with a barrier after each ----
 *
 * The kernel of forward passes executes them (forward_state.cuh), and the host names the one that a block waits after
 * for too long (device.c). */

/* In order. */
enum step {
    START, /* before the first layer of a forward pass */
    NORM_ATTENTION,
    QKV,
    FEED,       /* keys and values of rows that a block drafter is fed; of other steps only NORM_HEADS follows */
    NORM_HEADS, /* in models with query and key norms: norms and rotation */
    ATTEND,
    OUT,
    POST_ATTENTION, /* in models with norms of sublayer outputs: norm and addition */
    NORM_MLP,
    ROUTE, /* layers with experts: assigns rows to experts */
    GATE_UP,
    DOWN,
    POST_MLP,
    CARRY,       /* both sublayers skipped */
    SHIFT_PROBE, /* shift of an affine head */
    NORM_PROBE,
    PROBE,
    STEPS
};

/* Encodes the barrier after a step of a layer (1 and up) as one nonzero number. */
static inline HOST_DEVICE uint32_t
grid_place(uint32_t layer, uint32_t step)
{
    return layer * STEPS + step;
}

struct dev_barrier {  /* barrier of a cooperative grid: grid.cuh */
    uint32_t arrived; /* zero at rest except for the highest bit */
    uint32_t apart[31];
    uint32_t
        stop[2]; /* set if the forward pass was cancelled: block 0 copies the cancel word here for all blocks; layers */
                 /* alternate */
    uint64_t patience; /* nanoseconds until a waiting block writes a note; after twice that it ends the kernel; 0: no */
                       /* limit */
    uint32_t *notes;   /* (blocks) per device, in host memory: where a block waits for too long, else 0 */
};
#define GRID_CLOCK_STEP 10000000u /* maximum nanoseconds between two readings of the clock */

#define STRIP     16  /* packed rows in a strip */
#define UNIT      32  /* columns in a unit */
#define PAIR      64  /* columns in a pair of units: packed matrices consist of whole pairs */
#define SUPER     256 /* columns in a block of Q4_K and Q6_K */
#define TILE      8   /* activation rows per instruction */
#define PASS_ROWS 32  /* activation rows per pass over the weights */
#define WARP      32

#define BLOCK_WARPS   16 /* warps per block; they divide a strip's units among them, which fixes the order of sums */
#define BLOCK_THREADS (BLOCK_WARPS * WARP)

#define ATTEND_BLOCK 32 /* positions per warp; blocks start at multiples of it */
#define ATTEND_SPLIT                                                                                                   \
    (BLOCK_WARPS * ATTEND_BLOCK) /* those of a block's warps, one partial; they begin at its multiples */
#define ATTEND_QUARTER (ATTEND_SPLIT / 4)
#define ATTEND_PAIRS   8   /* (row, head) pairs that share a load of keys and values */
#define MAX_HEAD_DIM   256 /* limited by the registers of a warp for the outputs of some pairs */
#define SPLIT_ROWS     32  /* up to this number of rows the splits of a row run on different blocks; with more rows a */
                           /* block computes them all */
#define QUARTER_ROWS 8     /* up to this number, quarters of splits may; then they fit the memory of partials */

#define HIDDEN_SHRINK 0.0625f /* silu(gate) * up is stored in F16 times this factor, and its product with W_down */
                              /* divided by */
                              /* it: in some models the largest values do not fit F16 */

/* ---- weights ---- */

/* A matrix on the device: F32 (exact only), F16, BF16, Q8_0, Q4_0, Q4_K, Q6_K. */
struct dev_matrix {
    const void
        *quants; /* (strips, units, WARP, 16) values; 4 and 6 bits: (strips, pairs); F32: (strips, STRIP, cols) */
    const void *scales;     /* Q8_0: (strips, units, 8, 2) F16, rows g and g+8 adjacent; of pairs: see below */
    const uint32_t *source; /* Rows are packed so that a strip is self-contained: in q and k the two rows of a */
                            /* rotated pair are rows g and g+8; in gate_up they are the gate and the up projection of */
    /* one hidden unit. `source` maps packed rows to outputs: in gate_up o < ffn is gate, then */
    /* up. A strip of q, k or v never spans two heads; one of gate_up has 8 hidden units. */
    const token_t *ids; /* F32: the row in memory of each output; NULL: its number */
    enum weight_type type;
    uint32_t rows, cols;    /* as in the model */
    uint32_t strips, units; /* units_of(cols); values after rows and cols are zero */
};

struct dev_norm {
    const float *weight, *bias; /* weight NULL: no norm; bias may be NULL */
};

struct dev_layer {
#define NO_FIELD(...)
#define VECTOR_FIELD(NAME, field, ...) const float *field; /* a vector that the model lacks is NULL */
    FOR_LAYER_TENSORS(NO_FIELD, VECTOR_FIELD, VECTOR_FIELD)
#undef NO_FIELD
#undef VECTOR_FIELD
    struct dev_matrix wq, wk, wv;        /* separate strips, processed in order; `source` is local to each */
    struct dev_matrix wo, gate_up, down; /* without gates gate_up is only up, each output a hidden unit */
    uint32_t window;                     /* a row at position p attends to positions greater than p - window; 0: to */
                                         /* all */
    enum layer_rope rope;
    bool causal;        /* rows attend to no later rows of their block */
    bool has_experts;   /* experts replace the MLP: dev_model.moe */
    struct xielu xielu; /* used if the model's activation is ACT_XIELU */
};

struct dev_head {       /* a layer's trained head, F32, plain rows; absent parts are NULL */
    const float *a, *b; /* (width, width), (width): the lens is applied to h + A h + b */
    const float *full;  /* (vocab, width): replaces the LM head */
};

struct dev_drafter {                          /* struct drafter_desc (kernels/backend.h) */
    struct dev_matrix projection, join;       /* without rows: there is none */
    struct dev_matrix markov_w1, markov_w2;   /* (vocab, rank), (outputs of the head, rank); without rows: none */
    struct dev_norm norm;                     /* (features) */
    struct dev_norm token_norm, feature_norm; /* (width) */
    uint32_t features, parts;
    bool pairs, input_normed, output_normed; /* pairs: q, k and v read dev_kv_cache.pairs */
    bool block;                              /* a block drafter: fed rows have only keys and values */
    const token_t *tokens;                   /* (vocab) the ids of the head's outputs; NULL: 0, 1, 2, … */
};

struct dev_model {
    uint32_t n_layers, width, heads, kv_heads, head_dim, ffn, rope_dims;
    uint32_t vocab; /* outputs of the head */
    enum rope_layout rope;
    float rms_eps;
    bool exact;                   /* F32 weights, activations and keys */
    struct model_form form;       /* all scales are explicit: 0 was replaced by its meaning */
    const double *inv_freq;       /* (rope_dims/2): radians per position, with rope_scale and factors */
    const double *inv_freq_local; /* for layers with local rotation; NULL: there are none */
    struct dev_matrix embedding, head;
    const float *positions; /* (n_positions, width) added to the embedding, or NULL */
    uint32_t n_positions;
    struct dev_norm embedding_norm; /* (width) */
    const float *slopes;            /* (heads) slopes of form.alibi; NULL: no ALiBi */
    struct dev_norm final_norm;     /* (width) */
    const float *head_bias;         /* (vocab), or NULL */
    bool shapes_logits;             /* logits have a bias, a scale or a cap */
    const struct dev_layer *layers; /* (n_layers + 1), indexed by layer 1..L */
    const struct dev_moe *moe;      /* (n_layers + 1), layers with experts; NULL: there are none */
    const struct dev_product *products;
    const struct dev_head *trained; /* (n_layers + 1), or NULL: none */
    struct dev_drafter drafter;     /* zero: an ordinary model */
};

/* ---- the schedule of a forward pass ----
 *
 * The host decides what a pass does (schedule.h). The products of a model are a table, made once. A pass is a list of
 * steps; those with a product name its entry. */

/* What becomes of a product's outputs. */
enum epilogue_kind {
    EPILOGUE_QKV,       /* biased, rotated; queries scaled, keys and values stored */
    EPILOGUE_STREAM,    /* hidden (l) = hidden (depth) + y * scale + bias * bias_scale; or to be normed first */
    EPILOGUE_ACTIVATED, /* of gate, times up; or of up */
    EPILOGUE_LOGITS,    /* of one row */
    EPILOGUE_EXPERT,    /* of an expert row: like EPILOGUE_ACTIVATED */
    EPILOGUE_MIX, /* of an expert row: weighted and added to the sum of the row's earlier experts; the last one is */
                  /* added to the stream */
};

/* Where the activations of a product are. */
enum step_input { INPUT_NORMED, INPUT_ATTENDED, INPUT_GATED, INPUT_PROBE, INPUT_EXPERTS, INPUT_SHARED_EXPERT };

struct dev_product {
    struct dev_matrix matrices[3]; /* of one type and width */
    uint32_t n_matrices;
    uint32_t first_matrix; /* number of matrices[0]: wq 0, wk 1, wv 2 */
    enum epilogue_kind kind;
    enum step_input input;
    enum layer_rope rope;
    struct dev_norm norm; /* of the input, where blocks norm rows themselves; weight NULL: there is none */
    bool by_squares;      /* this norm needs the sum of squares alone */
    bool raw;             /* y * scale + bias * bias_scale is stored, to be normed and added in a separate step */
    bool by_expert, shared, down; /* the matrix is a stack of experts; of the shared expert; its down */
    float scale, bias_scale;
    const float *bias; /* NULL: none */
};

#define NO_PRODUCT    UINT32_MAX
#define PROBE_PRODUCT 0 /* the product of a probe */

struct pass_step {
    uint32_t product; /* index in dev_model.products, or NO_PRODUCT */
    uint32_t ahead;   /* the product whose weights are prefetched at the barrier after this step, or NO_PRODUCT, */
    uint8_t windows;  /* from this number of windows on */
    uint8_t layer, step;
    uint8_t depth; /* the hidden state that the step reads, or that its output is added to */
    bool in_smem;  /* the product's rows are in each block's shared memory, */
    bool norms;    /* and each block norms them now */
    bool joined;   /* the next entry of the list is part of this step: no barrier is between them */
    bool enters;   /* the first step of its layer */
    bool probing;  /* the first step of a probe */
    bool trained;  /* the layer is probed with its trained head, */
    bool full;     /* which replaces the model's */
};

/* ---- places in packed data, in values ---- */

/* Returns the position in a strip's unit of packed row r of 0..15, column k of 0..31, for 8-bit weights. */
static inline HOST_DEVICE uint32_t
unit_place(uint32_t r, uint32_t k)
{
    const uint32_t s = k / 16, within = k % 16, lane = r % 8 * 4 + within % 8 / 2;
    return lane * 16 + s * 8 + (within / 8 * 2 + r / 8) * 2 + within % 2;
}

/* The same for 16-bit weights. */
static inline HOST_DEVICE uint32_t
unit_place_16(uint32_t r, uint32_t k)
{
    const uint32_t s = k / 16, within = k % 16, lane = r % 8 * 4 + within % 8 / 2;
    return s * (WARP * 8) + lane * 8 + (within / 8 * 2 + r / 8) * 2 + within % 2;
}

/* Returns the position of row r, column k in packed activations with `units` units. */
static inline HOST_DEVICE size_t
packed_place(uint32_t units, uint32_t r, uint32_t k)
{
    const uint32_t within = k % 16, lane = r % TILE * 4 + within % 8 / 2;
    return (((size_t)(r / TILE) * units + k / UNIT) * WARP + lane) * 8 + k % UNIT / 16 * 4 + within / 8 * 2 +
           within % 2;
}

/* Returns the number of units, rounded up to whole pairs. */
static inline HOST_DEVICE uint32_t
units_of(uint32_t cols)
{
    return (cols / PAIR + (cols % PAIR != 0)) * (PAIR / UNIT);
}

/* Rows in a block's own shared memory, up to a tile of them: (rows, units, 4, 8) halves, values of a unit in the order
 * in which the lanes of a row read them. A row is padded by 64 bytes, so that adjacent rows are in different banks. */
#define SMEM_BYTES (TILE * (4096 * 2 + 64))

/* Returns the length of a row in parts of 16 bytes. */
static inline HOST_DEVICE uint32_t
smem_stride(uint32_t units)
{
    return units * 4 + 4;
}

static inline HOST_DEVICE bool
rows_fit_smem(const struct dev_model *m, uint32_t n)
{
    return !m->exact && n <= TILE && n * smem_stride(units_of(m->width)) * 16 <= SMEM_BYTES;
}

/* Returns the number of elements of a head in the KV cache: a whole number of loads of 16 bytes. */
static inline HOST_DEVICE uint32_t
head_room(uint32_t head_dim)
{
    return (head_dim + 7) / 8 * 8;
}

/* Weights of 4 and 6 bits, by pairs of units. A pair is PAIR_NIBBLES bytes, a lane's 16 side by side: of packed row r
 * and column k of either unit this byte holds the low four bits, the second unit's in its upper half. As 32-bit words a
 * lane has (s, register / 2), so that registers 0 and 1 of a step are a word's bits 0..7 and 8..15 of both halves: each
 * unit's values are had by masks, and by a shift for every other register. Q6_K: then PAIR_HIGHS bytes, a lane's 8 side
 * by side, with the two high bits of both rows g and g+8: row r's of the first unit at bit 2 (r / 8) and of the second
 * at 4 + 2 (r / 8). Scales: for each pair PAIR_SCALES bytes, 8 for each g, 0 to 7:
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

/* Returns whether a type is packed by pairs. */
static inline HOST_DEVICE bool
has_pairs(enum weight_type type)
{
    return type == WEIGHT_Q4_0 || type == WEIGHT_Q4_K || type == WEIGHT_Q6_K;
}

/* Values per row for each block of SUPER columns, in addition to a pair's scales. */
static inline HOST_DEVICE uint32_t
super_scales(enum weight_type type)
{
    return type == WEIGHT_Q4_K ? 2 : type == WEIGHT_Q6_K ? 1 : 0;
}

/* Bytes of a strip's quants, and of its scales, for packed types. */
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

/* The outputs of a head for a set of tokens (kernels/backend.h): [0, base) are the first tokens by rank, [base, n) the
 * recent ones. */
struct dev_set {
    uint32_t number; /* 0: the outputs are those of the whole head; the other fields are not used */
    uint32_t base, n;
    const token_t *rank, *recent;
};

/* Returns the token of output o; of the whole head it is o. */
static inline HOST_DEVICE uint32_t
set_token(const struct dev_set *set, uint32_t o)
{
    return set->number == 0 ? o : (uint32_t)(o < set->base ? set->rank[o] : set->recent[o - set->base]);
}

#define HEAD_PIECE 4096 /* logits per block */

static inline HOST_DEVICE uint32_t
head_pieces_of(uint32_t vocab)
{
    return (vocab + HEAD_PIECE - 1) / HEAD_PIECE;
}

struct head_piece {                     /* statistics of a piece of a row of logits */
    float max, sum, weighted, annealed; /* z relative to max: sum exp z, sum z exp z, sum exp(z/T) */
    token_t top[PREDICTION_RANKS];      /* best first, followed by TOKEN_NONE */
    float top_z[PREDICTION_RANKS];
    float cross;      /* with the final layer's row f and its maximum in this piece: sum exp(f - max) (f - z) */
    uint32_t above;   /* number of logits ranked before that of the final row's argmax */
    uint32_t arrived; /* in a row's first piece: number of pieces already compared */
};

/* A distribution in implicit form: p(v) = weight(v) * scale, with weight(v) = exp((z_v - max)/T) for tokens that the
 * filters keep and 0 for others. Tokens are ordered by their logits, and by ids among equals. */
struct row_dist {
    float max, temperature, inverse; /* inverse: 1 / T */
    float cut;                       /* logit of the last token that is kept */
    uint32_t cut_id;                 /* and its id */
    float scale;                     /* 1 / sum of weights */
    double total, q_total;           /* sums of p as rounded, and of the node's q */
};

#define VERIFY_WALKS 16 /* sampled rounds that are walked in parallel */

/* Memory of a KV cache. Activations are packed F16, or (rows, cols) F32 if exact. */
struct dev_kv_cache {
    uint32_t slots, ring, trunk_room, max_rows; /* max_rows: of any forward pass */
    float *hidden;                              /* (ring, L + 1, width) */
    void *keys, *values; /* (L + 1, slots, kv_heads, head_room): layer l at index l - 1; F16, F32 if exact; zero */
                         /* after */
                         /* the head_dim-th element of a head */
    slot_t *trunk;       /* (seqs, trunk_room) */
    float *dists_p;      /* (dists, dists_vocab), owned by the pool; NULL: none */
    uint32_t dists_vocab;

    void *normed;     /* (max_rows rounded up to a tile, width; of a drafter, more): input of products */
    void *attended;   /* as above, (rows, heads * head_dim) */
    void *gated;      /* as above, (rows, ffn) */
    float *rotations; /* (2, max_rows, rope_dims / 2, 2) cosine and sine of the rotation of a row's pairs: in */
                      /* most layers, then in layers with local rotation */
    float *q;         /* (max_rows, heads * head_dim), rotated and scaled */
    float *qk_raw;    /* (max_rows, heads + kv_heads, head_dim) before norm and rotation, in models that norm them */
    float *raw;       /* (max_rows, width) output of a sublayer before its norm; of a drafter, also g */
    float *pairs;     /* (ring, 2 width + 1): a drafter's [norm(e); norm(g)], and a factor of g; of a block drafter */
                      /* only the factor is used */
    float *router_logits; /* (max_rows, experts + 1) in layers with experts; the last one: for the shared expert */
    struct route *routes; /* (max_rows, used) of each row, sorted by expert */
    struct expert_row *expert_rows;  /* (max_rows, used + 1) */
    struct expert_list *expert_list; /* list of the current layer */
    void *expert_hidden;             /* like gated, (expert rows, ffn of an expert) */
    void *shared_hidden;             /* like gated, (rows, ffn of the shared expert) */
    float *partials;    /* (SPLIT_ROWS, heads, splits, 2 + head_dim): max, sum, unnormalised output; of quarters */
                        /* (QUARTER_ROWS, heads, 4 * splits, 2 + head_dim) */
    uint32_t *arrivals; /* (SPLIT_ROWS * heads) number of completed parts; zero at rest */
    struct dev_barrier *barrier;
    uint32_t *cancel; /* set by the host on a separate stream */

    float *until_logits; /* (L, vocab) of the layers that a forward pass probed, in order */
    float *until_parts;  /* (blocks, 2): max of z and sum exp((z - max)/T) over a block's strips */

    void *head_normed;   /* (head_rows, width) */
    float *head_shifted; /* (head_rows, width) of rows with an affine head */
    float *head_logits;  /* (head_rows, vocab) */
    float *kept;         /* (kept_rows, vocab) of a block drafter: logits for further calls */
    uint32_t kept_rows;
    uint32_t head_rows;             /* rows in one pass of the head, >= VERIFY_NODES */
    float *verify_p;                /* (VERIFY_WALKS, 2, vocab) scratch of verification */
    struct head_piece *head_pieces; /* (max(head_rows, n_layers), head_pieces_of(vocab)) */
    struct row_dist *row_dists;     /* (head_rows), by node */
};

/* Returns the hidden state of a ring entry at a depth. */
static inline HOST_DEVICE float *
hidden_at(const struct dev_model *m, const struct dev_kv_cache *s, uint32_t ring, uint32_t depth)
{
    return s->hidden + ((size_t)ring * (m->n_layers + 1) + depth) * m->width;
}

/* ---- forward passes ---- */

/* Rows that share their trunk: consecutive in the forward pass, same seq and n_trunk, at most ATTEND_PAIRS of them;
 * position p is trunk[p], or the row's tails[tail + p - n_trunk] after that. */
struct row_group {
    uint32_t first, n;
};

struct until_args {
    const float *temperature, *threshold; /* (L + 1) */
    struct until_state *state;
    struct dev_set set;              /* of the probes */
    const struct dev_product *probe; /* with a set: takes the place of dev_model.products[PROBE_PRODUCT] */
};

struct until_state { /* in the results arena */
    uint32_t exited, depth, probes;
    uint32_t probed[256]; /* the layers probed, in order */
    float annealed[256];  /* the value that each decision compared */
    uint64_t probe_ns;
};
#define MAX_LAYERS 255

struct forward_args {
    const struct dev_model *model; /* on the device */
    struct dev_kv_cache kv_cache;
    const struct row *rows; /* (n) */
    const slot_t *tails;
    const struct row_group *groups; /* (n_groups) */
    const struct pass_step *steps;  /* (1 + n_steps): the beginning, then the steps */
    uint32_t n_steps;
    uint32_t n, n_groups;
    uint32_t first, to;       /* layers first..to; the smallest from is first - 1 */
    bool feeds;               /* the pass is that of rows that a block drafter is fed; tails and groups are not used */
    uint64_t *stamps;         /* time stamps of phases, in layout.h's format; NULL: none */
    uint32_t window;          /* bytes of weights that a block prefetches at a barrier, a multiple of 128; 0: none */
    struct until_args until;  /* temperature NULL: no early exit */
    uint32_t *touched;        /* (L + 1) number of experts used, zero before the pass; NULL: not requested */
    struct route *routes_out; /* (n, L + 1, used) routes of the rows; NULL: not requested */
};

/* ---- products outside of forward passes, and the input of a drafter's rows ---- */

/* A product of a head call in which rows have sets: with rows [first, first + n) of the call. */
enum head_part_kind {
    PART_WHOLE, /* of the whole head */
    PART_BASE,  /* of tokens by rank; outputs from a row's base on are dropped */
    PART_RECENT /* of recent tokens, whose outputs follow a row's base */
};

struct head_part {
    struct dev_matrix matrix;
    uint32_t first, n;
    enum head_part_kind kind;
};

struct put_part {                 /* what becomes of a part's outputs */
    const struct head_row *heads; /* (n) the product's rows; NULL: none has a set */
    uint32_t first;               /* outputs of earlier rows are dropped */
    enum head_part_kind kind;
};

struct matrix_args {
    const struct dev_model *model;
    const struct dev_matrix *matrix;
    const void *x;          /* (n, matrix->cols), packed as the model's activations */
    float *y;               /* row i's outputs are at y + i * ld, */
    const struct row *rows; /* or at y + rows[i].ring * ld */
    uint32_t n, ld;
    uint32_t blocks;      /* number that fills the device */
    bool logits;          /* the outputs are logits, which get the model's form */
    struct put_part part; /* zero: all outputs are stored */
};

struct feed_args {
    const struct dev_model *model;
    struct dev_kv_cache kv_cache;
    const struct row *rows; /* (n) */
    const float *features;  /* (n, features), or NULL: */
    const uint32_t *before; /* (n) ring entries of the rows before them */
    uint32_t n, blocks;
};

/* ---- the head ---- */

struct head_row {
    uint32_t ring, layer;
    bool trained; /* use the layer's trained head: model->trained is present */
    float temperature;
    int32_t final;  /* row of this call with the logits of layer L for the same ring entry, or -1 */
    int32_t kept;   /* row of dev_kv_cache.kept that takes the place of its product with the head, or -1; */
    token_t before; /* then the token whose Markov bias is added, or TOKEN_NONE */
    struct dev_set set;
};

struct head_args {
    const struct dev_model *model;
    struct dev_kv_cache kv_cache;
    const struct head_row *rows; /* (n), n <= kv_cache.head_rows */
    uint32_t n;
    bool trained;                                /* some rows use trained heads */
    bool kept;                                   /* all rows have kept logits */
    const struct head_part *parts, *parts_there; /* (n_parts) on the host and on the device */
    uint32_t n_parts;                            /* 0: all rows are multiplied with the whole head */
    struct prediction *predictions;              /* (n), or NULL: logits only */
    uint32_t blocks; /* number that fills the device, one per multiprocessor: forward_prepare() */
};

/* Computes predictions from rows of logits, by statistics of pieces (struct head_piece). */
struct prediction_args {
    const float *logits; /* (n, vocab) */
    uint32_t vocab, n;
    const token_t *tokens;     /* (vocab) ids, or NULL */
    struct head_piece *pieces; /* (n, head_pieces_of(vocab)) */

    const struct head_row *rows;     /* (n) the rows of a head call; or, if NULL, */
    const struct until_state *until; /* the layers that a forward pass probed, at most n of them, in order, */
    const float *temperature;        /* by layer */
    struct dev_set set;              /* of all their logits, at most `vocab` */
    struct prediction *predictions;  /* (n); or by layer, those that were probed */
};

struct dist_args {
    const struct dev_model *model;
    struct dev_kv_cache kv_cache;
    const struct dist_req *requests; /* (n); their logits are rows 0..n-1 of head_logits */
    const struct head_row *rows;     /* (n) rows of the head call; NULL: all with set 0 */
    uint32_t n;
};

/* Copies rows of the head into the packed rows of another matrix. */
struct gather_args {
    struct dev_matrix from, to; /* of one packed type and width */
    const token_t *ids;         /* (n) the row of `from` for each of `to` */
    uint32_t n, first, strips;  /* strips [first, first + strips) are written */
};

struct draw_args {
    struct dev_kv_cache kv_cache;
    const struct draw_req *requests; /* (n); `without` and `out` are device pointers */
    uint32_t n;
};

struct overlap_args {
    struct dev_kv_cache kv_cache;
    const struct overlap_req *requests; /* (n); `out` is a device pointer */
    uint32_t n;
};

struct dev_round {                   /* a round to verify */
    const struct verify_node *nodes; /* (n) */
    const int32_t *logits_row;       /* (n) row of head_logits, or -1 */
    struct row_dist *dists;          /* (n) */
    uint32_t n;
    struct sampling sampling;
    uint64_t seed;
    struct verdict *verdict;
};

struct verify_args {
    const struct dev_model *model;
    struct dev_kv_cache kv_cache;
    const struct dev_round *rounds; /* (n), with kv_cache.head_rows nodes in all at most */
    uint32_t n;
    uint32_t longest;                     /* largest number of nodes in a round */
    bool sampled;                         /* whether some rounds are sampled */
    const struct prediction *predictions; /* predictions for the rows of head_logits */
};

/* ---- layers of experts ----
 *
 * Experts of a layer are stacked: expert e's strips are number e * strips and up of one matrix, of which `rows` and
 * `strips` say what one expert has, and `source` which output a packed row of any is.
 *
 * An expert row is a row at one of its experts. Expert rows are in order of the experts, so that an expert is read once
 * for all of its rows; those at the one that all rows go to come last. */

#define MOST_EXPERTS 512 /* per layer: one for each thread of a block */

struct expert_stack {
    struct dev_matrix gate_up, down;  /* without gates gate_up is only up */
    const float *bgate, *bup, *bdown; /* (experts, ffn) twice, (experts, width); NULL: all absent */
};

struct dev_moe {
    const float *router;                /* (experts, width) */
    struct expert_stack routed, shared; /* shared: the shared expert, without matrices if there is none */
};

struct expert_row {
    uint32_t row, expert; /* row of the forward pass; index of the routed expert, or `experts` for the shared one */
    float weight;         /* factor of the expert's output */
    uint32_t edge;        /* whether it is ROW_FIRST, ROW_LAST of its row */
};
#define ROW_FIRST 1u
#define ROW_LAST  2u

struct listed_expert { /* an expert's rows: [first, first + n) */
    uint32_t expert, first, n;
};

struct expert_list {
    uint32_t arrived;           /* number of blocks that have computed their logits; zero at rest */
    uint32_t n;                 /* experts with rows */
    uint32_t most;              /* largest number of rows of one expert */
    uint32_t rows;              /* number of rows that take part */
    struct listed_expert alone; /* the shared expert */
    struct listed_expert experts[MOST_EXPERTS];
};

/* Layout of the time stamps of a forward pass (profile.h), in words of 64 bits: the number of phases; the time when
 * block 0 began; then for each phase its layer and step, the time when block 0 left the barrier after it, and the time
 * when each block arrived there. */

enum { STAMPED_PHASES, STAMPED_BEGIN, STAMPS_HEAD };
enum { STAMP_PLACE, STAMP_LEFT, STAMP_CAME }; /* STAMP_PLACE: grid_place() */

static inline HOST_DEVICE size_t
stamps_at(uint32_t phase, uint32_t blocks)
{
    return STAMPS_HEAD + (size_t)phase * (STAMP_CAME + blocks);
}

/* Returns the number of words for so many layers. */
static inline size_t
stamps_room(uint32_t layers, uint32_t blocks)
{
    return stamps_at(layers * STEPS, blocks);
}
