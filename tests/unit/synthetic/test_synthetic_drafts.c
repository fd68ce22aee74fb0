/* The purpose of synthetic models: drafts from the exit are right as often as requested, and the text never loops. */
#include <math.h>

#include "policies/registry.h"
#include "tests/rigs/session_rig.h"
#include "tests/rigs/test.h"

static void
generate(const char *text, const char *exit_layer, uint32_t tokens, struct session_rig_result *result)
{
    struct engine *engine;
    struct err err = {0};
    const struct engine_options options = {
        .model_path = text, .synth = true, .backend = "cpu", .backend_options = {.threads = 1, .gpu = -1}};
    if (!engine_open(&engine, &options, NULL, NULL, &err))
        fail_msg("%s: %s", text, err.text);
    struct knob_setting set[1] = {{.name = "exit_layer"}};
    snprintf(set[0].text, sizeof set[0].text, "%s", exit_layer);
    const struct session_options o = {.policies = policy_registry,
                                      .policy = "layerskip",
                                      .prompt = session_prompts[0],
                                      .prompt_len = strlen(session_prompts[0]),
                                      .sampling = {.top_p = 1},
                                      .seed = 1,
                                      .tokens = tokens,
                                      .probe = PROBE_OFF,
                                      .set = set,
                                      .n_set = 1};
    if (!session_rig_generate(engine, &o, NULL, NULL, result, &err))
        fail_msg("%s: %s", text, err.text);
    assert_string_equal(result->wrong, "");
    engine_close(engine);
}

TEST(drafts_from_the_exit_are_accepted_as_often_as_asked)
{
    static const struct {
        const char *text, *exit_layer;
        double acceptance;
    } cases[] = {
        {"tiny,2,0.6", "2", 0.6},
        {"tiny:f16,3,0.75", "3", 0.75},
        {"tiny,4,0.9", "4", 0.9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct session_rig_result r = {0};
        generate(cases[i].text, cases[i].exit_layer, 1400, &r);
        const double a = metrics_measures(&r.metrics, &r.metrics.total).per_token_acceptance;
        printf("# %s: %.3f\n", cases[i].text, a);
        if (!(fabs(a - cases[i].acceptance) < 0.05))
            fail_msg("%s: per-token acceptance is %.3f", cases[i].text, a);
        session_rig_free(&r);
    }
}

TEST(drafts_from_below_the_exit_are_worth_nothing)
{
    struct session_rig_result r = {0};
    generate("tiny,4,0.9", "3", 300, &r);
    assert_less(metrics_measures(&r.metrics, &r.metrics.total).per_token_acceptance, 0.1);
    session_rig_free(&r);
}

TEST(greedy_text_does_not_fall_into_loops)
{
    enum { N = 600, GRAM = 3 };
    struct session_rig_result r = {0};
    generate("tiny,2,0.75", "2", N, &r);
    assert_int_equal(r.n, N);
    size_t repeated = 0;
    for (size_t i = 0; i + GRAM <= r.n; i++)
        for (size_t j = 0; j < i; j++)
            if (memcmp(r.tokens + i, r.tokens + j, GRAM * sizeof *r.tokens) == 0) {
                repeated++;
                break;
            }
    if (repeated > N / 50)
        fail_msg("%zu of %d runs of %d tokens have been there before", repeated, N, GRAM);
    session_rig_free(&r);
}
