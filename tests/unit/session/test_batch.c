/* Several sequences in a session: each has the tokens and rounds that it has alone. Sequences join and leave, and
 * shared work is counted once. The rig also checks the events of every run. */
#include "base/rng.h"
#include "policies/registry.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

enum { PROMPTS = SESSION_BATCH, ROUNDS = 512 };

/* ---- alone and in company ---- */

struct lines { /* ROUND lines of each sequence */
    struct round_event at[PROMPTS][ROUNDS];
    size_t n[PROMPTS];
};

static void
note_line(void *user, struct live *s, const struct event *e)
{
    (void)s;
    struct lines *l = user;
    if (e->type == EVENT_ROUND && e->seq < PROMPTS && l->n[e->seq] < ROUNDS)
        l->at[e->seq][l->n[e->seq]++] = e->round_end;
}

static void
same_line(const struct round_event *a, const struct round_event *b)
{
    assert_int_equal(a->drafted, b->drafted);
    assert_int_equal(a->verified, b->verified);
    assert_int_equal(a->accepted, b->accepted);
    assert_int_equal(a->emitted, b->emitted);
    assert_int_equal(a->exit_layer, b->exit_layer);
    assert_memory_equal(&a->threshold, &b->threshold, sizeof a->threshold);
    assert_int_equal(a->d_max, b->d_max);
    assert_int_equal(a->w_max, b->w_max);
    assert_string_equal(a->stop_reason, b->stop_reason);
}

static void
compare_with_alone(struct engine *engine, const struct session_options *batch)
{
    static struct lines together, alone;
    struct session_rig_result all, one;
    memset(&together, 0, sizeof together);
    session_run(engine, batch, note_line, &together, &all);
    assert_int_equal(all.n_sequences, PROMPTS);
    assert_string_equal(all.end, "batch");
    /* The number of drafts that sv verifies depends on measured times and on the other sequences. Its greedy text does
     * not, and its samples keep their distribution (test_policy_sampling). */
    const bool same_rounds = strcmp(batch->policy, "sv") != 0;
    for (uint32_t i = 0; i < PROMPTS; i++) {
        struct session_options o = *batch;
        o.batch = 0;
        o.n_prompts = 0;
        o.prompt = o.prompts[i].text;
        o.prompt_len = o.prompts[i].len;
        o.seed = rng_sequence_seed(batch->seed, i);
        memset(&alone, 0, sizeof alone);
        session_run(engine, &o, note_line, &alone, &one);
        assert_int_equal(all.sequences[i].n, one.n);
        assert_memory_equal(all.sequences[i].tokens, one.tokens, one.n * sizeof *one.tokens);
        assert_string_equal(all.sequences[i].left, one.end);
        if (same_rounds) {
            assert_int_equal(together.n[i], alone.n[0]);
            for (size_t k = 0; k < alone.n[0]; k++)
                same_line(&together.at[i][k], &alone.at[0][k]);
        }
        session_rig_free(&one);
    }
    session_rig_free(&all);
}

/* Policies with a draft vocabulary have one in every other case. */
TEST(sequences_of_a_batch_are_as_they_are_alone)
{
    struct fixture *f = *state;
    const struct knob_setting tokens[] = {{DRAFT_VOCAB, "128"}};
    for (size_t p = 0; policy_registry[p] != NULL; p++)
        for (int sampled = 0; sampled < (strcmp(policy_registry[p]->name, "sv") == 0 ? 1 : 2); sampled++) {
            struct session_options o = session_batch(sampled ? 3 : 4);
            o.policy = policy_registry[p]->name;
            o.tokens = 30;
            o.set = tokens;
            o.n_set = policy_registry[p]->draft_vocab > 0 && (p + (size_t)sampled) % 2 == 0;
            o.sampling.temperature = sampled ? 0.9f : 0;
            o.seed = 11;
            compare_with_alone(f->engine, &o);
        }
}

/* Long drafts of many sequences need a verification in parts. */
TEST(more_rows_than_a_forward_pass_has_go_in_parts)
{
    struct fixture *f = *state;
    const struct knob_setting longest[] = {{"k", "32"}};
    struct session_options o = session_batch(PROMPTS);
    o.policy = "sd";
    o.set = longest;
    o.n_set = 1;
    compare_with_alone(f->engine, &o);
}

TEST(sequences_leave_a_batch_at_an_end_of_sequence_and_of_the_context)
{
    struct fixture *f = *state;
    struct session_options o = session_batch(3);
    struct session_rig_result r;
    size_t ends[3] = {0};
    o.policy = "layerskip";
    o.ignore_eos = false;
    o.sampling.temperature = 4;
    o.tokens = 110;
    o.ctx = 128;
    compare_with_alone(f->engine, &o);
    session_run(f->engine, &o, NULL, NULL, &r);
    for (size_t i = 0; i < r.n_sequences; i++)
        ends[r.sequences[i].left[0] == 'e' ? 0 : r.sequences[i].left[0] == 'c' ? 1 : 2]++;
    assert_greater(ends[0], 0);
    assert_greater(ends[1] + ends[2], 0); /* otherwise the seed proves nothing */
    session_rig_free(&r);
}

/* ---- controls ---- */

struct watch {
    uint32_t baselines, lossless;
    bool waits; /* a policy was requested */
};

