/* The scope's aggregates of rounds against slow counts of the events. */
#include "engine/scope/aggregates.h"
#include "tests/rigs/scope_rig.h"
#include "tests/rigs/test.h"

struct node { /* a draft, from its events */
    int parent, exit, accepted;
    float confidence;
    bool there;
};

static int
depth_of(const struct node *nodes, int i)
{
    return i == 0 ? 0 : 1 + depth_of(nodes, nodes[i].parent);
}

static bool
all_before_passed(const struct node *nodes, int i)
{
    return nodes[i].parent == 0 || (nodes[nodes[i].parent].accepted == 1 && all_before_passed(nodes, nodes[i].parent));
}

static void
count_slowly(const struct node nodes[VERIFY_NODES], struct draft_counts *c)
{
    for (uint32_t depth = 1; depth < VERIFY_NODES; depth++) {
        int best = 0;
        bool tried = false, verified = false;
        for (int i = 1; i < VERIFY_NODES; i++) {
            if (!nodes[i].there || depth_of(nodes, i) != (int)depth)
                continue;
            best = best == 0 || (nodes[i].accepted == 1 && nodes[best].accepted != 1) ? i : best;
            verified = verified || nodes[i].accepted >= 0;
            tried = tried || (nodes[i].accepted >= 0 && all_before_passed(nodes, i));
        }
        if (best == 0)
            return;
        const bool yes = nodes[best].accepted == 1;
        c->steps++;
        (yes ? c->accepted : c->others)[nodes[best].exit]++;
        c->depth[depth].verified += verified;
        c->depth[depth].accepted += yes;
        c->depth[depth].tried += tried;
        c->depth[depth].passed += tried && yes;
        if (tried)
            calibration_add(&c->calibration, (double)nodes[best].confidence, yes);
    }
}

/* Counts rounds of a run's events from that round on. */
static void
count_stream(const struct stream *s, uint32_t run, uint32_t from, struct draft_counts *c)
{
    struct node nodes[VERIFY_NODES] = {{0}};
    for (size_t i = 0; i < s->n; i++) {
        const struct event *e = &s->events[i];
        if (e->run != run || e->round < from)
            continue;
        if (e->type == EVENT_TOKEN && e->token.source == SOURCE_DRAFT)
            nodes[e->token.candidate] =
                (struct node){e->token.parent, e->token.exit_layer, -1, e->token.confidence, true};
        if (e->type == EVENT_VERDICT)
            nodes[e->verdict.candidate].accepted = e->verdict.accepted;
        if (e->type == EVENT_ROUND) {
            count_slowly(nodes, c);
            memset(nodes, 0, sizeof nodes);
        }
    }
}

static void
assert_same_counts(const struct draft_counts *a, const struct draft_counts *b)
{
    assert_int_equal(a->steps, b->steps);
    for (uint32_t l = 0; l <= FAKE_LAYERS; l++) {
        assert_int_equal(a->accepted[l], b->accepted[l]);
        assert_int_equal(a->others[l], b->others[l]);
    }
    for (uint32_t d = 0; d <= DRAFT_DEPTHS; d++)
        assert_memory_equal(&a->depth[d], &b->depth[d], sizeof a->depth[d]);
    assert_int_equal(a->calibration.all, b->calibration.all);
    assert_memory_equal(a->calibration.n, b->calibration.n, sizeof a->calibration.n);
    assert_memory_equal(a->calibration.right, b->calibration.right, sizeof a->calibration.right);
    assert_number_equal(calibration_error(&a->calibration), calibration_error(&b->calibration));
}

static void
decode(struct fixture *f, struct decoder *d, int rounds)
{
    while (rounds-- > 0) {
        decode_round(d);
        for (size_t i = f->stream.n; i-- > 0 && f->stream.events[i].round == f->stream.round;)
            if (f->stream.events[i].type == EVENT_TOKEN) /* confidences differ */
                f->stream.events[i].token.confidence = (float)stream_below(&f->stream, 1001) / 1000;
    }
}

