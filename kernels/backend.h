/* The interface of a compute backend.
 *
 * A backend owns weights, KV caches with a ring of hidden states each, and pools of distributions. The host refers to
 * entries in them by number and has no access to their memory. Requests are queued and carried out in order. Only
 * wait() writes their results to host memory (every `out` pointer below). An accelerator works in this way; the CPU
 * backend follows the same rules.
 *
 * Batch invariance, per class. For `step`, `until` and the final-layer logits used by `predict`, `dist` and `verify`:
 * the bits of a row depend only on the row's own token, class, path (with the classes of its rows) and skip mask. They
 * do not depend on the other rows of the call, on the thread count, or on how a path is divided into trunk and tail.
 * Keys are visited in position order, in blocks fixed by position. The class of a row is `generated`, except in forward
 * passes with `prompt` set. A backend may multiply these in another way, which is the same for every such pass of a KV
 * cache.
 *
 * KV caches of several models, whose vocabularies may differ, can share one pool of distributions. Each cache writes
 * distributions over its own vocabulary, with 0 for all larger token ids, and reads the distributions of all. KV caches
 * queue independently: after a request of one cache that uses a distribution, wait() for that cache must be called
 * before a request of another cache uses the same distribution. Distributions with different numbers are independent of
 * each other.
 *
 * Layers are numbered 1..L. "Depth d" of a row means that layers 1..d have run on it; depth 0 is the embedding. */
#pragma once

#ifdef __cplusplus /* kernels/cuda includes this file as C++ */
#include <atomic>
typedef std::atomic<bool> atomic_bool;
#else
#include <stdatomic.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/rng.h"
#include "kernels/form.h"
#include "kernels/layer_tensors.h"
#include "kernels/products.h"

#define BACKEND_ABI (18u + 256u * LAYER_TENSORS) /* the list of layer tensors is part of the ABI */

typedef int32_t token_t;
typedef uint32_t slot_t; /* an entry of the KV cache, with the same number in every layer */
typedef uint32_t seq_t;  /* a sequence: a trunk of committed rows */
typedef uint32_t dist_t; /* a distribution over a vocabulary, in a pool of the backend */

#define TOKEN_NONE ((token_t)-1)
#define SLOT_NONE  UINT32_MAX
#define SEQ_NONE   UINT32_MAX
#define RING_NONE  UINT32_MAX
#define DIST_NONE  UINT32_MAX
#define STATE_NONE UINT32_MAX

#define PREDICTION_TOP   5  /* most probable tokens of a prediction whose probabilities are given */
#define PREDICTION_RANKS 10 /* those whose ranks are given */

/* A *set* of tokens restricts a head to the rows of these tokens: a draft vocabulary (FR-Spec, Zhao et al. 2025,
 * arXiv:2502.14856). Set 0 is the whole vocabulary. Set s of 1..kv_cache_desc.sets is what draft_set() made it: its
 * base, the first tokens of kv_cache_desc.rank, and then its recent tokens. Each logit has the same bits as in the
 * whole head. Probabilities are over the set, and among equal logits the token that comes first in the set counts as
 * the larger. */
#define DRAFT_RECENT 1024u /* recent tokens of a set at most */

/* ---- weights ---- */

