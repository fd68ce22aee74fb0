/* Draft vocabularies: recent tokens and orders against naive models, and a session whose drafts are tokens of the set
 * that follows from its text. */
#include "base/rng.h"
#include "engine/events/draft_vocab.h"
#include "engine/session/engine.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

enum { VOCAB = 4000, TEXT = 9000 };

static uint64_t seed;

/* ---- recent tokens ---- */

static uint32_t
below(uint64_t *random, uint32_t n)
{
    return (uint32_t)(splitmix64(random) % n);
}

static void
random_rank(struct draft_rank *rank, uint64_t *random)
{
    static token_t ids[VOCAB];
    struct err err = {0};
    for (uint32_t i = 0; i < VOCAB; i++) {
        const uint32_t other = below(random, i + 1);
        ids[i] = ids[other];
        ids[other] = (token_t)i;
    }
    assert_ok(draft_rank_open(rank, ids, VOCAB, &err), err);
}

/* Reads a text as the definition has it: a queue that a token joins if it is neither in the base nor in the queue, and
 * that drops its oldest token when it is too long. Returns its length; the oldest token comes first. */
static uint32_t
naive_recent(const struct draft_rank *rank, uint32_t base, const token_t *text, uint32_t n, token_t *queue)
{
    uint32_t length = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool known = false;
        for (uint32_t k = 0; k < base && !known; k++)
            known = rank->ids[k] == text[i];
        for (uint32_t k = 0; k < length && !known; k++)
            known = queue[k] == text[i];
        if (known)
            continue;
        if (length == DRAFT_RECENT)
            memmove(queue, queue + 1, --length * sizeof *queue);
        queue[length++] = text[i];
    }
    return length;
}

/* The text uses `words` different tokens, so the queue overflows or not. */
static void
check_recent(uint32_t words, uint32_t base, uint64_t *random)
{
    static token_t text[TEXT], queue[DRAFT_RECENT];
    struct draft_rank rank;
    struct draft_recent recent = {0};
    random_rank(&rank, random);
    for (uint32_t i = 0; i < TEXT; i++)
        text[i] = (token_t)below(random, words);
    for (uint32_t n = 0; n < TEXT; n += 1 + below(random, TEXT / 3)) {
        draft_recent_read(&recent, &rank, base, text, n);
        const uint32_t length = naive_recent(&rank, base, text, n, queue), first = recent.found - length;
        assert_int_equal(draft_recent_count(&recent), length);
        for (uint32_t i = 0; i < length; i++)
            assert_int_equal(recent.token[(first + i) % DRAFT_RECENT], queue[i]);
        if (below(random, 4) == 0) /* another base starts again from the text's begin */
            draft_recent_read(&recent, &rank, base + 64, text, n);
    }
    draft_rank_close(&rank);
}

TEST(recent_tokens_are_those_of_the_definition_for_any_division_of_the_text)
{
    uint64_t random = seed;
    check_recent(300, 64, &random);
    check_recent(VOCAB, 512, &random);
    check_recent(VOCAB, 3500, &random);
}

TEST(an_order_by_id_is_described_by_its_last_tokens)
{
    static token_t ids[300];
    char last[DRAFT_LAST_MOST];
    struct draft_rank rank, again;
    struct err err = {0};
    uint32_t n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (token_t t = 0; t < 300; t++)
            if ((t < 3 || t == 17 || t > 290) == (pass == 1))
                ids[n++] = t;
    assert_ok(draft_rank_open(&rank, ids, 300, &err), err);
    assert_true(draft_rank_print_last(&rank, last, sizeof last));
    assert_string_equal(last, "0-2,17,291-299");
    assert_ok(draft_rank_by_id(&again, last, 300, &err), err);
    assert_memory_equal(again.ids, ids, sizeof ids);
    assert_false(draft_rank_print_last(&rank, last, 8));
    draft_rank_close(&again);
    draft_rank_close(&rank);
    for (uint32_t i = 0; i < 300; i++)
        ids[i] = (token_t)(299 - i);
    assert_ok(draft_rank_open(&rank, ids, 300, &err), err);
    assert_false(draft_rank_print_last(&rank, last, sizeof last)); /* it is by counts */
    draft_rank_close(&rank);
}

/* ---- a session ---- */

struct follower {
    const struct draft_rank *rank;
    uint32_t base;
    token_t text[400];
    uint32_t n, in_round; /* tokens of the text; those at the beginning of the round */
    token_t drafts[VERIFY_NODES];
    uint32_t predictions, outside; /* over the set; of the last layer's tokens, those outside the set */
};

static bool
in_set(const struct follower *f, token_t token)
{
    bool found = f->rank->place[token] < f->base;
    for (uint32_t i = 0; i < f->in_round && !found; i++)
        found = f->text[i] == token;
    return found;
}

/* A layer that a policy probed predicts a token of the set, and the event has the set's size. */
static void
check_event(void *user, struct live *s, const struct event *e)
{
    struct follower *f = user;
    (void)s;
    if (e->type == EVENT_TOKEN && e->token.source == SOURCE_DRAFT) {
        assert_true(in_set(f, e->token.token));
        f->drafts[e->token.candidate] = e->token.token;
    } else if (e->type == EVENT_TOKEN) {
        f->text[f->n++] = e->token.token;
        f->in_round = e->token.source == SOURCE_PREFILL ? f->n : f->in_round;
    } else if (e->type == EVENT_VERDICT && e->verdict.committed == 1) {
        f->text[f->n++] = f->drafts[e->verdict.candidate];
    } else if (e->type == EVENT_ROUND) {
        f->in_round = f->n;
    } else if (e->type == EVENT_LAYER && e->layer.probed_by == PROBED_POLICY) {
        uint32_t recent = 0;
        for (uint32_t i = 0; i < f->in_round; i++) {
            bool first = f->rank->place[f->text[i]] >= f->base;
            for (uint32_t k = 0; k < i && first; k++)
                first = f->text[k] != f->text[i];
            recent += first;
        }
        assert_int_equal(e->layer.draft_vocab, f->base + recent);
        for (int i = 0; i < PREDICTION_TOP; i++)
            assert_true(in_set(f, e->layer.top[i]));
        f->predictions++;
    } else if (e->type == EVENT_LAYER && e->layer.probed_by == PROBED_SCOPE) {
        assert_int_equal(e->layer.draft_vocab, 0);
        f->outside += !in_set(f, e->layer.token);
    }
}

TEST(drafts_are_tokens_of_the_base_and_of_the_text_before_the_round)
{
    struct fixture *fixture = *state;
    static const char *const policies[] = {"layerskip", "specbound", "sd", "specdecpp"};
    const struct knob_setting tokens[] = {{DRAFT_VOCAB, "64"}};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        struct follower f = {.rank = &fixture->engine->rank, .base = 64};
        struct session_options o = session_usual();
        struct session_rig_result r;
        o.policy = policies[i];
        o.probe = PROBE_ALL;
        o.set = tokens;
        o.n_set = 1;
        session_run(fixture->engine, &o, check_event, &f, &r);
        assert_greater(f.predictions, 20);
        assert_greater(f.outside, 0); /* else the test proves nothing */
        session_rig_free(&r);
    }
}

FIXTURE(session_fixture_open, session_fixture_close);
TEST_SEED(seed, 20261129);
