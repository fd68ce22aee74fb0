/* A pool of distributions of two models, of many tokens and of few, on every available backend. Each model reads, draws
 * from, verifies and compares the other's distributions. The results are compared with kernels/cpu/sampling.h, which
 * has tests of its own. SPECSCOPE_SEED=N chooses the cases. */
#include <math.h>

#include "kernels/cpu/sampling.h"
#include "tests/rigs/check_backend.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

enum { MANY = 130, FEW = 90, ROWS = 6 };
static const struct naive_shape many_shape = RIG_SHAPE(2, 64, 4, 2, 16, 90, MANY, .type = WEIGHT_F16),
                                few_shape = RIG_SHAPE(3, 48, 6, 1, 6, 130, FEW, .type = WEIGHT_F16);
static uint64_t seed;

struct pair {
    struct rig many, few;
};

static void
open_pair(struct pair *p, const struct backend_ops *ops, uint32_t threads)
{
    rig_open(&p->many, ops, &many_shape, seed, &(struct backend_options){.threads = threads, .gpu = -1});
    rig_open_beside(&p->few, &p->many, &few_shape, seed + 1);
    rig_chain(&p->many, ROWS);
    rig_chain(&p->few, ROWS);
    rig_step_all(&p->many);
    rig_step_all(&p->few);
}

static void
close_pair(struct pair *p)
{
    rig_close(&p->few);
    rig_close(&p->many);
}

static void
on_every_backend(void (*check)(struct pair *))
{
    const struct backend_ops *const all[] = {&cpu_backend, &check_backend, cuda_for_tests()};
    for (size_t i = 0; i < sizeof all / sizeof *all && all[i] != NULL; i++) {
        struct pair p;
        open_pair(&p, all[i], 2);
        print_message("%s\n", all[i]->name);
        check(&p);
        close_pair(&p);
    }
}

/* Makes a distribution of a random row and layer. */
static void
make_dist(struct rig *r, dist_t d, float temperature, uint32_t top_k)
{
    const struct dist_req request = {.ring = rig_random(r, ROWS),
                                     .layer = rig_random(r, r->desc->n_layers + 1),
                                     .sampling = {.temperature = temperature, .top_k = top_k, .top_p = 1},
                                     .out = d};
    assert_true(r->ops->dist(r->kv_cache, &request, 1));
    rig_wait(r);
}

static void
read_dist(struct rig *r, dist_t d, float *p)
{
    assert_true(r->ops->read_dist(r->kv_cache, d, p));
    rig_wait(r);
}

static token_t
draw(struct rig *r, struct draw_req request)
{
    token_t drawn;
    request.out = &drawn;
    assert_true(r->ops->draw(r->kv_cache, &request, 1));
    rig_wait(r);
    return drawn;
}

/* ---- reading and drawing ---- */

static void
check_reading(struct pair *p)
{
    float made[MANY], seen[MANY];
    make_dist(&p->many, 3, 5, 0);
    read_dist(&p->few, 3, seen);
    assert_greater(seen[MANY - 1], 0);
    make_dist(&p->few, 3, 5, 0); /* overwrites the same place */
    read_dist(&p->few, 3, made);
    read_dist(&p->many, 3, seen);
    assert_memory_equal(made, seen, sizeof made);
    double sum = 0;
    for (uint32_t v = 0; v < MANY; v++) {
        assert_true(v < FEW ? seen[v] > 0 : !(seen[v] > 0) && !(seen[v] < 0));
        sum += (double)seen[v];
    }
    assert_near(sum, 1, 1e-5);
    make_dist(&p->many, 4, 1, 0);
    for (uint32_t i = 0; i < 30; i++) {
        struct draw_req request = {.from = 3 + i % 2, .likeliest = i < 4, .key = {.seed = seed, .pos = i}};
        const token_t without[2] = {draw(&p->few, request), 5};
        request.without = without;
        request.n_without = i % 3;
        assert_int_equal(draw(&p->few, request), draw(&p->many, request));
    }
}

TEST(distributions_of_one_model_are_read_by_others)
{
    on_every_backend(check_reading);
}

/* ---- verification ---- */