enum weight_type { /* block types have GGUF's layout, with blocks along a row */
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

struct synthetic;   /* weights computed by a formula: kernels/synthetic.h */
struct expert_desc; /* kernels/experts.h */
struct route;       /* kernels/experts.h */

struct tensor { /* row-major: rows outputs of cols inputs each; a vector has rows = 1 */
    /* Host memory, usually a mapped file, aligned at least to the element size (GGUF files: to 32 bytes; safetensors
     * files: not). NULL: an optional tensor is absent, or `synthetic` computes the elements. */
    const void *data;
    enum weight_type type;
    uint32_t rows, cols;
    const struct synthetic *synthetic; /* formula for the elements when data is NULL, or NULL */
    bool mapped; /* data is a read-only mapping of a file: released pages are read from the file again */
};

static inline bool
tensor_present(const struct tensor *t)
{
    return t->data != NULL || t->synthetic != NULL;
}

struct layer_desc { /* tensors by name and by number; kernels/layer_tensors.h lists them with their shapes */
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

/* A drafter that reads features of another model's rows. Norms are RMS norms with the model's epsilon.
 *
 * An EAGLE-3 head, or a layer for multi-token prediction, has one layer. A row has a token with the embedding e, and g,
 * which is projection * norm(features) or the output of the row before it. The layer's input is
 * join * [norm(e); norm(g)]. Without `join` it is g, and q, k and v read [norm(e); norm(g)], which is twice as wide.
 *
 * A block drafter (DFlash, DSpark) has block > 0 and one or more layers. A row that is fed is complete: in each layer
 * it has the key and the value of g = feature_norm(projection * features), and no hidden states. A row that is embedded
 * runs through the layers as in an ordinary model; it and the rows of its block attend to one another (row.n_after).
 * With markov_w1 the logits of a row can be increased by markov_w2 * markov_w1[token before] (probe.before). */
struct drafter_desc {
    uint32_t features;                      /* numbers of a row's features */
    uint32_t parts;                         /* `norm` norms each of so many equal parts of the features */
    struct tensor norm;                     /* (features), or absent: no norm */
    struct tensor projection;               /* (width, features), or absent: features = width */
    struct tensor token_norm, feature_norm; /* (width): of e and of g */
    struct tensor join;                     /* (width, 2 width), or absent */
    bool input_normed;                      /* without `join`: the layer's input is norm(g) */
    bool output_normed;                     /* g from the row before it is that row's output after the final norm */
    const token_t *tokens;                  /* (head.rows) the ids of the head's outputs; NULL: 0, 1, 2, … */

