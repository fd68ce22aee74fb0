/* Products with weights in blocks have the same bits before and after the weights are repacked from the file into
 * memory, whichever thread repacks them. The file's pages are released. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/cpu/weights.h"
#include "kernels/tensor.h"
#include "tests/rigs/cpu_shapes.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define ROWS 40 /* more rows than the limit up to which vector code is used instead of tiles */

static uint64_t seed; /* printed by main */

/* Widths that are not multiples of sixteen make workers share groups. The head is used once a call. */
static const struct naive_shape odd = RIG_SHAPE(3, 96, 4, 2, 24, 160, 203, .type = WEIGHT_Q8_0),
                                large =
                                    RIG_SHAPE(2, 256, 4, 2, 64, 256, 300, .type = WEIGHT_Q4_K, .second = WEIGHT_Q6_K),
                                mixture =
                                    RIG_SHAPE(2, 96, 4, 2, 24, 160, 203, .type = WEIGHT_Q8_0,
                                              .form = {.experts = {.n = 6, .used = 2, .ffn = 96, .shared_ffn = 32}});

struct said {
    float hidden[ROWS][RIG_WIDTH], logits[2][RIG_VOCAB];
};

/* Runs the same tokens in `passes` forward passes, and the head after each. */
static void
say(struct rig *r, int passes, struct said *out)
{
    const uint32_t depth = r->desc->n_layers;
    memset(out, 0, sizeof *out);
    r->random = 1;
    rig_chain(r, ROWS);
    for (int i = 0; i < passes; i++) {
        int nodes[ROWS], n = 0;
        for (int j = ROWS * i / passes; j < ROWS * (i + 1) / passes; j++)
            nodes[n++] = j;
        rig_step(r, nodes, n, depth, 0);
        rig_logits(r, 0, depth, out->logits[0]);
    }
    for (int i = 0; i < ROWS; i++)
        rig_hidden(r, i, depth, out->hidden[i]);
    rig_logits(r, ROWS - 1, depth, out->logits[1]);
}

static void
on_every_isa(void (*check)(const struct naive_shape *, const struct backend_options *))
{
    for (size_t i = 0; cpu_isas[i] != NULL; i++)
        for (int s = 0; s < 3 && cpu_isas[i]->usable(); s++)
            check(s == 0   ? &odd
                  : s == 1 ? &large
                           : &mixture,
                  &(struct backend_options){.threads = 1 + (uint32_t)(i + (size_t)s) % 3, .isa = cpu_isas[i]->name});
}

/* ---- bits ---- */

static void
check_bits(const struct naive_shape *shape, const struct backend_options *o)
{
    static struct said repacked_first, said;
    struct rig r;
    rig_open(&r, &cpu_backend, shape, seed, o);
    const bool moves = !repacked(r.weights); /* one instruction set does not repack blocks */
    r.ops->repack(r.weights, NULL);
    assert_true(repacked(r.weights));
    say(&r, 1, &repacked_first);
    rig_close(&r);
    for (int passes = 1; passes <= 4; passes++) {
        rig_open(&r, &cpu_backend, shape, seed, o);
        say(&r, passes, &said);
        assert_memory_equal(&said, &repacked_first, sizeof said);
        assert_int_equal(repacked(r.weights), !moves || passes > 1);
        r.ops->repack(r.weights, NULL);
        assert_true(repacked(r.weights));
        rig_close(&r);
    }
}

TEST(rows_have_the_same_bits_before_while_and_after_weights_are_repacked)
{
    on_every_isa(check_bits);
}

static void
check_cancelled(const struct naive_shape *shape, const struct backend_options *o)
{
    const atomic_bool cancel = true;
    struct rig r;
    rig_open(&r, &cpu_backend, shape, seed, o);
    const bool before = repacked(r.weights);
    r.ops->repack(r.weights, &cancel);
    assert_int_equal(repacked(r.weights), before);
    rig_close(&r);
}

TEST(settling_that_is_cancelled_leaves_the_rest)
{
    on_every_isa(check_cancelled);
}

/* ---- several KV caches ---- */

struct reader {
    struct rig rig;
    struct said said;
};

static void *
read_thrice(void *p)
{
    struct reader *r = p;
    say(&r->rig, 3, &r->said);
    return NULL;
}

