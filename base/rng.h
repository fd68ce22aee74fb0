/* Random numbers.
 * By counter: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011). A
 * number is a pure function of its key, so a run does not depend on the order of calls, on threads or on the backend;
 * no state is stored between calls.
 * By state, where the order of calls is fixed or irrelevant: SplitMix64 (Steele, Lea, Flood, "Fast splittable
 * pseudorandom number generators", OOPSLA 2014). */
#pragma once

#include <stdint.h>

#include "base/host_device.h"

enum rng_purpose { RNG_DRAFT, RNG_ACCEPT, RNG_RESIDUAL, RNG_BONUS };

struct rng_key {
    uint64_t seed;
    uint32_t seq;
    uint32_t pos;
    uint32_t purpose; /* enum rng_purpose */
    uint32_t index;
};

struct philox {
    uint32_t v[4];
};

/* Ten rounds of the bijection that (key0, key1) selects. */
static inline HOST_DEVICE struct philox
philox4x32_10(struct philox c, uint32_t key0, uint32_t key1)
{
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xD2511F53u * c.v[0], b = (uint64_t)0xCD9E8D57u * c.v[2];
        const struct philox next = {
            {(uint32_t)(b >> 32) ^ c.v[1] ^ key0, (uint32_t)b, (uint32_t)(a >> 32) ^ c.v[3] ^ key1, (uint32_t)a}};
        c = next;
        key0 += 0x9E3779B9u; /* 2^32 / golden ratio */
        key1 += 0xBB67AE85u; /* 2^32 * (sqrt(3) - 1) */
    }
    return c;
}

/* Returns the block for a key: the seed selects the bijection, all other fields form the counter. */
static inline HOST_DEVICE struct philox
rng_block(const struct rng_key *k)
{
    const struct philox counter = {{k->seq, k->pos, k->purpose, k->index}};
    return philox4x32_10(counter, (uint32_t)k->seed, (uint32_t)(k->seed >> 32));
}

/* Returns a uniform number in [0, 1) with 53 bits. */
static inline HOST_DEVICE double
rng_uniform(const struct rng_key *k)
{
    const struct philox b = rng_block(k);
    const uint64_t bits = ((uint64_t)b.v[0] << 32) | b.v[1];
    return (double)(bits >> 11) * 0x1p-53;
}

#define SPLITMIX64_STEP 0x9e3779b97f4a7c15u /* 2^64 / golden ratio, odd */

/* The finaliser: a bijection. */
static inline HOST_DEVICE uint64_t
splitmix64_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Returns the next number of a stream; any value is a valid initial state. */
static inline HOST_DEVICE uint64_t
splitmix64(uint64_t *state)
{
    return splitmix64_mix(*state += SPLITMIX64_STEP);
}

/* The same as a uniform number in [0, 1) with 53 bits. */
static inline HOST_DEVICE double
splitmix64_uniform(uint64_t *state)
{
    return (double)(splitmix64(state) >> 11) * 0x1p-53;
}

/* Returns the seed of sequence i of a batch; sequence 0 uses the batch's own. Seeds less than 2^40 apart yield
 * different seeds for sequences below number 2^20: multiples of the step differ by more than that, and the finaliser is
 * a bijection. */
static inline uint64_t
rng_sequence_seed(uint64_t seed, uint32_t sequence)
{
    return sequence == 0 ? seed : splitmix64_mix(seed + sequence * SPLITMIX64_STEP);
}
