/* The contract of a compute backend.
 *
 * A backend owns weights, stores of keys and values with a ring of hidden states each, and pools of distributions. The
 * host names places in them by number and never sees inside. Requests are queued in order; what they write for the host
 * (every `out` pointer below) is written by wait() and by nothing else. That is an accelerator's way of working, and
 * the CPU backend keeps to it too.
 *
 * Batch invariance, per class. For `step`, `until` and the final-layer logits behind `guess`, `dist` and `verify`: the
 * bits of a row depend on that row's own token, class, path (with its rows' classes) and skip mask alone; not on which rows
 * share the call, on the thread count, or on how a path is divided into trunk and tail. Keys are visited in position order,
 * in blocks fixed by position. A row's class is `generated` but in sweeps that say `prompt`, which a backend may multiply
 * in another way, the same for every such sweep of a store.
 *
 * Distributions meet in a pool: stores of several models, whose vocabularies may differ, share one. Each writes
 * distributions over its own vocabulary, beyond which they are 0, and reads those of all. Stores queue independently, so
 * between a request of one store that names a distribution and a request of another store that names the same one lies
 * the first store's wait(). Distributions with different numbers are independent of each other.
 * Layers are numbered 1..L; "depth d" of a row means that layers 1..d have run on it; depth 0 is the embedding.
 */
#ifndef KERNELS_BACKEND_H
#define KERNELS_BACKEND_H

#ifdef __cplusplus /* kernels/cuda reads this too */
#include <atomic>
typedef std::atomic<bool> atomic_bool;
#else
#include <stdatomic.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/base/err.h"
#include "kernels/base/rng.h"
#include "kernels/form.h"
#include "kernels/layer_tensors.h"
#include "kernels/products.h"

#define BACKEND_ABI (14u + 256u * LAYER_TENSORS) /* which are part of it */

typedef int32_t token_t;
typedef uint32_t slot_t; /* a place in the KV store, the same in every layer */
typedef uint32_t seq_t;  /* a sequence: a trunk of committed rows */
typedef uint32_t dist_t; /* a distribution over a vocabulary, in a pool of the backend */

#define TOKEN_NONE ((token_t)-1)
#define SLOT_NONE  UINT32_MAX
#define SEQ_NONE   UINT32_MAX
#define RING_NONE  UINT32_MAX
#define DIST_NONE  UINT32_MAX

#define GUESS_TOP 5 /* tokens listed in a guess */

/* ---- weights ---- */

enum weight_type { /* those with blocks: as GGUF lays them out, blocks along a row */
                   WEIGHT_F32,
                   WEIGHT_F16,
                   WEIGHT_BF16,
                   WEIGHT_Q8_0,
                   WEIGHT_Q4_0,
                   WEIGHT_Q4_1,
                   WEIGHT_Q5_0,
                   WEIGHT_Q5_1,
                   WEIGHT_Q2_K,
                   WEIGHT_Q3_K,
                   WEIGHT_Q4_K,
                   WEIGHT_Q5_K,
                   WEIGHT_Q6_K,
                   WEIGHT_MXFP4,
                   WEIGHT_IQ4_NL,
                   WEIGHT_IQ4_XS,
                   WEIGHT_IQ3_S,
                   WEIGHT_IQ3_XXS,
                   WEIGHT_IQ2_S,
                   WEIGHT_IQ2_XS,
                   WEIGHT_IQ2_XXS,
                   WEIGHT_IQ1_M,
                   WEIGHT_IQ1_S,
                   WEIGHT_TQ1_0,
                   WEIGHT_TQ2_0,
                   WEIGHT_TYPES
};

struct synthetic;   /* weights that a formula makes: kernels/synthetic.h */
struct expert_desc; /* kernels/experts.h */
struct route;       /* kernels/experts.h */

