/* Speculative Verification's profile: cells compared with a plain count, entropies with their definition, the file. */
#include <math.h>
#include <unistd.h>

#include "base/rng.h"
#include "engine/model/trained/sv_profile.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define N 5000

static uint64_t seed;
static char path[64];

static double
uniform(uint64_t *random_state)
{
    return (double)(splitmix64(random_state) >> 11) * 0x1p-53;
}

/* Makes observations whose acceptance grows with s and a. As in real runs, a is often exactly 1. */
static struct sv_observation *
observe(uint64_t *random_state)
{
    struct sv_observation *o = malloc(N * sizeof *o);
    for (size_t i = 0; i < N; i++) {
        o[i].s = (float)uniform(random_state);
        o[i].a = uniform(random_state) < 0.4 ? 1 : (float)uniform(random_state);
        o[i].accepted =
            uniform(random_state) < (double)(o[i].s * o[i].a) ? 1 : (float)(uniform(random_state) * (double)o[i].a);
    }
    return o;
}

static double
entropy_by(const int *group, const struct sv_observation *o, int groups)
{
    double h = 0;
    for (int g = 0; g < groups; g++) {
        double of[SV_ACCEPTED] = {0}, own = 0;
        for (size_t i = 0; i < N; i++)
            if (group[i] == g) {
                int k = (int)((double)o[i].accepted * SV_ACCEPTED);
                of[k < SV_ACCEPTED ? k : SV_ACCEPTED - 1]++;
                own++;
            }
        for (int k = 0; k < SV_ACCEPTED; k++)
            if (of[k] > 0)
                h -= own / N * of[k] / own * log2(of[k] / own);
    }
    return h;
}

static int
bin(const float *edge, uint32_t n, double value)
{
    int b = 0;
    for (uint32_t i = 0; i + 1 < n; i++)
        b += (double)edge[i] <= value;
    return b;
}

TEST(cells_hold_means_and_entropies_are_the_definitions)
{
    uint64_t random_state = seed;
    struct sv_observation *o = observe(&random_state);
    struct sv_profile p;
    struct err err = {0};
    assert_ok(sv_profile_make(&p, 12, 10, o, N, &err), err);
    assert_int_equal(p.n_s, 12);
    assert_at_least(p.n_a, 6);
    assert_less(p.n_a, 10); /* 40% of the values of a are equal and share one bin */
    assert_int_equal(sv_profile_observations(&p), N);
    int *s = malloc(N * sizeof *s), *a = malloc(N * sizeof *a), *both = malloc(N * sizeof *both),
        *none = calloc(N, sizeof *none);
    for (size_t i = 0; i < N; i++) {
        s[i] = bin(p.s_edge, p.n_s, (double)o[i].s);
        a[i] = bin(p.a_edge, p.n_a, (double)o[i].a);
        both[i] = s[i] * SV_BINS + a[i];
    }
    for (int i = 0; i < (int)p.n_s; i++) {
        double in_row = 0;
        for (int k = 0; k < (int)p.n_a; k++) {
            double n = 0, sum = 0;
            const struct sv_observation *one = NULL;
            for (size_t j = 0; j < N; j++)
                if (s[j] == i && a[j] == k) {
                    n++;
                    sum += (double)o[j].accepted;
                    one = &o[j];
                }
            assert_near((double)p.count[i][k], n, 0.5);
            if (one != NULL)
                assert_near(sv_profile_accepted(&p, (double)one->s, (double)one->a), sum / n, 1e-9);
            in_row += n;
        }
        assert_at_most(fabs(in_row - N / 12.0), 2); /* bins have about the same number of observations */
    }
    assert_near(p.entropy.h, entropy_by(none, o, 1), 1e-9);
    assert_near(p.entropy.given_s, entropy_by(s, o, SV_BINS), 1e-9);
    assert_near(p.entropy.given_a, entropy_by(a, o, SV_BINS), 1e-9);
    assert_near(p.entropy.given_both, entropy_by(both, o, SV_BINS * SV_BINS), 1e-9);
    const double gain = sv_information_gain(&p.entropy);
    assert_greater(gain, 0.05);
    assert_less(gain, 1);
    free(s);
    free(a);
    free(both);
    free(none);
    free(o);
}

TEST(an_empty_cell_is_the_mean_of_its_row_and_column)
{
    struct sv_observation o[] = {{0.1f, 0.1f, 0.2f}, {0.1f, 0.1f, 0.4f}, {0.9f, 0.9f, 1}, {0.9f, 0.9f, 0.8f}};
    struct sv_profile p;
    struct err err = {0};
    assert_ok(sv_profile_make(&p, 2, 2, o, 4, &err), err);
    assert_near(sv_profile_accepted(&p, 0, 0), 0.3, 1e-6);
    assert_near(sv_profile_accepted(&p, 1, 1), 0.9, 1e-6);
    assert_near(sv_profile_accepted(&p, 0, 1), 0.6, 1e-6);
    assert_near(sv_profile_accepted(&p, 1, 0), 0.6, 1e-6);
}

