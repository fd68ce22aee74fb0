#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/fuzz/fuzz.h"

#define PIECES_MOST 2048

struct pieces { /* pieces include their terminators */
    const uint8_t *at[PIECES_MOST];
    size_t len[PIECES_MOST];
    uint32_t n;
};

static void
cut(struct pieces *p, const uint8_t *data, size_t size, const char *ends)
{
    p->n = 0;
    for (size_t i = 0, from = 0; i < size && p->n < PIECES_MOST; i++)
        if (strchr(ends, data[i]) != NULL || i + 1 == size || p->n + 1 == PIECES_MOST) {
            const size_t to = p->n + 1 == PIECES_MOST ? size : i + 1;
            p->at[p->n] = data + from;
            p->len[p->n++] = to - from;
            from = i + 1;
        }
}

size_t
mutate_lines(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    static struct pieces p;
    uint64_t random = seed;
    if (size == 0 || splitmix64(&random) % 4 == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    uint8_t *old = malloc(size), *to = data;
    if (old == NULL)
        return size;
    memcpy(old, data, size);
    cut(&p, old, size, splitmix64(&random) % 2 == 0 ? "\n" : " ,=:\n");
    const uint32_t what = (uint32_t)(splitmix64(&random) % 4), a = (uint32_t)(splitmix64(&random) % p.n),
                   b = (uint32_t)(splitmix64(&random) % p.n);
    for (uint32_t i = 0; i < p.n; i++) {
        const uint32_t from = what == 1 && i == a ? b : what == 2 && i == a ? b : what == 2 && i == b ? a : i;
        const uint32_t times = what == 0 && i == a ? 0 : what == 3 && i == a ? 2 : 1;
        for (uint32_t k = 0; k < times; k++) {
            if ((size_t)(to - data) + p.len[from] > max_size)
                continue;
            memcpy(to, p.at[from], p.len[from]);
            to += p.len[from];
        }
    }
    free(old);
    return (size_t)(to - data);
}
