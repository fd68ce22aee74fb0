/* Speculative Verification against a slow reference on recorded exact runs: s and a come from logits of contexts that
 * read every token anew, p̂ from the profile's file, γ from its definition. Also tests its latencies, which an engine
 * measures once. */
#include <math.h>

#include "engine/context/context.h"
#include "engine/model/trained/sv_profile.h"
#include "policies/sv_goodput.h"
#include "tests/rigs/exact_rig.h"
#include "tests/rigs/test.h"

enum { TOKENS = 120, WINDOW = 6, MOST = 64 };

static struct engine *engine;

static int
open_models(void **state)
{
    (void)state;
    engine = exact_rig_verification();
    return 0;
}

static int
close_models(void **state)
{
    (void)state;
    engine_close(engine);
    return 0;
}

static struct recorded_run
record(const char *policy, const struct knob_setting *set, size_t n_set, float temperature)
{
    struct session_options o = exact_rig_session(policy, "the little", TOKENS);
    o.sampling.temperature = temperature;
    o.set = set;
    o.n_set = n_set;
    return exact_rig_record(engine, &o);
}

/* ---- the reference ---- */

struct reference {
    struct context *ctx;
    seq_t seq;
    float *logits;
    double *p; /* (vocab) */
    uint32_t vocab;
};

static void
open_reference(struct reference *f, enum aux_role role)
{
    const struct aux_model *h = &engine->aux[role];
    const struct context_options limits = {.ctx = 512};
    struct err err = {0};
    assert_ok(context_open(&f->ctx, engine->ops, engine->backend, h->weights, &h->model->desc, &limits, &err), err);
    f->seq = context_sequence(f->ctx);
    f->vocab = h->model->desc.vocab;
    f->logits = calloc(f->vocab, sizeof *f->logits);
    f->p = calloc(f->vocab, sizeof *f->p);
    assert_non_null(f->logits);
    assert_non_null(f->p);
}

static void
close_reference(struct reference *f)
{
    context_close(f->ctx);
    free(f->logits);
    free(f->p);
}

/* p after these tokens, read from the first. */
static void
say(struct reference *f, const token_t *tokens, uint32_t n, double temperature)
{
    double sum = 0, most = -INFINITY;
    context_truncate(f->ctx, f->seq, 0);
    assert_true(context_prefill(f->ctx, f->seq, tokens, n, NULL, NULL));
    const slot_t last = context_at(f->ctx, f->seq, n - 1);
    assert_true(context_read_logits(f->ctx, last, context_depth(f->ctx, last), f->logits));
    for (uint32_t v = 0; v < f->vocab; v++)
        most = fmax(most, (double)f->logits[v]);
    for (uint32_t v = 0; v < f->vocab; v++)
        sum += f->p[v] = exp(((double)f->logits[v] - most) / temperature);
    for (uint32_t v = 0; v < f->vocab; v++)
        f->p[v] /= sum;
}

struct compared {
    uint32_t rounds, stopped, drafts;
    double worst; /* of s and a */
};

/* γ as defined in METHODS: from E[K|γ] and latencies in units of a verification of one row. */
static uint32_t
reference_gamma(const double *p, uint32_t n, double row_cost, double draft_cost)
{
    for (uint32_t gamma = 0; gamma < n; gamma++) {
        double value[2];
        for (uint32_t more = 0; more < 2; more++) {
            double accepted = 0;
            for (uint32_t i = 1; i <= gamma + more; i++) {
                double all = 1;
                for (uint32_t j = 1; j <= i; j++)
                    all *= p[j - 1];
                accepted += all;
            }
            value[more] = (accepted + 1) / (draft_cost + 1 + row_cost * (gamma + more));
        }
        if (!(value[1] > value[0]))
            return gamma;
    }
    return n;
}

/* Compares the reports of a round with the reference. Its drafts are tokens[n..n + drafted). */
static void
check_round(const struct recorded_run *run, uint32_t round, const struct round_event *line, struct reference *f,
            const token_t *tokens, uint32_t n, double temperature, struct compared *c)
{
    double p[MOST];
    for (uint32_t i = 0; i < line->drafted; i++) {
        const token_t x = tokens[n + i];
        double s = 0;
        say(&f[AUX_DRAFT], tokens, n + i, temperature);
        say(&f[AUX_COMPANION], tokens, n + i, temperature);
        const double *d = f[AUX_DRAFT].p, *q = f[AUX_COMPANION].p;
        for (uint32_t v = 0; v < f[AUX_DRAFT].vocab; v++)
            s += fmin(d[v], q[v]);
        const double got_s = recorded_value(run, round, "s", (int)i), got_a = recorded_value(run, round, "a", (int)i);
        c->worst = fmax(c->worst, fmax(fabs(got_s - s), fabs(got_a - fmin(1, q[x] / d[x]))));
        p[i] = sv_profile_accepted(engine->profile, got_s, got_a);
        assert_near(recorded_value(run, round, "p", (int)i), p[i], 1e-6);
        assert_number_equal(recorded_value(run, round, "cell", (int)i), sv_profile_cell(engine->profile, got_s, got_a));
        c->drafts++;
    }
    const uint32_t gamma = reference_gamma(p, line->drafted, 0.5, 0.5);
    assert_number_equal(recorded_value(run, round, "gamma", 0), gamma);
    assert_int_equal(line->w_max, gamma);
    assert_int_equal(line->verified, gamma < line->drafted ? gamma + 1 : gamma);
    assert_string_equal(line->stop_reason, gamma < line->drafted     ? "goodput"
                                           : line->drafted == WINDOW ? "window"
                                                                     : "budget");
    c->rounds++;
    c->stopped += gamma + 1 < line->drafted;
}