static void
drafts_are_counted(struct fixture *f, bool trees)
{
    struct decoder d = {.trees = trees};
    struct draft_counts slow;
    f->info.ctx = 1u << 20;
    decode_begin(&d, &f->stream, &f->info, 5);
    decode(f, &d, 150);
    stream_control(&f->stream, "policy", "specbound");
    stream_control(&f->stream, "tau", "0.25");
    const uint32_t turned = f->stream.round + 1;
    decode(f, &d, 120);
    seen(f);
    assert_true(draft_counts_open(&slow, FAKE_LAYERS));
    count_stream(&f->stream, f->stream.run, 1, &slow);
    assert_greater(slow.steps, 500);
    assert_same_counts(&scope_run_aggregates(f->scope)->drafts, &slow);
    assert_int_equal(scope_run_aggregates(f->scope)->rounds, 270);
    draft_counts_reset(&slow);
    count_stream(&f->stream, f->stream.run, turned, &slow);
    assert_same_counts(&scope_segment_aggregates(f->scope)->drafts, &slow);
    assert_int_equal(scope_segment_aggregates(f->scope)->rounds, 120);
    /* The same rounds, requested by number. */
    struct aggregates asked;
    assert_true(aggregates_open(&asked, FAKE_LAYERS));
    scope_aggregate(f->scope, turned, UINT32_MAX, &asked);
    assert_same_counts(&asked.drafts, &slow);
    scope_aggregate(f->scope, 1, f->stream.round, &asked);
    assert_same_counts(&asked.drafts, &scope_run_aggregates(f->scope)->drafts);
    assert_number_equal(asked.low, 0.6f);
    assert_number_equal(asked.high, 0.6f);
    aggregates_close(&asked);
    draft_counts_close(&slow);
    /* The counts of a new run begin at 0. */
    decode_begin(&d, &f->stream, &f->info, 5);
    assert_int_equal(scope_run_aggregates(seen(f))->drafts.steps, 0);
    assert_int_equal(scope_run_aggregates(f->scope)->rounds, 0);
}

SCOPE_TEST(chains_are_counted)
{
    drafts_are_counted(*state, false);
}

SCOPE_TEST(trees_count_a_step_a_depth)
{
    drafts_are_counted(*state, true);
}

/* Positions 4, 5, 6: the logit lens and the trained head of layer 2 are alternately right, wrong and unsure. */
static void
say_heads(struct fixture *f, uint32_t pos, bool both, float lens, float trained)
{
    f->stream.round = pos - 3;
    say_token(&f->stream, SOURCE_BONUS, pos, 40);
    struct event *e = say_layer(&f->stream, pos, 2, 41, lens);
    e->layer.probed_by = PROBED_SCOPE;
    if (both) {
        e = say_layer(&f->stream, pos, 2, 42, trained);
        e->layer.probed_by = PROBED_SCOPE;
        e->layer.head = 1;
    }
    say_layer(&f->stream, pos, FAKE_LAYERS, 40, 0.9f)->layer.probed_by = PROBED_SCOPE;
    say_round(&f->stream, 0, 0, 1);
}

SCOPE_TEST(spurious_cells_are_counted_where_both_heads_were_asked)
{
    struct fixture *f = *state;
    stream_control(&f->stream, "head", "lens");
    say_heads(f, 4, true, 0.7f, 0.2f);
    say_heads(f, 5, true, 0.65f, 0.8f);
    say_heads(f, 6, false, 0.9f, 0);
    const struct aggregates *a = scope_run_aggregates(seen(f));
    assert_int_equal(a->asked[2], 2);
    assert_int_equal(a->spurious[0][2], 2);
    assert_int_equal(a->spurious[1][2], 1);
    assert_int_equal(a->asked[1], 0);
    assert_int_equal(a->asked[FAKE_LAYERS], 0);
}

SCOPE_TEST(with_the_lens_alone_all_positions_count)
{
    struct fixture *f = *state;
    say_heads(f, 4, false, 0.7f, 0);
    say_heads(f, 5, false, 0.59f, 0); /* below the threshold */
    say_heads(f, 6, false, 0.9f, 0);
    const struct aggregates *a = scope_run_aggregates(seen(f));
    assert_int_equal(a->asked[2], 3);
    assert_int_equal(a->spurious[0][2], 2);
    assert_int_equal(a->spurious[1][2], 0);
    struct aggregates one;
    assert_true(aggregates_open(&one, FAKE_LAYERS));
    scope_aggregate(f->scope, 2, 2, &one);
    assert_int_equal(one.asked[2], 1);
    assert_int_equal(one.spurious[0][2], 0);
    aggregates_close(&one);
}

TEST(a_draft_without_its_parent_is_passed_over)
{
    struct draft_step out[4];
    const struct step_draft drafts[4] = {{0, 1, 3, 0.5f, 1}, {2, 3, 1, 0.5f, 1}, {1, 4, 2, 0.25f, 0}, {9, 4, 2, 1, 1}};
    assert_int_equal(draft_steps(drafts, 4, out), 2);
    assert_int_equal(out[1].depth, 2);
    assert_int_equal(out[1].exit_layer, 2);
    assert_int_equal(out[1].accepted, 0);
    assert_true(out[1].tried);
}