struct tensor {       /* row-major: rows outputs of cols inputs each; a vector has rows = 1 */
    const void *data; /* host memory, usually a mapped file; aligned to its elements at least (to 32 bytes in GGUF */
                      /* files, but not in safetensors). NULL in a tensor that the model may lack: there is none; or */
                      /* there is a formula instead */
    enum weight_type type;
    uint32_t rows, cols;
    const struct synthetic *synthetic; /* how to make the elements when data is NULL, or NULL */
    bool mapped; /* data are pages of a file, mapped and never written: one that is given back comes again when read */
};

static inline bool
tensor_present(const struct tensor *t)
{
    return t->data != NULL || t->synthetic != NULL;
}

struct layer_desc { /* layer_tensors.h says which there are, and their shapes; by name and by number */
    union {
        struct tensor all[LAYER_TENSORS];
        __extension__ struct {
#define FIELD(NAME, field, ...) struct tensor field;
            FOR_LAYER_TENSORS(FIELD, FIELD, FIELD)
#undef FIELD
        };
    };
    struct layer_form form;
    const struct expert_desc *experts; /* kernels/experts.h; NULL: the layer has an MLP */
};

enum rope_layout {
    ROPE_ADJACENT, /* pairs (2i, 2i+1): Llama in GGUF */
    ROPE_HALVES    /* pairs (i, i + rope_dims/2): NeoX */
};

struct model_desc {
    uint32_t n_layers, width, heads, kv_heads, head_dim, ffn, vocab;
    uint32_t rope_dims; /* leading dimensions of a head that are rotated, <= head_dim */
    enum rope_layout rope;
    float rope_base;           /* 10000 */
    float rope_scale;          /* positions are multiplied by this: 1, or 1/factor for linear scaling */
    const float *rope_factors; /* (rope_dims/2) divisors of the frequencies, or NULL */
    float rms_eps;
    uint32_t ctx;    /* positions of the stores to come, for a look ahead at memory; 0: not known */
    uint32_t window; /* a row at position p attends to positions above p - window; 0: to all */
    struct model_form form;
    struct tensor embedding; /* (vocab, width) */
    struct tensor positions; /* F32 (positions, width): a row's is added to its embedding; or absent */
    struct tensor embedding_norm, embedding_norm_bias; /* (width): before the first layer (BLOOM); or absent */
    struct tensor final_norm, final_norm_bias;         /* (width); the bias may be absent */
    struct tensor head, head_bias;   /* (vocab, width), the same data as embedding when tied; (vocab), or absent */
    const struct layer_desc *layers; /* (n_layers) */
};

/* What was trained to stand between a layer and the next token, so that early layers guess better. At most one of the
 * two is there: where neither is, the layer has the lens. */
struct exit_head {
    struct tensor a, b;   /* F32, (width, width) and (width): the lens looks at h + A h + b (tuned lens) */
    struct tensor weight; /* F32, (vocab, width): after the final norm, in the LM head's place */
};

enum head_choice {
    USE_LENS,   /* final norm, then LM head */
    USE_TRAINED /* the layer's exit_head; the lens where it has none */
};

/* ---- rows ---- */

struct row {
    token_t token;
    slot_t slot;   /* its keys and values, in every layer */
    uint32_t ring; /* its hidden states, for every depth 0..L */
    seq_t seq;     /* it attends to positions 0..n_trunk-1 of this sequence's trunk, */
    uint32_t n_trunk;
    uint32_t tail, n_tail; /* then to the slots tails[tail .. tail+n_tail), itself last; */
                           /* so its position is n_trunk + n_tail - 1 */
    uint32_t from;         /* its depth before the call: it joins the sweep at layer from + 1 */
};

/* One sweep, layers ascending: at layer l all rows with from < l take part, keys and values of all of them written
 * before any of them attends. */