/* Draws siblings from the draft and verifies them. Returns whether the verdict is that of the reference. */
static bool
same_verdict(struct rig *target, struct rig *draft, uint32_t round, uint32_t *kinds)
{
    struct verify_node nodes[4] = {{.parent = -1, .pos = 9, .q = DIST_NONE}};
    const struct sampling s = {.temperature = 0.5f + (float)(round % 3), .top_k = round % 2 ? 40 : 0, .top_p = 1};
    float q[MANY], logits[MANY], p[MANY];
    const float *const z[4] = {logits}, *const qs[4] = {NULL, q, q, q};
    uint32_t order[MANY];
    token_t taken[3];
    make_dist(draft, 7, 2, 0);
    read_dist(target, 7, q);
    for (uint32_t i = 1; i < 4; i++) {
        taken[i - 1] =
            draw(draft,
                 (struct draw_req){
                     .from = 7, .key = {.seed = seed, .pos = round, .index = i}, .without = taken, .n_without = i - 1});
        nodes[i] = (struct verify_node){.token = taken[i - 1], .pos = 10, .ring = RING_NONE, .q = 7};
    }
    nodes[0].ring = rig_random(target, ROWS);
    rig_logits(target, (int)nodes[0].ring, target->desc->n_layers, logits);
    struct verdict got, want;
    const struct verify_req r = {.nodes = nodes, .n = 4, .sampling = s, .seed = seed + round, .out = &got};
    assert_true(target->ops->verify(target->kv_cache, &r, 1));
    rig_wait(target);
    assert_true(sampling_verify(&r, target->desc->vocab, z, qs, MANY, p, order, &want));
    assert_at_least(got.next, 0);
    assert_less((uint32_t)got.next, target->desc->vocab);
    kinds[got.kind]++;
    return got.kind == want.kind && got.next == want.next && got.n_path == want.n_path;
}

static void
check_verdicts(struct pair *p)
{
    uint32_t kinds[3] = {0}, different = 0;
    for (uint32_t i = 0; i < 60; i++) {
        different += !same_verdict(&p->few, &p->many, i, kinds);
        different += !same_verdict(&p->many, &p->few, i, kinds);
    }
    print_message("%u corrections, %u candidates accepted, %u differ\n", kinds[NEXT_CORRECTION], kinds[NEXT_CANDIDATE],
                  different);
    assert_greater(kinds[NEXT_CORRECTION], 5);
    assert_greater(kinds[NEXT_CANDIDATE], 5);
    assert_at_most(different, strcmp(p->many.ops->name, "cuda") == 0); /* CUDA may round one near a threshold */
    struct verdict v;
    const struct verify_node greedy[2] = {{.parent = -1, .ring = 2, .q = DIST_NONE},
                                          {.token = FEW, .ring = RING_NONE, .q = DIST_NONE}};
    assert_true(p->few.ops->verify(p->few.kv_cache, &(struct verify_req){.nodes = greedy, .n = 2, .out = &v}, 1));
    rig_wait(&p->few);
    assert_int_equal(v.kind, NEXT_CORRECTION);
    assert_int_equal(v.next, v.judged[0].token);
}

TEST(verification_takes_drafts_of_another_vocabulary)
{
    on_every_backend(check_verdicts);
}

/* ---- overlap ---- */

enum { PLACES = 6 };

static void
check_overlaps(struct pair *p)
{
    static float dists[PLACES][MANY];
    struct overlap_req requests[PLACES * PLACES], given[PLACES * PLACES];
    struct overlap all[PLACES * PLACES], one;
    for (dist_t i = 0; i < PLACES; i++) {
        make_dist(i % 2 ? &p->few : &p->many, i, 0.5f + (float)i / 2, i < 3 ? 0 : 8);
        read_dist(&p->few, i, dists[i]);
    }
    for (uint32_t i = 0; i < PLACES * PLACES; i++) {
        all[i] = (struct overlap){-7, -7};
        requests[i] = (struct overlap_req){
            .d = i / PLACES, .c = i % PLACES, .token = (token_t)rig_random(&p->many, MANY), .out = &all[i]};
    }
    memcpy(given, requests, sizeof given);
    assert_true(p->few.ops->overlap(p->few.kv_cache, given, PLACES * PLACES));
    memset(given, 0xff, sizeof given); /* the caller may reuse the arguments; wait() writes results */
    for (uint32_t i = 0; i < PLACES * PLACES; i++) {
        assert_less(all[i].similarity, -6);
        assert_less(all[i].acceptance, -6);
    }
    rig_wait(&p->few);
    for (uint32_t i = 0; i < PLACES * PLACES; i++) {
        const float *d = dists[i / PLACES], *c = dists[i % PLACES];
        const token_t x = requests[i].token;
        double similarity = 0;
        for (uint32_t v = 0; v < MANY; v++)
            similarity += fmin((double)d[v], (double)c[v]);
        const double ratio = d[x] > 0 ? (double)c[x] / (double)d[x] : (double)c[x];
        assert_near((double)all[i].similarity, similarity, 1e-6);
        assert_near((double)all[i].acceptance, fmin(1, ratio), 1e-6);
        struct overlap_req alone = requests[i];
        alone.out = &one;
        assert_true(p->many.ops->overlap(p->many.kv_cache, &alone, 1));
        rig_wait(&p->many);
        assert_memory_equal(&one, &all[i], sizeof one);
    }
}