static void
compare(float temperature)
{
    static const struct knob_setting set[] = {{"window", "6"}, {"row_cost", "0.5"}, {"draft_cost", "0.5"}};
    struct reference f[AUX_COMPANION + 1];
    struct compared c = {0};
    token_t tokens[512], drafts[MOST];
    uint32_t n = 0, drafted = 0;
    for (enum aux_role role = AUX_DRAFT; role <= AUX_COMPANION; role++)
        open_reference(&f[role], role);
    struct recorded_run run = record("sv", set, 3, temperature);
    for (size_t i = 0; i < run.n; i++) {
        const struct event *e = &run.events[i];
        if (e->type == EVENT_TOKEN && e->token.source == SOURCE_DRAFT) {
            drafts[drafted++] = e->token.token;
        } else if (e->type == EVENT_TOKEN) {
            if (e->token.source == SOURCE_CORRECTION || e->token.source == SOURCE_BONUS)
                tokens[e->token.pos] = e->token.token; /* after the accepted drafts */
            else
                tokens[n++] = e->token.token;
        } else if (e->type == EVENT_ROUND) {
            const struct round_event *line = &e->round_end;
            token_t own = tokens[n + line->emitted - 1];
            assert_int_equal(line->drafted, drafted);
            memcpy(tokens + n, drafts, drafted * sizeof *drafts);
            check_round(&run, e->round, line, f, tokens, n, temperature > 0 ? (double)temperature : 1, &c);
            n += line->emitted;
            if (line->emitted > line->accepted)
                tokens[n - 1] = own;
            drafted = 0;
        }
    }
    print_message("temperature %g: %u rounds, %u drafts, %u rounds verified fewer; s and a within %.1e\n",
                  (double)temperature, (unsigned)c.rounds, (unsigned)c.drafts, (unsigned)c.stopped, c.worst);
    assert_greater(c.rounds, 20);
    assert_greater(c.stopped, 5);
    assert_less(c.worst, 1e-6);
    for (enum aux_role role = AUX_DRAFT; role <= AUX_COMPANION; role++)
        close_reference(&f[role]);
    recorded_run_free(&run);
}

TEST(greedy_rounds_follow_the_reference)
{
    compare(0);
}

TEST(sampled_rounds_follow_the_reference)
{
    compare(0.8f);
}

/* ---- compared with sd ---- */

TEST(verifying_all_is_sd)
{
    static const struct knob_setting all[] = {{"window", "6"}, {"verify", "all"}}, k = {"k", "6"};
    for (int temperature = 0; temperature <= 1; temperature++) {
        struct recorded_run run[2];
        size_t at[2] = {0, 0};
        uint32_t rounds = 0;
        run[0] = record("sv", all, 2, (float)temperature);
        run[1] = record("sd", &k, 1, (float)temperature);
        for (;; rounds++) {
            for (int i = 0; i < 2; i++)
                while (at[i] < run[i].n && run[i].events[at[i]].type != EVENT_ROUND)
                    at[i]++;
            if (at[0] == run[0].n || at[1] == run[1].n)
                break;
            const struct round_event *a = &run[0].events[at[0]++].round_end, *b = &run[1].events[at[1]++].round_end;
            assert_int_equal(a->drafted, b->drafted);
            assert_int_equal(a->verified, b->verified);
            assert_int_equal(a->accepted, b->accepted);
            assert_int_equal(a->emitted, b->emitted);
            assert_number_equal(a->layers_loaded, b->layers_loaded);
            assert_number_equal(a->heads_loaded, b->heads_loaded);
        }
        assert_greater(rounds, 20);
        assert_int_equal(at[0], run[0].n);
        assert_int_equal(at[1], run[1].n);
        recorded_run_free(&run[0]);
        recorded_run_free(&run[1]);
    }
}

