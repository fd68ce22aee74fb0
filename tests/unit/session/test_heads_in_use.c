/* Trained heads in a session: it finds them next to the model, policies whose papers train heads use them, a run can
 * switch to them, and every event names its head. */
#include <unistd.h>

#include "policies/registry.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/heads_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

enum { LAYERS = 6 };

static uint64_t seed = 11;

struct files {
    char model[128], other[128], heads[160];
};

static void
make_files(struct files *f, enum head_kind kind)
{
    struct err err = {.kind = ERR_NONE};
    struct tinymodel tiny = {.seed = seed, .n_layers = LAYERS, .calm_after = 2, .calm = 0.15f, .sharpness = 8};
    assert_ok(tinymodel_write_temp(f->model, sizeof f->model, &tiny, &err), err);
    tiny.seed++;
    if (!tinymodel_write_temp(f->other, sizeof f->other, &tiny, &err) ||
        !heads_rig_write_beside(f->model, kind, seed, f->heads, sizeof f->heads, &err))
        fail_msg("%s", err.text);
}

static void
remove_files(const struct files *f)
{
    unlink(f->model);
    unlink(f->other);
    unlink(f->heads);
}

static struct engine *
engine_with(const char *model, const char *heads)
{
    struct engine *e;
    struct err err = {.kind = ERR_NONE};
    const struct engine_options o = {
        .model_path = model, .heads = heads, .backend = "cpu", .backend_options = {.threads = 1, .gpu = -1}};
    assert_ok(engine_open(&e, &o, NULL, NULL, &err), err);
    return e;
}

/* What the events of a run contain about heads. */
struct heard {
    unsigned policy[2], scope[2], drafts[2]; /* predictions and drafts below the last layer, by head */
    unsigned last;                           /* predictions of the last layer by a trained head */
    char said[64];                           /* texts of head controls, each followed by a blank */
    uint32_t switch_at;                      /* the round after which trained heads are requested; 0: never */
};

/* Runs one round of a paused session, after round `switch_at` with a request for trained heads for sequence seq. The
 * session is paused then, so the request always takes effect in the next round. */
static void
step(struct live *s, const struct event *e, uint32_t switch_at, uint32_t seq)
{
    const struct control head = {.kind = CONTROL_HEAD, .text = "trained", .seq = seq};
    struct err err;
    if (!event_is_control(e, "state", "paused"))
        return;
    if (e->round == switch_at)
        assert_ok(s->ops->post(s, &head, &err), err);
    assert_ok(s->ops->post(s, &(struct control){.kind = CONTROL_STEP_ROUNDS, .n = 1}, &err), err);
}

static void
listen(void *user, struct live *s, const struct event *e)
{
    struct heard *h = user;
    if (e->type == EVENT_CONTROL && e->control.kind == RECORDED_HEAD) {
        const size_t n = strlen(h->said);
        snprintf(h->said + n, sizeof h->said - n, "%s ", e->control.new_text);
    }
    if (e->type == EVENT_LAYER && e->layer.layer == LAYERS)
        h->last += e->layer.head != 0;
    else if (e->type == EVENT_LAYER)
        (e->layer.probed_by == PROBED_POLICY ? h->policy : h->scope)[e->layer.head == 1]++;
    if (e->type == EVENT_TOKEN && e->token.source == SOURCE_DRAFT)
        h->drafts[e->token.head == 1]++;
    if (h->switch_at != 0)
        step(s, e, h->switch_at, 0);
}

static double
run(struct engine *e, const char *policy, enum head_mode mode, enum probe_mode probe, struct heard *h)
{
    static const char prompt[] = "Once upon a time";
    struct session_rig_result out;
    struct err err = {.kind = ERR_NONE};
    const struct session_options o = {.policies = policy_registry,
                                      .policy = policy,
                                      .prompt = prompt,
                                      .prompt_len = strlen(prompt),
                                      .sampling = {.top_p = 1},
                                      .tokens = 60,
                                      .ignore_eos = true,
                                      .head = mode,
                                      .probe = probe,
                                      .paused = h->switch_at != 0};
    assert_ok(session_rig_generate(e, &o, listen, h, &out, &err), err);
    assert_string_equal(out.wrong, "");
    assert_int_equal(out.n, 60);
    const double heads = out.metrics.total.heads;
    session_rig_free(&out);
    return heads;
}

