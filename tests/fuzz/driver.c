/* Runs a fuzz target without libFuzzer: each file given, then N random mutations of them.
 * usage: fuzz_X [-mutate N] [-seconds S] [-seed S] FILES…   The seed is printed; the same seed repeats the run. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "tests/fuzz/fuzz.h"

#define MOST_SECONDS 300 /* for one input; a parser that takes longer is treated as hanging */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
#pragma weak LLVMFuzzerCustomMutator /* not all targets have one */

#define INPUT_MOST ((size_t)1 << 20)

struct input {
    uint8_t *data;
    size_t size;
};

static void
hangs(int number)
{
    (void)number;
    static const char text[] = "the target is not done with an input after 300 s\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) > 0)
        abort();
    _exit(1);
}

static void
test_one(const uint8_t *data, size_t size)
{
    alarm(MOST_SECONDS);
    LLVMFuzzerTestOneInput(data, size);
    alarm(0);
}

static size_t
below(uint64_t *state, size_t n)
{
    return n > 0 ? (size_t)(splitmix64(state) % n) : 0;
}

static int
read_input(const char *path, struct input *in)
{
    FILE *f = fopen(path, "rb");
    in->data = malloc(INPUT_MOST);
    if (f == NULL || in->data == NULL) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return 0;
    }
    in->size = fread(in->data, 1, INPUT_MOST, f);
    fclose(f);
    return 1;
}

/* Makes one edit: flips bits, inserts an interesting number, cuts bytes out, doubles them, or copies some from another
 * input. */
static size_t
edit(uint8_t *d, size_t n, const struct input *other, uint64_t *rng)
{
    static const uint64_t numbers[] = {0,      1,          0x7F,       0xFF,       0x7FFF,
                                       0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, UINT64_MAX, (uint64_t)1 << 63};
    size_t at = below(rng, n), len = 1 + below(rng, 16);
    switch (below(rng, 6)) {
    case 0:
        if (n > 0)
            d[at] ^= (uint8_t)(1u << below(rng, 8));
        return n;
    case 1:
        if (n > 0)
            d[at] = (uint8_t)splitmix64(rng);
        return n;
    case 2: {
        uint64_t v = numbers[below(rng, sizeof numbers / sizeof *numbers)];
        size_t width = (size_t)1 << below(rng, 4);
        if (at + width <= n)
            memcpy(d + at, &v, width);
        return n;
    }
    case 3: return below(rng, 4) == 0 ? at : n; /* cuts the end off, now and then */
    case 4:
        if (at + len >= n)
            return n;
        memmove(d + at, d + at + len, n - at - len);
        return n - len;
    default:
        if (other->size < len || n + len > INPUT_MOST)
            return n;
        memmove(d + at + len, d + at, n - at);
        memcpy(d + at, other->data + below(rng, other->size - len + 1), len);
        return n + len;
    }
}

/* Has libFuzzer's signature, which has no parameter for a state. */
size_t
LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    static uint64_t random = 1;
    const struct input none = {NULL, 0};
    return size < max_size ? edit(data, size, &none, &random) : size;
}

/* Uses the target's own mutator every second time. */
static size_t
mutate(uint8_t *work, size_t n, const struct input *inputs, size_t n_inputs, uint64_t *rng)
{
    const size_t edits = 1 + below(rng, 8);
    if (LLVMFuzzerCustomMutator != NULL && below(rng, 2) == 0) {
        for (size_t k = 0; k < edits; k++)
            n = LLVMFuzzerCustomMutator(work, n, INPUT_MOST, (unsigned)splitmix64(rng));
        return n;
    }
    for (size_t k = 0; k < edits; k++)
        n = edit(work, n, &inputs[below(rng, n_inputs)], rng);
    return n;
}

int
main(int argc, char **argv)
{
    unsigned long long mutations = 0, seconds = 0, seed = 1;
    struct input *inputs = calloc((size_t)argc, sizeof *inputs);
    size_t n_inputs = 0;
    if (inputs == NULL)
        return 1;
    for (int i = 1; i < argc; i++) {
        unsigned long long *number = strcmp(argv[i], "-mutate") == 0    ? &mutations
                                     : strcmp(argv[i], "-seconds") == 0 ? &seconds
                                     : strcmp(argv[i], "-seed") == 0    ? &seed
                                                                        : NULL;
        if (number != NULL && i + 1 < argc)
            *number = strtoull(argv[++i], NULL, 10);
        else if (!read_input(argv[i], &inputs[n_inputs++]))
            return 1;
    }
    printf("%s: seed %llu, %zu inputs\n", argv[0], seed, n_inputs);
    signal(SIGALRM, hangs);
    for (size_t i = 0; i < n_inputs; i++)
        test_one(inputs[i].data, inputs[i].size);
    uint64_t rng = seed;
    uint8_t *work = malloc(INPUT_MOST);
    time_t end = time(NULL) + (time_t)seconds;
    unsigned long long done = 0;
    if (seconds > 0)
        mutations = UINT64_MAX;
    for (; work != NULL && n_inputs > 0 && done < mutations && (seconds == 0 || time(NULL) < end); done++) {
        const struct input *in = &inputs[below(&rng, n_inputs)];
        memcpy(work, in->data, in->size);
        const size_t n = mutate(work, in->size, inputs, n_inputs, &rng);
        uint8_t *exact = malloc(n > 0 ? n : 1); /* so that a sanitizer sees a read past the end */
        if (exact == NULL)
            break;
        memcpy(exact, work, n);
        test_one(exact, n);
        free(exact);
    }
    printf("%llu mutations\n", done);
    free(work);
    for (size_t i = 0; i < n_inputs; i++)
        free(inputs[i].data);
    free(inputs);
    return 0;
}
