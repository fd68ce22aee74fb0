/* The probability that the target accepts a draft, given a companion model's distribution (Speculative Verification,
 * section 4):
 *
 *     s = Σ_v min(d(v), c(v))       similarity of the draft's and the companion's distributions
 *     a = min(1, c(x) / d(x))       probability that the companion would accept the token
 *     p̂(s, a) = mean of A           A = min(1, p(x) / d(x)) with the target's p, over the observations in a cell
 *
 * Bins have about the same number of observations. In an empty cell p̂ is the mean of the values of its row and its
 * column. A profile belongs to three models and to one way of sampling. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/file_replace.h"

#define SV_BINS     32 /* at most, of each */
#define SV_ACCEPTED 10 /* sub-ranges of A, of equal size, for its entropy */

struct sv_observation {
    float s, a, accepted; /* all in [0, 1] */
};

struct sv_entropy { /* bits: of A in SV_ACCEPTED sub-ranges, and of A given s, a or both */
    double h, given_s, given_a, given_both;
};

struct sv_whose {
    char name[3][64]; /* target, draft, companion */
    uint64_t hash[3];
    uint32_t layers[3];       /* number of first layers (self:E); 0: all */
    float temperature, top_p; /* of the samples */
    uint32_t top_k;
};

struct sv_profile {
    struct sv_whose whose;
    uint32_t n_s, n_a;                      /* bins */
    float s_edge[SV_BINS], a_edge[SV_BINS]; /* (n - 1); the bin of a value is the number of edges <= it */
    uint64_t count[SV_BINS][SV_BINS];       /* [s][a] */
    double sum[SV_BINS][SV_BINS];           /* of A */
    struct sv_entropy entropy;
    char path[512]; /* the file that it was read from; "": none */
    uint64_t hash;  /* of that file */
};

/* Makes at most n_s and n_a bins for these observations (fewer if values are equal). Fails if there are none or if
 * values are out of bounds. */
bool sv_profile_make(struct sv_profile *, uint32_t n_s, uint32_t n_a, const struct sv_observation *, size_t n,
                     struct err *);
/* Returns the number of a cell: (bin of s) * n_a + (bin of a). */
uint32_t sv_profile_cell(const struct sv_profile *, double s, double a);
/* Returns p̂(s, a). */
double sv_profile_accepted(const struct sv_profile *, double s, double a);
/* Returns (H(A) - H(A | s, a)) / H(A), or 0 if H(A) is 0. */
double sv_information_gain(const struct sv_entropy *);
uint64_t sv_profile_observations(const struct sv_profile *);

/* The file is JSON. Writing replaces an earlier file completely or not at all; reading fails with one line if a
 * value is wrong. */
extern const struct file_kind sv_profile_file;
bool sv_profile_write(const struct sv_profile *, const char *path, struct err *);
bool sv_profile_read(struct sv_profile *, const char *path, struct err *);
/* The same as sv_profile_read(), for n bytes in memory; `path` is for messages. */
bool sv_profile_parse(struct sv_profile *, const char *path, const char *json, size_t n, struct err *);