TEST(heads_in_a_models_folder_are_used_by_policies_that_train_heads)
{
    struct files f;
    make_files(&f, HEAD_AFFINE);
    struct engine *e = engine_with(f.model, NULL);
    assert_int_equal(e->heads, HEAD_AFFINE);
    struct heard bound = {0}, skip = {0}, lens = {0}, trained = {0};
    run(e, "specbound", HEADS_POLICY, PROBE_POLICY, &bound);
    run(e, "layerskip", HEADS_POLICY, PROBE_POLICY, &skip);
    run(e, "specbound", HEADS_LENS, PROBE_POLICY, &lens);
    run(e, "layerskip", HEADS_TRAINED, PROBE_POLICY, &trained);
    assert_string_equal(bound.said, "trained ");
    assert_greater(bound.policy[1], 0);
    assert_int_equal(bound.policy[0], 0);
    assert_int_equal(bound.drafts[0], 0);
    assert_int_equal(bound.last, 0);
    assert_string_equal(skip.said, "lens ");
    assert_greater(skip.policy[0], 0);
    assert_int_equal(skip.policy[1], 0);
    assert_greater(skip.drafts[0], 0);
    assert_int_equal(skip.drafts[1], 0);
    assert_greater(lens.policy[0], 0);
    assert_int_equal(lens.policy[1], 0);
    assert_int_equal(lens.drafts[1], 0);
    assert_greater(trained.policy[1], 0);
    assert_int_equal(trained.policy[0], 0);
    assert_greater(trained.drafts[1], 0);
    assert_int_equal(trained.drafts[0], 0);
    engine_close(e);

    e = engine_with(f.model, "none");
    assert_int_equal(e->heads, HEAD_LENS);
    struct heard none = {0};
    run(e, "specbound", HEADS_POLICY, PROBE_ALL, &none);
    assert_string_equal(none.said, "");
    assert_int_equal(none.policy[1], 0);
    assert_int_equal(none.scope[1], 0);
    assert_greater(none.scope[0], 0);
    engine_close(e);
    remove_files(&f);
}

TEST(heads_are_switched_during_a_run_and_both_are_compared)
{
    struct files f;
    make_files(&f, HEAD_FULL);
    struct engine *e = engine_with(f.model, NULL);
    struct heard h = {.switch_at = 4};
    run(e, "layerskip", HEADS_POLICY, PROBE_ALL, &h);
    assert_string_equal(h.said, "lens trained ");
    assert_greater(h.drafts[0], 0);
    assert_greater(h.drafts[1], 0);
    assert_greater(h.scope[0], 0);
    assert_greater(h.scope[1], 0);
    assert_int_equal(h.last, 0);
    struct heard still = {0};
    run(e, "layerskip", HEADS_POLICY, PROBE_ALL, &still); /* the scope also probes with the other head, less often */
    assert_greater(still.scope[1], 0);
    assert_less(still.scope[1], still.scope[0]);
    engine_close(e);
    remove_files(&f);
}

struct heard_of_two {
    struct heard of[2]; /* by sequence */
    uint32_t turned;    /* the first round with the requested head; 0: none yet */
    unsigned late[2];   /* the second sequence's drafts from that round on, by head */
};

static void
listen_to_two(void *user, struct live *s, const struct event *e)
{
    struct heard_of_two *h = user;
    assert_less(e->seq, 2);
    listen(&h->of[e->seq], s, e);
    if (h->turned > 0 && e->round >= h->turned && e->seq == 1 && e->type == EVENT_TOKEN &&
        e->token.source == SOURCE_DRAFT)
        h->late[e->token.head == 1]++;
    if (e->type == EVENT_CONTROL && e->control.kind == RECORDED_HEAD && e->control.old_text[0] != '\0')
        h->turned = e->control.applied_round;
    step(s, e, 10, 1);
}