TEST(overlap_follows_its_definition)
{
    on_every_backend(check_overlaps);
}

TEST(overlap_does_not_depend_on_threads)
{
    struct overlap first, got;
    for (uint32_t threads = 1; threads <= 5; threads++) {
        struct pair p;
        open_pair(&p, &cpu_backend, threads);
        make_dist(&p.many, 0, 1, 0);
        make_dist(&p.few, 1, 3, 0);
        assert_true(cpu_backend.overlap(p.few.kv_cache, &(struct overlap_req){.c = 1, .token = 3, .out = &got}, 1));
        rig_wait(&p.few);
        if (threads == 1)
            first = got;
        assert_memory_equal(&got, &first, sizeof got);
        close_pair(&p);
    }
}

/* ---- refusals ---- */

static void
check_refusals(struct pair *p)
{
    const struct backend_ops *ops = p->many.ops;
    struct overlap o;
    struct verdict v;
    struct err err = {.kind = ERR_NONE};
    const struct overlap_req bad[] = {{.d = RIG_DISTS, .out = &o},
                                      {.c = DIST_NONE, .out = &o},
                                      {.token = MANY, .out = &o},
                                      {.token = TOKEN_NONE, .out = &o}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(ops->overlap(p->many.kv_cache, &bad[i], 1));
    struct verify_node nodes[2] = {{.parent = -1, .q = DIST_NONE}, {.token = FEW, .ring = 1, .q = DIST_NONE}};
    const struct verify_req r = {.nodes = nodes, .n = 2, .out = &v};
    assert_false(ops->verify(p->few.kv_cache, &r, 1)); /* this model has no row for the token */
    nodes[1].ring = RING_NONE;
    nodes[1].token = MANY;
    assert_false(ops->verify(p->few.kv_cache, &r, 1)); /* the pool lacks this token */
    rig_wait(&p->few);
    rig_wait(&p->many);

    struct dists *pool;
    assert_false(ops->dists(p->many.backend, 0, 5, &pool, &err));
    assert_false(ops->dists(p->many.backend, 5, 0, &pool, &err));
    assert_null(pool);
    assert_int_equal(err.kind, ERR_USAGE);
    assert_ok(ops->dists(p->many.backend, MANY - 1, 2, &pool, &err), err);
    struct kv_cache *s;
    struct kv_cache_desc d = {
        .slots = 8, .ring = 8, .seqs = 1, .trunk = 8, .max_rows = 8, .max_probes = 8, .dists = pool};
    assert_false(ops->kv_cache(p->many.weights, &d, &s, &err));
    assert_contains(err.text, "vocabulary of 130");
    assert_ok(ops->kv_cache(p->few.weights, &d, &s, &err), err);
    ops->drop(s);
    ops->drop_dists(pool);
    d.dists = NULL; /* a KV cache without a pool accepts requests that need no pool */
    assert_ok(ops->kv_cache(p->few.weights, &d, &s, &err), err);
    token_t t;
    assert_false(ops->dist(s, &(struct dist_req){.sampling = {.top_p = 1}}, 1));
    assert_false(ops->draw(s, &(struct draw_req){.out = &t}, 1));
    assert_false(ops->overlap(s, &(struct overlap_req){.out = &o}, 1));
    assert_true(ops->embed(s, &(struct row){.token = 3}, 1) && ops->wait(s, &err));
    ops->drop(s);
}

TEST(requests_larger_than_the_pool_are_refused)
{
    on_every_backend(check_refusals);
}

/* ---- order ---- */

TEST(the_check_backend_notices_two_kv_caches_at_one_distribution)
{
    struct pair p;
    struct err err = {.kind = ERR_NONE};
    struct overlap o;
    open_pair(&p, &check_backend, 1);
    make_dist(&p.few, 1, 1, 0);
    const struct dist_req request = {.ring = 2, .layer = 1, .sampling = {.temperature = 1, .top_p = 1}};
    const struct overlap_req compared = {.d = 0, .c = 1, .token = 3, .out = &o};
    assert_true(check_backend.dist(p.many.kv_cache, &request, 1));
    assert_true(check_backend.overlap(p.few.kv_cache, &compared, 1));
    assert_false(check_backend.wait(p.few.kv_cache, &err));
    assert_int_equal(err.kind, ERR_WORK);
    assert_contains(err.text, "distribution 0 is used by two stores");
    rig_wait(&p.many); /* this request was first; after it, the other is accepted */
    assert_true(check_backend.overlap(p.few.kv_cache, &compared, 1));
    rig_wait(&p.few);
    close_pair(&p);
}

TEST_SEED(seed, 1);