TEST(invalid_observations_make_no_profile)
{
    struct sv_observation o = {0.5f, 1.5f, 0};
    struct sv_profile p;
    struct err err = {0};
    assert_false(sv_profile_make(&p, 10, 10, &o, 0, &err));
    assert_false(sv_profile_make(&p, 10, 10, &o, 1, &err));
    assert_contains(err.text, "[0, 1]");
    o.a = 1;
    assert_false(sv_profile_make(&p, SV_BINS + 1, 10, &o, 1, &err));
    assert_int_equal(err.kind, ERR_USAGE);
    assert_ok(sv_profile_make(&p, 10, 10, &o, 1, &err), err); /* one observation gives one bin */
    assert_int_equal(p.n_s * p.n_a, 1);
}

TEST(a_profile_is_read_as_it_was_written)
{
    uint64_t random_state = seed + 1;
    struct sv_observation *o = observe(&random_state);
    struct sv_profile p = {0}, back;
    struct err err = {0};
    p.whose = (struct sv_whose){.name = {"large", "small", "other \"one\""},
                                .hash = {1, UINT64_MAX, 3},
                                .layers = {0, 2, 6},
                                .temperature = 0.7f,
                                .top_p = 0.9f,
                                .top_k = 40};
    assert_ok(sv_profile_make(&p, 20, 15, o, N, &err), err);
    assert_ok(sv_profile_write(&p, path, &err), err);
    assert_ok(sv_profile_read(&back, path, &err), err);
    assert_string_equal(back.whose.name[2], "other \"one\"");
    assert_int_equal(back.whose.hash[1], UINT64_MAX);
    assert_int_equal(back.whose.top_k, 40);
    assert_memory_equal(back.whose.layers, p.whose.layers, sizeof p.whose.layers);
    assert_number_equal(back.whose.temperature, 0.7f);
    assert_number_equal(back.whose.top_p, 0.9f);
    assert_memory_equal(back.count, p.count, sizeof p.count);
    assert_memory_equal(back.s_edge, p.s_edge, (p.n_s - 1) * sizeof *p.s_edge);
    for (int i = 0; i < 100; i++) {
        const double s = uniform(&random_state), a = uniform(&random_state);
        assert_near(sv_profile_accepted(&p, s, a), sv_profile_accepted(&back, s, a), 1e-12);
    }
    assert_near(back.entropy.given_both, p.entropy.given_both, 1e-12);
    free(o);
}

/* A file with one changed byte, or cut off at any place, is read, or refused with a one-line message. */
TEST(damaged_files_are_refused_in_one_line)
{
    struct sv_observation o[] = {{0.1f, 0.1f, 0.2f}, {0.4f, 0.6f, 0.4f}, {0.9f, 0.9f, 1}, {0.5f, 0.2f, 0.8f}};
    struct sv_profile p = {0}, back;
    struct err err = {0};
    uint64_t random_state = seed;
    char json[4096], bad[4096];
    assert_ok(sv_profile_make(&p, 3, 3, o, 4, &err), err);
    assert_ok(sv_profile_write(&p, path, &err), err);
    FILE *f = fopen(path, "r");
    const size_t n = fread(json, 1, sizeof json, f);
    fclose(f);
    size_t refused = 0;
    for (size_t i = 0; i < n; i++) {
        err.text[0] = '\0';
        if (!sv_profile_parse(&back, "it", json, i, &err)) {
            refused++;
            assert_contains(err.text, "it: ");
        }
        memcpy(bad, json, n);
        bad[i] = (char)(32 + splitmix64(&random_state) % 95);
        if (sv_profile_parse(&back, "it", bad, n, &err)) {
            const double q = sv_profile_accepted(&back, uniform(&random_state), uniform(&random_state));
            assert_between(q, 0, 1);
        }
    }
    assert_int_equal(refused, n); /* every cut file is refused */
}

TEST(numbers_that_make_no_sense_are_refused)
{
    static const char text[] =
        "{\"format\":\"specscope verification profile 1\",\"target\":{\"name\":\"a\",\"hash\":\"0000000000000001\"},"
        "\"draft\":{\"name\":\"b\",\"hash\":\"0000000000000002\"},\"companion\":{\"name\":\"c\",\"hash\":"
        "\"0000000000000003\"},\"sampling\":{\"temperature\":%s,\"top_k\":0,\"top_p\":%s},\"s_edges\":[],\"a_edges\":[]"
        ","
        "\"count\":[[1]],\"accepted\":[[1]],\"entropy\":{\"h\":%s,\"given_s\":0,\"given_a\":0,\"given_both\":0}}";
    static const struct {
        const char *temperature, *top_p, *h, *says;
    } cases[] = {{"0.7", "1", "0", NULL},
                 {"-0.3", "1", "0", "\"temperature\" is not in its range"},
                 {"1e300", "1", "0", "\"temperature\" is not in its range"},
                 {"0", "2", "0", "\"top_p\" is not in its range"},
                 {"0", "1", "-1", "\"h\" is not in its range"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[800];
        struct sv_profile p;
        struct err err = {0};
        const int n = snprintf(json, sizeof json, text, cases[i].temperature, cases[i].top_p, cases[i].h);
        assert_int_equal(sv_profile_parse(&p, "it", json, (size_t)n, &err), cases[i].says == NULL);
        if (cases[i].says != NULL && strstr(err.text, cases[i].says) == NULL)
            fail_msg("case %zu: says \"%s\"", i, err.text);
    }
}

int
main(void)
{
    seed = seed_or(20261122);
    snprintf(path, sizeof path, "/tmp/sv-profile-%ld.json", (long)getpid());
    const int failed = run_listed_tests();
    unlink(path);
    return failed;
}