TEST(each_of_two_settings_has_a_head_of_its_own)
{
    static const struct {
        const char *policy, *versus, *said[2], *told;
    } cases[] = {
        {"specbound", "layerskip", {"trained ", "lens trained "}, "layerskip"}, /* each policy with its paper's head */
        {"layerskip", "layerskip head=lens gamma=3", {"lens ", "lens trained "}, "layerskip gamma=3 head=lens"},
        {"specbound", "specbound head=lens", {"trained ", "lens trained "}, "specbound head=lens"}};
    struct files f;
    make_files(&f, HEAD_AFFINE);
    struct engine *e = engine_with(f.model, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct heard_of_two h = {.turned = 0};
        struct session_rig_result out;
        struct err err = {.kind = ERR_NONE};
        const struct session_options o = {.policies = policy_registry,
                                          .policy = cases[i].policy,
                                          .versus = cases[i].versus,
                                          .prompt = "Once upon a time",
                                          .prompt_len = 16,
                                          .sampling = {.top_p = 1},
                                          .tokens = 80,
                                          .ignore_eos = true,
                                          .probe = PROBE_ALL,
                                          .paused = true};
        assert_ok(session_rig_generate(e, &o, listen_to_two, &h, &out, &err), err);
        assert_string_equal(out.wrong, "");
        assert_string_equal(h.of[0].said, cases[i].said[0]);
        assert_string_equal(h.of[1].said, cases[i].said[1]);
        const int first = h.of[0].said[0] == 't';
        assert_greater(h.of[0].drafts[first], 0);
        assert_int_equal(h.of[0].drafts[!first], 0);
        assert_greater(h.of[0].policy[first], 0);
        assert_int_equal(h.of[0].policy[!first], 0);
        assert_greater(h.of[1].drafts[0], 0);
        assert_greater(h.turned, 0);
        assert_greater(h.late[1], 0);
        assert_int_equal(h.late[0], 0); /* only the second sequence changed its head */
        assert_memory_equal(out.sequences[0].tokens, out.sequences[1].tokens, 80 * sizeof(token_t));
        session_rig_free(&out);
    }
    engine_close(e);
    remove_files(&f);
}

/* An affine head's parameters are width / vocab of the LM head's: every probe loads that share more. */
TEST(loads_of_trained_heads_are_counted)
{
    struct files f;
    make_files(&f, HEAD_AFFINE);
    struct exit_heads *h;
    struct err err;
    struct engine *e = engine_with(f.model, "none");
    assert_ok(exit_heads_new(&h, HEAD_AFFINE, e->model, NULL, 0, &err),
              err); /* zeros: the same predictions as the lens */
    assert_ok(exit_heads_write(h, f.heads, &err), err);
    const double share = (double)h->width / h->vocab;
    exit_heads_free(h);
    struct heard heard = {0};
    const double lens = run(e, "layerskip", HEADS_POLICY, PROBE_OFF, &heard);
    engine_close(e);
    e = engine_with(f.model, f.heads);
    const double trained = run(e, "layerskip", HEADS_TRAINED, PROBE_OFF, &heard);
    engine_close(e);
    assert_greater(trained, lens);
    assert_less(trained, lens * (1 + share));
    remove_files(&f);
}

TEST(heads_of_another_model_are_refused_when_asked_for_and_passed_over_when_found)
{
    struct files f;
    make_files(&f, HEAD_AFFINE);
    struct engine *e;
    struct err err = {.kind = ERR_NONE};
    struct engine_options o = {
        .model_path = f.other, .heads = f.heads, .backend = "cpu", .backend_options = {.threads = 1, .gpu = -1}};
    assert_false(engine_open(&e, &o, NULL, NULL, &err));
    assert_contains(err.text, "trained for another file of ");
    char beside[160];
    snprintf(beside, sizeof beside, "%.*s.heads.safetensors", (int)(strlen(f.other) - strlen(".gguf")), f.other);
    assert_int_equal(rename(f.heads, beside), 0);
    o.heads = NULL;
    assert_ok(engine_open(&e, &o, NULL, NULL, &err), err);
    assert_int_equal(e->heads, HEAD_LENS);
    assert_contains(e->note, "without trained heads");
    struct live *s;
    const struct session_options want = {.policies = policy_registry,
                                         .policy = "specbound",
                                         .prompt = "a",
                                         .prompt_len = 1,
                                         .sampling = {.top_p = 1},
                                         .head = HEADS_TRAINED};
    assert_false(session_open(&s, e, &want, &err));
    assert_contains(err.text, "specscope train heads");
    engine_close(e);
    unlink(beside);
    remove_files(&f);
}

TEST_SEED(seed, seed);