TEST(a_cap_is_kept)
{
    static const struct knob_setting set[] = {{"window", "6"}, {"cap", "2"}, {"row_cost", "0.001"}};
    uint32_t capped = 0;
    struct recorded_run run = record("sv", set, 3, 0);
    for (size_t i = 0; i < run.n; i++)
        if (run.events[i].type == EVENT_ROUND) {
            assert_in_range(run.events[i].round_end.verified, 0, 3); /* two rows, and the one after them */
            capped += strcmp(run.events[i].round_end.stop_reason, "cap") == 0;
        }
    assert_greater(capped, 10);
    recorded_run_free(&run);
}

/* ---- measured latencies ---- */

TEST(the_first_rounds_measure)
{
    uint32_t rounds = 0, aside = 0;
    const struct session_options o = exact_rig_session("sv", "the little", TOKENS);
    struct recorded_run run = exact_rig_record(engine, &o);
    for (size_t i = 0; i < run.n; i++) {
        const struct round_event *line = &run.events[i].round_end;
        if (run.events[i].type != EVENT_ROUND)
            continue;
        const uint32_t round = run.events[i].round;
        aside += line->learning_us > 0;
        assert_int_equal(strcmp(line->stop_reason, "measuring") == 0, ++rounds <= 2);
        double before = 0;
        for (int gamma = 0; rounds > 2 && gamma <= (int)line->drafted; gamma++) {
            const double latency = recorded_value(&run, round, "latency", gamma);
            assert_greater(latency, 0);
            assert_at_least(latency, before);
            before = latency;
        }
    }
    assert_greater(rounds, 10);
    assert_int_equal(aside, 1); /* not in the rounds' accounts */
    recorded_run_free(&run);
}

/* Counts rounds that measured, and rounds that drafted without a measured latency. */
static void
count_measured(uint32_t batch, const struct knob_setting *set, size_t n_set, uint32_t *aside, uint32_t *measuring)
{
    struct session_options o = exact_rig_session("sv", "the little", 40);
    o.batch = batch;
    o.set = set;
    o.n_set = n_set;
    struct recorded_run run = exact_rig_record(engine, &o);
    *aside = *measuring = 0;
    for (size_t i = 0; i < run.n; i++)
        if (run.events[i].type == EVENT_ROUND && run.events[i].seq == 0) {
            *aside += run.events[i].round_end.learning_us > 0;
            *measuring += strcmp(run.events[i].round_end.stop_reason, "measuring") == 0;
        }
    recorded_run_free(&run);
}

TEST(measurements_stay_with_the_engine)
{
    static const struct knob_setting other = {"window", "3"}, cost = {"row_cost", "0.5"};
    uint32_t aside, measuring;
    count_measured(0, NULL, 0, &aside, &measuring); /* the previous test measured it */
    assert_int_equal(aside, 0);
    assert_int_equal(measuring, 0);
    count_measured(0, &cost, 1, &aside, &measuring);
    count_measured(0, NULL, 0, &aside, &measuring); /* a run that needs no latencies keeps them */
    assert_int_equal(aside, 0);
    count_measured(0, &other, 1, &aside, &measuring); /* verification is the same, drafting is not */
    assert_int_equal(aside, 0);
    assert_int_equal(measuring, 2);
    for (int again = 0; again < 2; again++) {
        count_measured(3, NULL, 0, &aside, &measuring);
        assert_int_equal(aside, again ? 0 : 1);
    }
}

/* ---- corrections ---- */

static struct sv_latency
measured(void)
{
    struct sv_latency l = {.rows = 8};
    for (uint32_t i = 0; i < l.rows; i++)
        l.verify_ms[i] = l.first_ms[i] = 10 + i;
    return l;
}

TEST(a_first_value_that_was_an_outlier_does_not_stay)
{
    struct sv_latency l = measured();
    l.verify_ms[3] = l.first_ms[3] = 130;
    for (int i = 0; i < 3; i++) {
        sv_latency_verified(&l, 3, 12);
        sv_latency_verified(&l, 4, 13);
        sv_latency_verified(&l, 5, 14);
    }
    for (uint32_t i = 0; i < l.rows; i++)
        assert_near(l.verify_ms[i], 10 + i, 1e-9);
}

TEST(outliers_among_verifications_count_for_nothing)
{
    struct sv_latency l = measured();
    sv_latency_verified(&l, 4, 1300);
    assert_number_equal(l.verify_ms[3], 13); /* a single one */
    for (int i = 0; i < 20; i++)
        sv_latency_verified(&l, 4, i % 5 < 2 ? 1300 : 13);
    assert_number_equal(l.verify_ms[3], 13);
}