struct sweep {
    const struct row *rows; /* n rows; an ancestor comes before its descendants */
    size_t n;               /* at most store_desc.max_rows; of a prompt's chunk prompt_rows */
    const slot_t *tails;
    size_t n_tails;
    uint32_t to;                           /* depth of every row afterwards; a row with from >= to takes no part */
    const bool *skip_attention, *skip_mlp; /* (L + 1), indexed by layer 1..L, or NULL; a skipped sublayer leaves the */
                                           /* residual stream as it is and writes no keys and values */
    bool prompt; /* a chunk of one, where store_desc.prompt_rows allows it: its rows are of that class. `step` alone */
                 /* takes it, all rows from depth 0, none of them skipping */
    /* Of a mixture of experts: out, (L + 1), how many experts of each layer the sweep's rows went to, the one that all go to
     * not counted, 0 where none was asked; or NULL. */
    uint32_t *touched;
    /* Likewise: in and out, (n, L + 1, experts used by a row), where each row went at each layer that this sweep ran on it, by the
     * experts' index, EXPERT_NONE elsewhere. A backend that can't tell leaves all as it is. Or NULL. */
    struct route *routes;
};

/* Early exit, decided by the backend: the sweep runs layer by layer; after layer l, where threshold[l] <= 1, the head
 * looks at the *last* row; it exits at the first l with max softmax(z_l / temperature[l]) >= threshold[l].
 * Stops after layer sweep.to at the latest. Other rows go as far as the last one went. */
struct exit_rule {
    const float *temperature; /* (L + 1), indexed by layer */
    const float *threshold;   /* (L + 1); above 1: not probed */
    enum head_choice head;    /* which one looks; at layer L all are the lens */
};

struct guess {              /* what a layer says about the next token */
    token_t token;          /* argmax, lowest id among equals; = top[0] */
    float confidence;       /* max softmax(z), temperature 1 */
    float annealed;         /* max softmax(z / T) with the probe's T */
    float entropy;          /* of softmax(z), nats */
    token_t top[GUESS_TOP]; /* descending; TOKEN_NONE where the vocabulary is smaller */
    float top_p[GUESS_TOP]; /* temperature 1 */
    float kl_final;         /* KL(final || this layer), nats; NAN when not asked for */
    int32_t rank_final;     /* rank here of the final layer's argmax, 0 = first; -1 when not asked for */
};

struct exit_result {
    bool exited;
    uint32_t depth;       /* the last layer run */
    uint32_t probes;      /* head calls made */
    uint64_t probe_ns;    /* of the sweep's time, what they took; 0: the backend cannot tell */
    struct guess guess;   /* of the last probed layer; token TOKEN_NONE when none was probed */
    struct guess *probed; /* host memory given by the caller, (L + 1) or NULL: the guess of every probed layer, */
                          /* token TOKEN_NONE where not probed */
};

struct probe {
    uint32_t ring;  /* whose hidden state */
    uint32_t layer; /* 0..L; the row's depth must have reached it */
    enum head_choice head;
    float temperature; /* for `annealed`; 1 otherwise */
    bool versus_final; /* also kl_final and rank_final against layer L of the same ring entry */
};

/* ---- sampling ---- */

struct sampling {
    float temperature; /* 0: greedy, the distribution is 1 at the argmax */
    uint32_t top_k;    /* 0: off */
    float top_p;       /* 1: off */
};

struct dist_req {
    uint32_t ring, layer;
    enum head_choice head;
    struct sampling sampling;
    dist_t out;
};

/* How well a cheap distribution stands for a better one: what Speculative Verification asks of a draft d and its
 * companion c, per drafted token x. Where d(x) is 0, x can't have been drawn from d; it counts as chosen
 * deterministically, as in verification, and c(x) is its acceptance. */
struct overlap {
    float similarity; /* sum over v of min(d(v), c(v)) */
    float acceptance; /* of x, were c the target: min(1, c(x)/d(x)) */
};

struct overlap_req {
    dist_t d, c;
    token_t token; /* x, in the pool's vocabulary */
    struct overlap *out;
};