static void
ask_in_the_middle(void *user, struct live *s, const struct event *e)
{
    struct watch *w = user;
    w->lossless += event_is_control(e, "lossless", NULL) && strncmp(e->control.new_text, "yes: ", 5) == 0;
    w->baselines += event_is_control(e, "baseline", NULL);
    if (e->type != EVENT_ROUND || e->seq != 0 || e->round > 12)
        return;
    static const char *const others[] = {"sd", "del", "specdecpp", "swift", "sv", "specbound"};
    if (e->round % 4 == 1)
        session_control(s, CONTROL_BASELINE, NULL, NULL, 0);
    if (e->round % 2 == 0)
        session_control(s, CONTROL_POLICY, NULL, others[e->round / 2 % 6], 0);
    if (e->round == 5)
        session_control(s, CONTROL_HEAD, NULL, "lens", 0);
}

TEST(policies_and_baselines_change_nothing)
{
    struct fixture *f = *state;
    struct session_options o = session_batch(3);
    struct session_rig_result plain, busy;
    struct watch w = {0};
    o.pace = 2000;
    session_run(f->engine, &o, NULL, NULL, &plain);
    session_run(f->engine, &o, ask_in_the_middle, &w, &busy);
    assert_greater(w.baselines, 0);
    assert_int_equal(w.lossless, w.baselines);
    for (size_t i = 0; i < PROMPTS; i++) {
        assert_int_equal(busy.sequences[i].n, plain.sequences[i].n);
        assert_memory_equal(busy.sequences[i].tokens, plain.sequences[i].tokens,
                            plain.sequences[i].n * sizeof *plain.sequences[i].tokens);
    }
    session_rig_free(&plain);
    session_rig_free(&busy);
}

struct story {
    uint32_t ends, backs, joined, run;
};

/* Requests more tokens after the end, then another prompt for all sequences, then the end. */
static void
go_on(void *user, struct live *s, const struct event *e)
{
    struct story *t = user;
    t->backs += event_is_control(e, "back", NULL);
    t->joined += event_is_control(e, "joined", session_prompts[9]);
    if (!event_is_control(e, "end", "batch"))
        return;
    t->ends++;
    if (t->ends == 1)
        session_control(s, CONTROL_EXTEND, NULL, NULL, 8);
    else if (t->ends == 2)
        session_control(s, CONTROL_PROMPT, NULL, session_prompts[9], 0);
    else
        session_control(s, CONTROL_QUIT, NULL, NULL, 0);
}

TEST(sequences_of_a_batch_resume_and_take_another_prompt)
{
    struct fixture *f = *state;
    struct session_options o = session_batch(3);
    struct session_rig_result r, alone;
    struct story t = {0};
    o.stay = true;
    session_run(f->engine, &o, go_on, &t, &r);
    assert_int_equal(t.ends, 3);
    assert_int_equal(t.backs, 3); /* the sequences that were there at the end */
    assert_int_equal(t.joined, 3);
    o = session_usual();
    o.prompt = session_prompts[9];
    o.prompt_len = strlen(o.prompt);
    session_run(f->engine, &o, NULL, NULL, &alone);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(r.sequences[i].n, alone.n);
        assert_memory_equal(r.sequences[i].tokens, alone.tokens, alone.n * sizeof *alone.tokens);
    }
    session_rig_free(&r);
    session_rig_free(&alone);
}

static void
draft_at_the_end(void *user, struct live *s, const struct event *e)
{
    uint32_t *ends = user;
    if (!event_is_control(e, "end", "batch"))
        return;
    if ((*ends)++ > 0) {
        session_control(s, CONTROL_QUIT, NULL, NULL, 0);
        return;
    }
    session_control(s, CONTROL_POLICY, NULL, "sd", 0);
    session_control(s, CONTROL_EXTEND, NULL, NULL, 8);
}

/* A draft model that reads the texts of all sequences at once keeps only the last rows' hidden states. */
TEST(a_draft_model_that_comes_late_drafts_for_all)
{
    struct fixture *f = *state;
    struct session_options o = session_batch(PROMPTS);
    struct session_rig_result r, alone;
    uint32_t ends = 0;
    o.stay = o.ignore_eos = true;
    o.policy = "ar";
    o.tokens = 80;
    session_run(f->engine, &o, draft_at_the_end, &ends, &r);
    assert_int_equal(ends, 2);
    for (uint32_t i = 0; i < PROMPTS; i++) {
        struct session_options one = session_usual();
        one.policy = "ar";
        one.ignore_eos = true;
        one.tokens = 88;
        one.prompt = o.prompts[i].text;
        one.prompt_len = o.prompts[i].len;
        session_run(f->engine, &one, NULL, NULL, &alone);
        assert_int_equal(r.sequences[i].n, alone.n);
        assert_memory_equal(r.sequences[i].tokens, alone.tokens, alone.n * sizeof *alone.tokens);
        session_rig_free(&alone);
    }
    session_rig_free(&r);
}

/* ---- refusals ---- */

static void
refuses(struct engine *engine, const struct session_options *o, const char *what)
{
    struct live *s;
    struct err err = {0};
    assert_false(session_open(&s, engine, o, &err));
    assert_int_equal(err.kind, ERR_USAGE);
    assert_contains(err.text, what);
}

TEST(impossible_batches_are_refused)
{
    struct fixture *f = *state;
    struct session_options o = session_batch(BATCH_MOST + 1);
    refuses(f->engine, &o, "64 are possible");
    o = session_batch(2);
    o.ctx = 12; /* too small for some of the prompts */
    refuses(f->engine, &o, "prompt ");
}

FIXTURE(session_fixture_open, session_fixture_close);
