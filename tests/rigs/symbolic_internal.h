/* What the files of the symbolic backend share. */
#ifndef TESTS_RIGS_SYMBOLIC_INTERNAL_H
#define TESTS_RIGS_SYMBOLIC_INTERNAL_H

#include "kernels/request.h"
#include "tests/rigs/symbolic_backend.h"

enum { MAX_VOCAB = 64, MAX_OUT = 4096 };

struct weights {
    uint32_t n_layers, vocab;
    int fuse;
    bool no_kv_cache;
    struct symbolic_calls calls;
};

struct delivery { /* what wait() copies out */
    void *to, *from;
    size_t size;
};

struct dists {
    struct pool_size size;
    float *p; /* (n, vocab) */
};

struct kv_cache {
    struct weights *w;
    struct kv_cache_desc desc;
    uint64_t *kv;           /* (slots, L + 1) */
    uint64_t *hidden;       /* (ring, L + 1) */
    int *depth;             /* (ring) of the hidden states there; -1: not embedded */
    bool *fresh;            /* (ring) embedded since the last wait() */
    slot_t *tables;         /* (seqs, trunk) */
    uint32_t *known;        /* (seqs) entries set */
    struct pool_size dists; /* of desc.dists */
    struct delivery *deliveries;
    size_t n_deliveries;
    bool cancelled;
    const char *violation; /* of the contract; wait() says it */
};

/* ---- hashes ---- */
uint64_t symbolic_mix(uint64_t, uint64_t);
double symbolic_unit(uint64_t hash); /* in [0, 1) */
uint64_t symbolic_embedding(token_t);
uint64_t symbolic_key(uint64_t hidden, uint32_t layer, size_t pos);
uint64_t symbolic_mlp(uint64_t hidden, uint32_t layer);
uint64_t symbolic_prompt(uint64_t hidden);                         /* the other class's */
void symbolic_show(uint64_t hash, float *out);                     /* (SYMBOLIC_WIDTH) */
void symbolic_logits(uint64_t hidden, uint32_t vocab, float *out); /* (vocab) */

/* ---- the queue ---- */
void symbolic_violate(struct kv_cache *, const char *what);
bool symbolic_deliver(struct kv_cache *, void *to, const void *from, size_t size); /* a copy, at wait() */

/* ---- heads ---- */
struct prediction symbolic_prediction_of(struct kv_cache *, uint64_t hidden, float temperature);
bool symbolic_predict(struct kv_cache *, const struct probe *, size_t n, struct prediction *out);
bool symbolic_dist(struct kv_cache *, const struct dist_req *, size_t n);
bool symbolic_draw(struct kv_cache *, const struct draw_req *, size_t n);
bool symbolic_overlap(struct kv_cache *, const struct overlap_req *, size_t n);
bool symbolic_verify(struct kv_cache *, const struct verify_req *, size_t n);
bool symbolic_read_logits(struct kv_cache *, uint32_t ring, uint32_t layer, float *out);
bool symbolic_read_hidden(struct kv_cache *, uint32_t ring, uint32_t layer, float *out);
bool symbolic_read_dist(struct kv_cache *, dist_t, float *out);

#endif