struct draw_req {
    dist_t from;
    bool likeliest; /* the likeliest token, lowest id among equals, instead of a random one; the key is not used */
    struct rng_key key;
    const token_t *without; /* tokens excluded, the rest renormalised: drawing siblings without replacement */
    size_t n_without;
    token_t *out; /* TOKEN_NONE if nothing is left */
};

/* Verification walks a tree of candidates. Node 0 is the row that the round started from (the pending token). From a
 * node, its children are tested in the order given, each accepted with probability min(1, p(x)/q(x)) where p is the
 * target's distribution at the node's row; a rejection sets p <- norm(max(0, p - q)) and takes x out of the q of the
 * siblings after it (candidates of one node are drawn without replacement). q = DIST_NONE is 1 at the token. With
 * temperature 0 all that is "is it the target's argmax".
 * q may be over another vocabulary: p and q are 0 at what only the other one has, and q's mass there is part of its sum.
 * So a candidate beyond the target's vocabulary (in the pool's, without a row) is always rejected, and takes its q out of
 * p like any other. */
struct verify_node {
    int32_t parent; /* index of a node before it; -1 for node 0 */
    token_t token;
    uint32_t pos;  /* position of the token, for the random numbers */
    uint32_t ring; /* its row, at depth L; RING_NONE: no row, so accepting it ends the walk */
    dist_t q;
};

#define VERIFY_NODES 64

enum next_kind {
    NEXT_CORRECTION, /* children were there, none was accepted: drawn from what is left of p */
    NEXT_BONUS,      /* the walk ended at a node without children: drawn from p */
    NEXT_CANDIDATE   /* the walk ended at a node without a row, the last on the path: `next` is that node's token */
};

struct verdict {
    uint32_t n_path;             /* accepted nodes, node 0 not counted */
    uint32_t path[VERIFY_NODES]; /* their indices, in order */
    token_t next;                /* what follows the last row on the path */
    enum next_kind kind;
    struct guess judged[VERIFY_NODES]; /* the target's guess at every node's row; token TOKEN_NONE without a row */
};

struct verify_req { /* a round of one sequence */
    const struct verify_node *nodes;
    size_t n; /* 1..VERIFY_NODES */
    struct sampling sampling;
    uint64_t seed; /* names the random stream: its keys are those of sequence 0 */
    struct verdict *out;
};

/* ---- the backend ---- */

struct backend_options {
    uint32_t threads;     /* 0: as many as there are cores */
    const char *isa;      /* NULL or "auto": the best one; else a family or name of kernels/cpu/isa.h */
    bool exact;           /* F32 weights, activations and keys: oracle-grade, slow */
    int gpu;              /* device number, -1: the first */
    uint32_t prompt_rows; /* a library multiplies prompts, so many rows a chunk; 0: as all rows. open() fails without */
};

#define STORE_PROBES 512u /* that a request has at most, where nobody says otherwise */

struct store_desc {       /* kernels/request.h, store_defaults() */
    uint32_t slots;       /* places for keys and values */
    uint32_t ring;        /* rows whose hidden states are stored */
    uint32_t seqs;        /* trunk tables */
    uint32_t trunk;       /* length of a trunk table: the context size */
    uint32_t max_rows;    /* rows in one sweep */
    uint32_t max_probes;  /* probes in one guess call */
    uint32_t prompt_rows; /* rows of a prompt's chunk; 0: sweeps say `prompt` never. Else as in backend_options */
    uint32_t depth;       /* rows go no deeper: there are keys and values of so many layers; 0: of all */
    struct dists *dists;  /* of the same backend, over the model's vocabulary at least; borrowed; NULL: it has none */
    const atomic_bool *cancel; /* looked at before every layer; when set, queued work is dropped and wait() says */
                               /* ERR_CANCELLED; rows of the dropped sweep keep their depth */
};

struct backend;
struct weights;
struct store;
struct dists; /* a pool of distributions */

/* Called with work done so far in [0, 1]; returning false cancels. */
typedef bool (*progress_fn)(void *user, double done);