TEST(kv_caches_of_one_model_repack_it_at_the_same_time)
{
    enum { READERS = 3 };
    static struct reader readers[READERS];
    static struct said alone;
    const struct backend_options o = {.threads = 2};
    struct rig owner;
    rig_open(&owner, &cpu_backend, &large, seed, &o);
    say(&owner, 1, &alone);
    rig_close(&owner);
    rig_open(&owner, &cpu_backend, &large, seed, &o);
    const struct kv_cache_desc d = {.slots = RIG_NODES,
                                    .ring = RIG_NODES,
                                    .seqs = 3,
                                    .trunk = RIG_NODES,
                                    .max_rows = RIG_NODES,
                                    .max_probes = 8,
                                    .dists = owner.dists};
    pthread_t threads[READERS];
    for (int i = 0; i < READERS; i++) {
        readers[i].rig = owner;
        assert_true(owner.ops->kv_cache(owner.weights, &d, &readers[i].rig.kv_cache, NULL));
    }
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_thrice, &readers[i]), 0);
    for (int i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        assert_memory_equal(&readers[i].said, &alone, sizeof alone);
        owner.ops->drop(readers[i].rig.kv_cache);
    }
    rig_close(&owner);
}

/* ---- pages ---- */

/* Returns the number of pages of [at, at + bytes) that are mapped, or -1 if the system does not report it. */
static long
pages_present(const void *at, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    long present = 0;
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; fd >= 0 && i < bytes / page; i++) {
        uint64_t entry;
        if (pread(fd, &entry, sizeof entry, (off_t)(((uintptr_t)at / page + i) * sizeof entry)) != sizeof entry)
            present = -1;
        else if (present >= 0)
            present += (long)(entry >> 63);
    }
    if (fd < 0)
        return -1;
    close(fd);
    return present;
}

/* The head of the model is a Q8_0 matrix in a file of 12 MiB; its layers are in memory. */
TEST(pages_of_the_file_are_given_back)
{
    enum { WIDTH = 256, VOCAB = 45000 };
    const size_t row = tensor_row_bytes(WEIGHT_Q8_0, WIDTH), bytes = VOCAB * row;
    char name[] = "/tmp/specscope-repack-XXXXXX";
    const int fd = mkstemp(name);
    assert_at_least(fd, 0);
    assert_true(unlink(name) == 0 && ftruncate(fd, (off_t)bytes) == 0);
    unsigned char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    for (size_t i = 0; i < bytes; i++)
        map[i] = (unsigned char)(i * 2654435761u >> 13 & 0x3b);
    const struct naive_shape shape = RIG_SHAPE(1, WIDTH, 4, 4, 64, 256, 64, .type = WEIGHT_Q8_0);
    struct naive_model *m = naive_model_random(&shape, seed);
    struct model_desc d = *naive_model_desc(m);
    d.vocab = VOCAB;
    d.embedding = d.head =
        (struct tensor){.data = map, .type = WEIGHT_Q8_0, .rows = VOCAB, .cols = WIDTH, .mapped = true};
    struct err err;
    struct backend *b;
    struct weights *w, *held;
    assert_ok(cpu_backend.open(&b, &(struct backend_options){.threads = 2}, &err), err);
    assert_ok(cpu_weights_load(b, &d, NULL, NULL, &w, &err), err);
    if (repacked(w) || pages_present(map, bytes) < (long)(bytes / (size_t)sysconf(_SC_PAGESIZE)))
        skip(); /* weights are not repacked here, or pages cannot be counted */
    cpu_weights_repack(w, NULL);
    assert_in_range(pages_present(map, bytes), 0, 64); /* the kernel may have mapped a window or two again */
    d.embedding.mapped = d.head.mapped = false;
    assert_ok(cpu_weights_load(b, &d, NULL, NULL, &held, &err), err);
    cpu_weights_repack(held, NULL);
    assert_greater(pages_present(map, bytes), (long)(bytes / (size_t)sysconf(_SC_PAGESIZE)) / 2);
    assert_memory_equal(w->head.q, held->head.q, (size_t)VOCAB * WIDTH / Q8_GROUP * Q8_GROUP);
    cpu_weights_unload(held);
    cpu_weights_unload(w);
    cpu_backend.close(b);
    naive_model_free(m);
    munmap(map, bytes);
    close(fd);
}

TEST_SEED(seed, 20261122);