TEST(a_slower_machine_is_slower_for_all_numbers_of_rows)
{
    struct sv_latency l = measured();
    for (int i = 0; i < 3; i++) {
        sv_latency_verified(&l, 1, 20);
        sv_latency_verified(&l, 3, 24);
    }
    for (uint32_t i = 0; i < l.rows; i++)
        assert_near(l.verify_ms[i], 2 * (10 + i), 1e-9);
    sv_latency_verified(&l, 9, 1); /* more rows than were measured, or a time of 0, change nothing */
    sv_latency_verified(&l, 1, 0);
    assert_number_equal(l.verify_ms[0], 20);
}

extern const struct policy_ops policy_sv;
static struct sv_latency *wronged; /* the session's latencies, before the end of its first round; NULL: none yet */

/* Multiplies the measured latencies by a thousand. */
static bool
wrong_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    const bool ok = policy_sv.draft(p, r, n);
    if (wronged != NULL || !ok)
        return ok;
    wronged = p[0]->shared;
    for (uint32_t i = 0; i < wronged->rows; i++) {
        wronged->first_ms[i] *= 1000;
        wronged->verify_ms[i] *= 1000;
    }
    return true;
}

static double corrected_ms;

static bool
watching_observe(struct policy *p, struct round *r)
{
    const bool ok = policy_sv.observe(p, r);
    corrected_ms = ((struct sv_latency *)p->shared)->verify_ms[0] / ((struct sv_latency *)p->shared)->first_ms[0];
    return ok;
}

TEST(verifications_of_rounds_correct_the_measured_times)
{
    struct policy_ops wrong = policy_sv;
    const struct policy_ops *const registry[] = {&wrong, NULL};
    struct session_options o = exact_rig_session("sv", "the little", TOKENS);
    wrong.draft = wrong_draft;
    wrong.observe = watching_observe;
    o.policies = registry;
    struct recorded_run run = exact_rig_record(engine, &o);
    assert_greater(corrected_ms, 0);
    assert_less(corrected_ms, 0.2);
    recorded_run_free(&run);
}

/* ---- calls ---- */

static struct {
    struct backend_ops ops;
    const struct backend_ops *real;
    uint32_t steps, overlaps, draws;
} counted;

static bool
counted_step(struct kv_cache *s, const struct forward_pass *w)
{
    counted.steps++;
    return counted.real->step(s, w);
}

static bool
counted_overlap(struct kv_cache *s, const struct overlap_req *requests, size_t n)
{
    counted.overlaps++;
    return counted.real->overlap(s, requests, n);
}

static bool
counted_draw(struct kv_cache *s, const struct draw_req *requests, size_t n)
{
    counted.draws++;
    return counted.real->draw(s, requests, n);
}

/* For m drafts the draft model reads the pending token, then all but the last draft. The companion reads all of these
 * in one forward pass, and the target verifies in one. (After a draft that was accepted without a row, the draft model
 * has read that draft already.) A step's drafts are drawn in one call, and a round's drafts are compared in one. */
TEST(a_round_takes_as_few_calls_as_it_can)
{
    static const struct knob_setting set[] = {{"window", "6"}, {"row_cost", "0.001"}, {"draft_cost", "10"}};
    counted.real = engine->ops;
    counted.ops = *engine->ops;
    counted.ops.step = counted_step;
    counted.ops.overlap = counted_overlap;
    counted.ops.draw = counted_draw;
    engine->ops = &counted.ops;
    for (uint32_t batch = 1; batch <= 4; batch += 3) {
        uint32_t drafted[TOKENS + 1] = {0}, rounds = 0, draws = 0, without_row = 0;
        uint32_t steps = 3 * batch; /* prompts, of three models */
        struct session_options o = exact_rig_session("sv", "the little", TOKENS);
        o.sampling.temperature = 0.8f;
        o.batch = batch;
        o.set = set;
        o.n_set = 3;
        counted.steps = counted.overlaps = counted.draws = 0;
        struct recorded_run run = exact_rig_record(engine, &o);
        for (size_t i = 0; i < run.n; i++) {
            const struct event *e = &run.events[i];
            if (e->type != EVENT_ROUND)
                continue;
            rounds = e->round;
            assert_at_most(rounds, TOKENS);
            without_row += e->round_end.emitted == e->round_end.accepted;
            if (e->round_end.drafted > drafted[rounds])
                drafted[rounds] = e->round_end.drafted;
        }
        uint32_t compared = 0;
        for (uint32_t r = 1; r <= rounds; r++) {
            steps += 1 + (drafted[r] > 0 ? drafted[r] + 1 : 0);
            draws += drafted[r];
            compared += drafted[r] > 0;
        }
        assert_greater(rounds, 20);
        assert_in_range(counted.steps, steps - 2 * without_row, steps);
        assert_less(2 * without_row, rounds); /* otherwise the bounds prove nothing */
        assert_int_equal(counted.draws, draws);
        assert_int_equal(counted.overlaps, compared);
        recorded_run_free(&run);
    }
    engine->ops = counted.real;
}

FIXTURE(open_models, close_models);