    uint32_t block;                     /* rows of a block; 0: no block drafter */
    token_t mask;                       /* token of the rows of a block after the first one */
    bool causal;                        /* a row of a block attends to no later row; layers may be so on their own */
    bool from_anchor;                   /* the block's first row predicts the first draft; else its second one does */
    struct tensor markov_w1, markov_w2; /* (vocab, rank), (head.rows, rank); or absent */
    struct tensor confidence; /* (1, width + rank or width) F32: acceptance of a row's draft is sigmoid(confidence */
    float confidence_bias;    /* * [final_norm(h); markov_w1[token before]] + confidence_bias); or absent. Host only */
};

struct model_desc {
    uint32_t n_layers, width, heads, vocab;
    uint32_t kv_heads, head_dim, ffn; /* the largest of all layers (layer_sizes()) */
    uint32_t rope_dims;               /* leading dimensions of a head that are rotated, <= head_dim */
    enum rope_layout rope;
    float rope_base;           /* usually 10000 */
    float rope_scale;          /* factor of positions: 1, or 1/factor for linear scaling */
    const float *rope_factors; /* (rope_dims/2) divisors of the frequencies, or NULL */
    float rms_eps;
    uint32_t ctx;    /* expected positions per KV cache, for memory estimates; 0: unknown */
    uint32_t window; /* a row at position p attends to positions greater than p - window; 0: to all */
    struct model_form form;
    struct tensor embedding; /* (vocab, width) */
    struct tensor positions; /* F32 (positions, width): added to the embedding by position; or absent */
    struct tensor embedding_norm, embedding_norm_bias; /* (width): applied before the first layer (BLOOM); or absent */
    struct tensor final_norm, final_norm_bias;         /* (width); the bias may be absent */
    struct tensor input_embedding; /* (vocab, n_layers * form.per_layer): per-layer inputs, layer by layer; or absent */
    struct tensor input_norm;      /* (form.per_layer); or absent */
    struct tensor head, head_bias; /* (vocab, width), the same data as embedding when tied; (vocab), or absent */
    const struct layer_desc *layers;    /* (n_layers) */
    const struct drafter_desc *drafter; /* NULL: an ordinary model */
};

/* Returns whether q, k and v read pairs, which are twice as wide as the model. */
static inline bool
model_pairs(const struct model_desc *d)
{
    return d->drafter != NULL && d->drafter->block == 0 && !tensor_present(&d->drafter->join);
}

/* Numbers of a layer; q and kv are the widths of all its queries, and of all its keys. */
struct layer_sizes {
    uint32_t kv_heads, head_dim, ffn, q, kv;
};

static inline struct layer_sizes
layer_sizes(const struct model_desc *d, const struct layer_form *f)
{
    struct layer_sizes n = {f->kv_heads > 0 ? f->kv_heads : d->kv_heads, f->head_dim > 0 ? f->head_dim : d->head_dim,
                            f->ffn > 0 ? f->ffn : d->ffn, 0, 0};
    n.q = d->heads * n.head_dim;
    n.kv = n.kv_heads * n.head_dim;
    return n;
}

/* Trained parameters that improve the predictions of an early layer. At most one of the two is present; a layer with
 * neither uses the logit lens. */
struct exit_head {
    struct tensor a, b;   /* F32, (width, width) and (width): the lens is applied to h + A h + b (tuned lens) */
    struct tensor weight; /* F32, (vocab, width): replaces the LM head after the final norm */
};

enum head_choice {
    USE_LENS,   /* logit lens: final norm, then LM head */
    USE_TRAINED /* the layer's exit_head; the logit lens if the layer has none */
};

/* ---- rows ---- */

struct row {
    token_t token;
    slot_t slot;   /* its entry for keys and values, in every layer */
    uint32_t ring; /* its entry for hidden states of all depths 0..L */
    seq_t seq;     /* the row attends to positions 0..n_trunk-1 of this sequence's trunk, */
    uint32_t n_trunk;
    uint32_t tail, n_tail; /* then to the slots tails[tail .. tail+n_tail), the last of which is its own; */
                           /* its position is therefore n_trunk + n_tail - 1 */
    uint32_t from;         /* its depth before the call: layer from + 1 is the first to run on it */
    uint32_t n_after;      /* number of slots after its own in tails to which it attends, too: later rows of a block; */
                           /* 0 in other models */
    uint32_t state;        /* recurrent layers: the state after exactly the rows of its trunk, 0..n_trunk-1 */
};

/* One forward pass, layers ascending. All rows with from < l take part in layer l; the layer writes the keys and values
 * of all of them before any of them attends. */
struct forward_pass {
    const struct row *rows; /* n rows; ancestors precede their descendants */
    size_t n;               /* at most kv_cache_desc.max_rows */
    const slot_t *tails;
    size_t n_tails;
    uint32_t to;                           /* depth of every row after the pass; rows with from >= to take no part */
    const bool *skip_attention, *skip_mlp; /* (L + 1), indexed by layer 1..L, or NULL; a skipped sublayer leaves the */
                                           /* residual stream as it is and writes no keys and values */
    /* Mixture of experts: out, (L + 1): number of distinct experts of each layer that the pass's rows were routed to,
     * without the shared expert; 0 where no row was routed. Or NULL. */
    uint32_t *touched;
    /* Mixture of experts: in and out, (n, L + 1, experts used by a row): the experts of each row at each layer that
     * this pass ran on it, by index; EXPERT_NONE elsewhere. A backend that cannot report routes leaves the array
     * unchanged. Or NULL. */
    struct route *routes;
};

/* Early exit, decided by the backend. The pass runs layer by layer. After each layer l with threshold[l] <= 1, the head
 * computes the logits z_l of the *last* row. The pass exits at the first l with max softmax(z_l / temperature[l]) >=
 * threshold[l], and at layer forward.to at the latest. Other rows reach the same depth as the last row. */
struct exit_rule {
    const float *temperature; /* (L + 1), indexed by layer */
    const float *threshold;   /* (L + 1); above 1: not probed */
    enum head_choice head;    /* head for the probes; layer L always uses the logit lens */
    uint32_t set;             /* tokens of the probes */
};

struct prediction {   /* a layer's prediction of the next token */
    token_t token;    /* argmax, the lowest id among equals; equal to top[0] */
    float confidence; /* max softmax(z), temperature 1 */
    float annealed;   /* max softmax(z / T) with the probe's T */
    float entropy;    /* entropy of softmax(z), nats */
    token_t top
        [PREDICTION_RANKS]; /* most probable tokens, descending; filled with TOKEN_NONE if the vocabulary is smaller */
    float top_p[PREDICTION_TOP]; /* probabilities of the first ones at temperature 1 */
    float kl_final;              /* KL(final || this layer), nats; NAN if not requested */
    int32_t rank_final;          /* rank in this layer of the final layer's argmax, 0 = first; -1 if not requested */
};

struct exit_result {
    bool exited;
    uint32_t depth;               /* the last layer run */
    uint32_t probes;              /* number of head calls */
    uint64_t probe_ns;            /* part of the pass's time spent on probes; 0: the backend cannot measure it */
    struct prediction prediction; /* prediction of the last probed layer; token TOKEN_NONE if none was probed */
    struct prediction *probed;    /* host memory of the caller, (L + 1) or NULL: predictions of all probed layers; */
                                  /* token TOKEN_NONE for layers that were not probed */
};

struct probe {
    uint32_t ring;  /* ring entry of the hidden state */
    uint32_t layer; /* 0..L; at most the row's depth */
    enum head_choice head;
    float temperature; /* used for `annealed`; otherwise 1 */
    bool
        versus_final; /* also compute kl_final and rank_final against layer L of the same ring entry; with set 0 only */
    uint32_t set;
    /* In a block drafter, at layer L, with set 0: the logits are those that the last predict() with probes that are not
     * kept computed for this ring entry, increased by markov_w2 * markov_w1[before]; before = TOKEN_NONE: not increased.
     * Logits of the first max_rows ring entries of such a call are kept. All or none of a call's probes are kept. */
    bool kept;
    token_t before;
};

/* ---- sampling ---- */

struct sampling {
    float temperature; /* 0: greedy, probability 1 at the argmax */
    uint32_t top_k;    /* 0: off */
    float top_p;       /* 1: off */
};

struct dist_req {
    uint32_t ring, layer;
    enum head_choice head;
    struct sampling sampling;
    dist_t out;
    uint32_t set; /* tokens outside the set have probability 0 */
    bool kept;    /* this and `before` as in struct probe; in all or none of a call's requests */
    token_t before;
};

/* How well a cheap distribution approximates a better one: Speculative Verification compares a draft d with its
 * companion c for each drafted token x. If d(x) is 0, x cannot have been drawn from d: x then counts as chosen
 * deterministically, as in verification, and its acceptance is c(x). */
struct overlap {
    float similarity; /* sum over v of min(d(v), c(v)) */
    float acceptance; /* of x, if c were the target: min(1, c(x)/d(x)) */
};

struct overlap_req {
    dist_t d, c;
    token_t token; /* x, in the pool's vocabulary */
    struct overlap *out;
};

struct draw_req {
    dist_t from;
    bool likeliest; /* return the most probable token, the lowest id among equals; the key is not used */
    struct rng_key key;
    const token_t *without; /* tokens to exclude; the rest is renormalised: siblings are drawn without replacement */
    size_t n_without;
    token_t *out; /* TOKEN_NONE if no token is left */
};

/* Verification walks a tree of candidates. Node 0 is the row that the round started from (the pending token). At a
 * node, its children are tested in the given order. A child is accepted with probability min(1, p(x)/q(x)), where p is
 * the target's distribution at the node's row. A rejection sets p <- norm(max(0, p - q)) and removes x from the q of
 * later siblings, because candidates of one node are drawn without replacement. q = DIST_NONE means probability 1 at
 * the token. At temperature 0 the test is whether x is the target's argmax.
 * q may be over another vocabulary. p and q are 0 for tokens that only the other vocabulary contains, and q's mass on
 * such tokens is part of its sum. A candidate outside the target's vocabulary (in the pool's vocabulary, without a row)
 * is therefore always rejected, and its q is subtracted from p as usual. */
struct verify_node {
    int32_t parent; /* index of an earlier node; -1 for node 0 */
    token_t token;
    uint32_t pos;  /* position of the token, for the random numbers */
    uint32_t ring; /* ring entry of its row, at depth L; RING_NONE: no row, so accepting the node ends the walk */
    dist_t q;
};

#define VERIFY_NODES 64

enum next_kind {
    NEXT_CORRECTION, /* no child was accepted: drawn from the remaining p */
    NEXT_BONUS,      /* the walk ended at a node without children: drawn from p */
    NEXT_CANDIDATE   /* the walk ended at a node without a row, the last on the path: `next` is that node's token */
};

struct verdict {
    uint32_t n_path;             /* number of accepted nodes, without node 0 */
    uint32_t path[VERIFY_NODES]; /* their indices, in order */
    token_t next;                /* the token after the last row on the path */
    enum next_kind kind;
    struct prediction
        judged[VERIFY_NODES]; /* the target's prediction at every node's row; token TOKEN_NONE without a row */
};

struct verify_req { /* one round of one sequence */
    const struct verify_node *nodes;
    size_t n; /* 1..VERIFY_NODES */
    struct sampling sampling;
    uint64_t seed; /* seed of the random stream; its keys are those of sequence 0 */
    struct verdict *out;
};

/* ---- the backend ---- */

struct backend_options {
    uint32_t threads; /* 0: number of cores */
    const char *isa;  /* NULL or "auto": the best available; else a family or name of kernels/cpu/isa.h */
    bool exact;       /* F32 weights, activations and keys: slow, for comparison with the reference */
    int gpu;          /* device number, -1: the first */
};

#define KV_CACHE_PROBES 512u /* default of kv_cache_desc.max_probes */

struct kv_cache_desc {   /* defaults: kv_cache_defaults() in kernels/request.h */
    uint32_t slots;      /* entries for keys and values */
    uint32_t ring;       /* rows whose hidden states are stored */
    uint32_t seqs;       /* number of trunk tables */
    uint32_t trunk;      /* length of a trunk table: the context size */
    uint32_t max_rows;   /* largest number of rows in a forward pass */
    uint32_t max_probes; /* largest number of probes in a predict call */
    uint32_t states;     /* entries of the state cache; 0: the model has no recurrent layers */
    uint32_t depth;      /* number of layers with keys and values: the largest depth of a row; 0: all layers */
    struct dists *dists; /* pool of the same backend, at least as large as the model's vocabulary; borrowed; NULL: */
                         /* none */
    uint32_t sets;       /* number of sets of tokens besides set 0; with sets: */
    const token_t *rank; /* all tokens of the model in the order in which a set's base takes them; borrowed */
    const atomic_bool *cancel; /* read before every layer; if set, queued work is dropped and wait() fails with */
                               /* ERR_CANCELLED; rows of the dropped pass keep their depth */
};

struct backend;
struct weights;
struct kv_cache;
struct dists; /* a pool of distributions */

/* Called with the completed share of the work in [0, 1]; returning false cancels the operation. */
typedef bool (*progress_fn)(void *user, double done);

struct backend_ops {
    const char *name;
    uint32_t abi;
    uint32_t prompt_rows; /* rows of a prompt that a forward pass should take together; 0: as many as other passes */
    bool (*open)(struct backend **, const struct backend_options *, struct err *);
    void (*close)(struct backend *);
    const char *(*describe)(const struct backend *); /* instruction set and threads, for display: "avx512vnni x2" */
    /* Returns the number of threads that compute at present; fewer than requested while other processes use the
     * processors. May be called from any thread. NULL: the backend has no threads of its own. */
    uint32_t (*threads)(const struct backend *);
    /* Returns a one-line notice for the user, or "". Available right after open(). NULL: never a notice. */
    const char *(*note)(const struct backend *);