struct backend_ops {
    const char *name;
    uint32_t abi;
    bool (*open)(struct backend **, const struct backend_options *, struct err *);
    void (*close)(struct backend *);
    const char *(*describe)(const struct backend *); /* "avx512vnni x2": instruction set and threads, for people */
    /* Threads of this machine's processors that compute at present; fewer than were asked for while other processes need
     * the processors. Any thread may ask. NULL: the backend has no threads of its own. */
    uint32_t (*threads)(const struct backend *);
    /* What a user should know of it, in one line, or ""; NULL: nothing. Known before anything that takes long. */
    const char *(*note)(const struct backend *);
    /* The tensors of the model stay the caller's and must outlive the weights. */
    bool (*load)(struct backend *, const struct model_desc *, progress_fn, void *user, struct weights **, struct err *);
    void (*unload)(struct weights *);
    /* Does what load() left for later, until `cancel` (or NULL) is set. Nothing may be queued. NULL: nothing is left. */
    void (*settle)(struct weights *, const atomic_bool *cancel);
    /* Takes trained heads over, in place of those from before: by_layer is (L + 1), indexed by layer; NULL takes them
     * away. All is copied. Not while a store of these weights has anything queued. On failure there are none. */
    bool (*heads)(struct weights *, const struct exit_head *by_layer, struct err *);
    /* A pool of n distributions over vocab tokens: of the largest vocabulary of those who share it. */
    bool (*dists)(struct backend *, uint32_t vocab, uint32_t n, struct dists **, struct err *);
    void (*drop_dists)(struct dists *); /* after its stores */
    /* The weights, and the pool, must outlive the store, which is the caller's until it is dropped. */
    bool (*store)(struct weights *, const struct store_desc *, struct store **, struct err *);
    void (*drop)(struct store *);
    /* What multiplies prompts in a store with prompt_rows, for traces: library and algorithms; NULL: no such store. */
    const char *(*prompts)(const struct store *);

    /* Queued. Arguments are copied or consumed before the call returns, but for `out` memory, which must live until
     * wait(). They return false when the request is malformed (a programming error); run-time failures come from wait(). */
    bool (*trunk)(struct store *, seq_t, uint32_t first, const slot_t *slots,
                  size_t n);                                     /* trunk[first..first+n) = slots */
    bool (*embed)(struct store *, const struct row *, size_t n); /* of a row token, ring and position */
    bool (*step)(struct store *, const struct sweep *);
    bool (*until)(struct store *, const struct sweep *, const struct exit_rule *, struct exit_result *out);
    bool (*guess)(struct store *, const struct probe *, size_t n, struct guess *out);
    bool (*dist)(struct store *, const struct dist_req *, size_t n);
    bool (*draw)(struct store *, const struct draw_req *, size_t n);
    bool (*overlap)(struct store *, const struct overlap_req *, size_t n); /* sums in one fixed order */
    /* Rounds of several sequences: the head runs on the rows of all together, so its weights are read once for many of
     * them; then each is walked by itself. A verdict's bits are the same whatever rounds share the call. */
    bool (*verify)(struct store *, const struct verify_req *, size_t n);
    /* For tests and oracle-grade comparison: logits (vocab) and hidden state (width), F32. */
    bool (*read_logits)(struct store *, uint32_t ring, uint32_t layer, float *out);
    bool (*read_hidden)(struct store *, uint32_t ring, uint32_t layer, float *out);
    bool (*read_dist)(struct store *, dist_t, float *out); /* (the pool's vocabulary) */
    bool (*wait)(struct store *, struct err *);
    /* Where the device's time went since this was last asked, in one line for people ("busy 93%, of it waiting 9%: gate·up 31% …"). False,
     * and text is "": nothing was measured. Not while anything is queued. NULL: the backend never knows. */
    bool (*describe_time)(struct store *, char *text, size_t room);

    const struct product_ops *products; /* NULL: it has none */
};

extern const struct backend_ops cpu_backend;

#endif
