/* What the symbolic backend computes: hashes in place of hidden states. */
#include <stdlib.h>

#include "tests/rigs/symbolic_internal.h"

uint64_t
symbolic_mix(uint64_t a, uint64_t b)
{
    uint64_t z = (a ^ (b + 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 29)) * 0x94d049bb133111ebu;
    return z ^ (z >> 32);
}

double
symbolic_unit(uint64_t h)
{
    return (double)(h >> 40) * 0x1p-24;
}

uint64_t
symbolic_embedding(token_t t)
{
    return symbolic_mix(1, (uint64_t)t);
}

uint64_t
symbolic_key(uint64_t hidden, uint32_t layer, size_t pos)
{
    return symbolic_mix(symbolic_mix(hidden, layer), pos);
}

uint64_t
symbolic_mlp(uint64_t hidden, uint32_t layer)
{
    return symbolic_mix(hidden, 1000 + layer);
}

uint64_t
symbolic_prompt(uint64_t hidden)
{
    return symbolic_mix(hidden, 2000);
}

void
symbolic_show(uint64_t hash, float *out)
{
    for (int i = 0; i < SYMBOLIC_WIDTH; i++)
        out[i] = (float)(hash >> (16 * i) & 0xffff);
}

void
symbolic_logits(uint64_t hidden, uint32_t vocab, float *out)
{
    for (uint32_t v = 0; v < vocab; v++)
        out[v] = 8 * (float)symbolic_unit(symbolic_mix(hidden, v));
}

void
symbolic_hidden(const struct naive_token *path, size_t n, uint32_t depth, double *out)
{
    uint64_t *hidden = calloc(2 * n, sizeof *hidden);
    if (hidden == NULL)
        return;
    uint64_t *keys = hidden + n;
    for (size_t t = 0; t < n; t++)
        hidden[t] = symbolic_embedding(path[t].token);
    for (uint32_t l = 0; l <= depth; l++) {
        for (size_t t = 0; l > 0 && t < n; t++)
            keys[t] = symbolic_key(hidden[t], l, t);
        for (size_t t = 0; l > 0 && t < n; t++) {
            if (path[t].skip_attention == NULL || !path[t].skip_attention[l])
                for (size_t k = 0; k <= t; k++)
                    hidden[t] = symbolic_mix(hidden[t], keys[k]);
            if (path[t].skip_mlp == NULL || !path[t].skip_mlp[l])
                hidden[t] = symbolic_mlp(hidden[t], l);
            if (path[t].prompt)
                hidden[t] = symbolic_prompt(hidden[t]);
        }
        float shown[SYMBOLIC_WIDTH];
        symbolic_show(hidden[n - 1], shown);
        for (int i = 0; i < SYMBOLIC_WIDTH; i++)
            out[l * SYMBOLIC_WIDTH + (uint32_t)i] = (double)shown[i];
    }
    free(hidden);
}