    /* The model's tensors stay the caller's and must outlive the weights. */
    bool (*load)(struct backend *, const struct model_desc *, progress_fn, void *user, struct weights **, struct err *);
    void (*unload)(struct weights *); /* after drop() of the KV caches that use them */
    /* Completes what load() left for later, such as repacking, until `cancel` (or NULL) is set. Nothing may be queued.
     * NULL: load() completes everything. */
    void (*repack)(struct weights *, const atomic_bool *cancel);
    /* Copies trained heads, (L + 1) by layer, in place of earlier ones; NULL removes them. Nothing may be queued in a
     * KV cache of these weights. After a failure there are none. */
    bool (*heads)(struct weights *, const struct exit_head *by_layer, struct err *);

    /* Creates a pool of n distributions over the largest vocabulary of the models that share it. */
    bool (*dists)(struct backend *, uint32_t vocab, uint32_t n, struct dists **, struct err *);
    void (*drop_dists)(struct dists *); /* after its KV caches */
    /* Creates a KV cache, which belongs to the caller until drop(). The weights and the pool must outlive it. */
    bool (*kv_cache)(struct weights *, const struct kv_cache_desc *, struct kv_cache **, struct err *);
    void (*drop)(struct kv_cache *);

    /* Queued requests. Arguments are copied or consumed before the call returns, except `out` memory, which must live
     * until wait(). They return false if the request is malformed (a programming error); wait() reports run-time
     * failures. */
    bool (*trunk)(struct kv_cache *, seq_t, uint32_t first, const slot_t *slots,
                  size_t n); /* trunk[first + i] = slots[i] */
    /* Recurrent layers: the state `to` becomes that of `from` (STATE_NONE: before the first row) after n more rows,
     * which are slots of a path at its end, at depth kv_cache_desc.depth, whose entries in the ring have not been
     * reused. `to` may be `from`. NULL: the backend computes no recurrent layers. */
    bool (*advance)(struct kv_cache *, uint32_t to, uint32_t from, const slot_t *slots, size_t n);
    /* Reads only token, slot, ring and position of a row. Of drafters, only block drafters have it. */
    bool (*embed)(struct kv_cache *, const struct row *, size_t n);
    /* embed() of a drafter (struct drafter_desc): computes the layer's input of at most max_rows rows from features (n,
     * drafter.features), or, if features is NULL, from the outputs of the rows at the ring entries `before` (n), which
     * have run the layer. NULL: the backend has no drafters. In a block drafter features are required, and a row that
     * is fed has depth L, with keys and values of g in every layer at the position row.n_trunk + row.n_tail - 1. */
    bool (*feed)(struct kv_cache *, const struct row *, size_t n, const float *features, const uint32_t *before);
    /* Makes set 1..sets consist of the first `base` tokens by rank and of n <= DRAFT_RECENT other tokens; base + n > 0.
     * A call costs little if few places of `recent` have changed since the last one for this set. NULL: the backend has
     * set 0 only. */
    bool (*draft_set)(struct kv_cache *, uint32_t set, uint32_t base, const token_t *recent, size_t n);
    bool (*step)(struct kv_cache *, const struct forward_pass *);
    bool (*until)(struct kv_cache *, const struct forward_pass *, const struct exit_rule *, struct exit_result *out);
    bool (*predict)(struct kv_cache *, const struct probe *, size_t n, struct prediction *out);
    bool (*dist)(struct kv_cache *, const struct dist_req *, size_t n);
    bool (*draw)(struct kv_cache *, const struct draw_req *, size_t n);
    bool (*overlap)(struct kv_cache *, const struct overlap_req *, size_t n); /* sums are added in one fixed order */
    /* Verifies rounds of several sequences. The head runs on the rows of all rounds together, so its weights are read
     * once for many rows; then each round's tree is walked separately. The bits of a verdict do not depend on the other
     * rounds of the call. */
    bool (*verify)(struct kv_cache *, const struct verify_req *, size_t n);
    /* For feature drafters, tests and comparison with the reference: logits (outputs of the head), hidden state (width)
     * and a distribution (vocabulary of the pool), F32. */
    bool (*read_logits)(struct kv_cache *, uint32_t ring, uint32_t layer, float *out);
    bool (*read_hidden)(struct kv_cache *, uint32_t ring, uint32_t layer, float *out);
    bool (*read_dist)(struct kv_cache *, dist_t, float *out);
    bool (*wait)(struct kv_cache *, struct err *);
    /* Describes in one line how the device spent its time since the previous call ("busy 93%, of it waiting 9%: gate·up
     * 31% …"). Returns false, with text "", if nothing was measured. The queue must be empty. NULL: the backend does
     * not measure. */
    bool (*describe_time)(struct kv_cache *, char *text, size_t room);

    const struct product_ops *products; /* NULL: not supported */
};

extern const struct backend_ops cpu_backend;
