/* The target keeps the features of only a few rows for feature drafters (context_features_need()). Drafts, their
 * confidences and the text are, bit for bit, those of a session that keeps the features of all rows. The runs switch
 * drafters on and off, fork the target's rows, rewind the text for baselines, alternate two settings and run
 * batches. */
#include <stdlib.h>
#include <string.h>

#include "engine/session/session_internal.h"
#include "policies/chain.h"
#include "tests/rigs/context_inside.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/session_rig.h"
#include "tests/rigs/test.h"

enum { ITEMS = 1 << 14, NARROW = 24 };

extern const struct policy_ops policy_dflash;

static uint64_t seed;
static struct live *now; /* the session of the policy below */

struct seen {
    struct {
        uint32_t seq;
        token_t token;
        int32_t parent;
        float confidence; /* a draft's confidence, or a round's number of tokens */
    } item[ITEMS];
    size_t n;
    uint32_t drafts, most; /* rows with features at the beginning of a round */
};
static struct seen *record;

/* Commits a row to a fork of the sequence, and drops it. */
static bool
try_fork(const struct round *r)
{
    const uint32_t n = context_length(r->ctx, r->seq), len = n - n % 3;
    const seq_t fork = context_fork(r->ctx, r->seq, len);
    const slot_t row = fork != SEQ_NONE ? context_append(r->ctx, fork, SLOT_NONE, r->tokens[len]) : SLOT_NONE;
    const bool ok =
        row != SLOT_NONE && context_advance(r->ctx, &row, 1, r->layers, NULL) && context_keep(r->ctx, fork, &row, 1);
    if (fork != SEQ_NONE)
        context_drop(r->ctx, fork);
    return ok;
}

/* In some rounds one of the drafters drafts, in others none does. */
static bool
changing_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    uint64_t random = seed + r[0]->number / 12;
    const uint32_t kept = context_features_kept(r[0]->ctx), phase = (uint32_t)(splitmix64(&random) % 5);
    uint32_t rows = 0;
    for (uint32_t i = 0; i < session_from(now)->n_sequences; i++)
        rows += context_length(session_from(now)->ctx, session_from(now)->sequences[i].seq);
    assert_at_most(kept, rows); /* no rows of forks and rewinds are left */
    record->most = kept > record->most ? kept : record->most;
    if (r[0]->number % 31 == 30) {
        struct err err;
        assert_ok(now->ops->post(now, &(struct control){.kind = CONTROL_BASELINE}, &err), err);
    }
    if (phase < 2)
        return chain_draft_aux(r, n, phase == 0 ? AUX_EAGLE : AUX_MTP, 3);
    if (phase == 2)
        return policy_dflash.draft(p, r, n);
    return phase == 3 || try_fork(r[0]);
}

static bool
changing_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    return policy_dflash.open(p, model, sampling, err);
}

static const struct policy_ops changing = {
    .name = "changing", .title = "", .paper = "", .open = changing_open, .draft = changing_draft};
static const struct policy_ops *const registry[] = {&changing, NULL};

static void
note(struct seen *s, const struct event *e)
{
    assert_less(s->n, ITEMS);
    if (e->type == EVENT_TOKEN && e->token.source == SOURCE_DRAFT) {
        s->item[s->n].parent = e->token.parent;
        s->item[s->n].confidence = e->token.confidence;
        s->item[s->n].seq = e->seq;
        s->item[s->n++].token = e->token.token;
        s->drafts++;
    } else if (e->type == EVENT_ROUND) {
        s->item[s->n].seq = e->seq;
        s->item[s->n].parent = (int32_t)e->round_end.accepted;
        s->item[s->n].confidence = (float)e->round_end.emitted;
        s->item[s->n++].token = (token_t)e->round_end.drafted;
    }
}

static void
run(struct engine *e, struct session_options *o, uint32_t window, struct seen *out)
{
    struct err err;
    *out = (struct seen){.n = 0};
    record = out;
    assert_ok(session_open(&now, e, o, &err), err);
    session_from(now)->features_window = window;
    struct event_reader *reader = event_reader_open(now->ops->log(now));
    session_generate(session_from(now));
    for (const struct event *event; (event = event_reader_next(reader)) != NULL;)
        note(out, event);
    if (now->ops->failed(now, &err))
        fail_msg("%s", err.text);
    event_reader_close(reader);
    live_close(now);
}

static void
compare(const char *model, uint32_t tokens, uint32_t batch, const char *versus)
{
    static struct seen all, few;
    static const struct prompt_text prompts[] = {{"the hen", 7}, {"a fox and a crow", 16}, {"one", 3}};
    struct engine *e;
    struct err err = {.kind = ERR_NONE};
    const struct engine_options options = {.model_path = model,
                                           .backend = "cpu",
                                           .backend_options = {.threads = 1, .gpu = -1},
                                           .wanted = NEEDS(AUX_MTP),
                                           .aux = {[AUX_DRAFT] = "self:1"}};
    assert_ok(session_rig_engine_open(&e, &options, &err), err);
    struct session_options o = {.policies = registry,
                                .policy = "changing",
                                .prompt =
                                    "Once upon a time there was a fox who saw a crow with a piece of cheese in a tree.",
                                .versus = versus,
                                .batch = batch,
                                .prompts = batch > 0 ? prompts : NULL,
                                .n_prompts = batch > 0 ? 3 : 0,
                                .sampling = {.top_p = 1},
                                .tokens = tokens,
                                .ignore_eos = true};
    o.prompt_len = strlen(o.prompt);
    run(e, &o, UINT32_MAX, &all);
    run(e, &o, NARROW, &few);
    print_message("%s: %u drafts, %u rows of features, or %u at most\n", model, all.drafts, all.most, few.most);
    assert_greater(all.drafts, tokens / 4);
    assert_int_equal(few.n, all.n);
    for (size_t i = 0; i < all.n; i++)
        if (memcmp(&all.item[i], &few.item[i], sizeof *all.item) != 0)
            fail_msg("%s: event %zu differs", model, i);
    const uint32_t sequences = batch > 0 ? 3 : versus != NULL ? 2 : 1;
    assert_at_most(few.most, sequences * (NARROW + 2));
    assert_at_least(all.most, tokens); /* otherwise the test proves little */
    engine_close(e);
}

TEST(drafts_are_those_of_a_session_that_keeps_all_features)
{
    compare("tests/golden/eagle/targets/llama", 160, 0, NULL);
    compare("tests/golden/eagle/targets/qwen3_5", 160, 0, NULL);
    compare("models/fables-q8_0.gguf", 300, 0, NULL);
}

TEST(drafts_in_turns_and_batches_are_those_of_a_session_that_keeps_all_features)
{
    compare("tests/golden/eagle/targets/llama", 120, 0, "changing");
    compare("tests/golden/eagle/targets/llama", 120, 3, NULL);
    compare("tests/golden/eagle/targets/qwen3_5", 120, 3, NULL);
}

TEST_SEED(seed, 1);
