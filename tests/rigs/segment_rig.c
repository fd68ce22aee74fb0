#include "tests/rigs/segment_rig.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

int
segments_set_up(void **state)
{
    struct fixture *f = *state = calloc(1, sizeof *f);
    assert_non_null(f);
    f->info = (struct run_info){.layers = 16, .rho = 0.5, .n_policies = 3, .policy = "specbound"};
    f->info.policies = calloc(3, sizeof *f->info.policies);
    assert_non_null(f->info.policies);
    struct policy p = {0};
    snprintf(p.info.name, sizeof p.info.name, "specbound");
    assert_true(policy_number(&p, "tau", "τ", 0, 1, 0.05, 0.55, "threshold"));
    assert_true(policy_number(&p, "d_max", "", 1, 16, 1, 5, "deepest exit"));
    f->info.policies[0] = p.info;
    p = (struct policy){0};
    snprintf(p.info.name, sizeof p.info.name, "layerskip");
    assert_true(policy_number(&p, "exit_layer", "E", 1, 15, 1, 4, "layer"));
    assert_true(policy_number(&p, "gamma", "γ", 1, 16, 1, 5, "drafts"));
    f->info.policies[1] = p.info;
    snprintf(f->info.policies[2].name, sizeof f->info.policies[2].name, "ar");
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            f->knob[i][k] = f->info.policies[i].knobs[k].def;
    struct err err = {0};
    assert_ok(segments_open(&f->segments, &f->info, &err), err);
    f->random = 1;
    return 0;
}

int
segments_tear_down(void **state)
{
    struct fixture *f = *state;
    segments_close(f->segments);
    free(f->info.policies);
    free(f);
    return 0;
}

uint32_t
made_below(struct fixture *f, uint32_t n)
{
    return (uint32_t)(splitmix64_uniform(&f->random) * n);
}

void
made_control(struct fixture *f, const char *name, const char *before, const char *after)
{
    struct event e = {.type = EVENT_CONTROL, .run = f->run, .round = f->round};
    e.control = (struct control_event){.old_text = before, .new_text = after, .applied_round = f->round + 1};
    control_event_set_name(&e.control, name);
    segments_event(f->segments, &e);
}

void
made_begin(struct fixture *f, const char *cause)
{
    f->run++;
    f->round = 0;
    made_control(f, "run", "", cause);
    made_control(f, "head", "", f->trained ? "trained" : "lens");
}

void
made_change(struct fixture *f, int k, double value)
{
    const struct knob *knob = &f->info.policies[f->policy].knobs[k];
    char before[32], after[32];
    assert_true(knob_check(knob, value, &value, NULL));
    knob_format(knob, f->knob[f->policy][k], before, sizeof before);
    knob_format(knob, value, after, sizeof after);
    made_control(f, knob->name, before, after);
    f->knob[f->policy][k] = value;
}

void
made_choose(struct fixture *f, uint32_t policy)
{
    made_control(f, "policy", f->info.policies[f->policy].name, f->info.policies[policy].name);
    f->policy = policy;
}

void
made_look_by(struct fixture *f, bool trained)
{
    made_control(f, "head", f->trained ? "trained" : "lens", trained ? "trained" : "lens");
    f->trained = trained;
}

/* Adds a round of several sequences: a line for each, with its share of the times. */
void
made_play(struct fixture *f, uint32_t sequences)
{
    f->round++;
    const uint32_t draft = 400 + made_below(f, 300), verify = 800 + made_below(f, 500);
    for (uint32_t seq = 0; seq < sequences && f->n_lines < LINES; seq++) {
        struct line *l = &f->line[f->n_lines++];
        const uint32_t verified = made_below(f, 7), accepted = made_below(f, verified + 1);
        *l = (struct line){.run = f->run, .round = f->round, .policy = f->policy, .trained = f->trained};
        memcpy(l->knob, f->knob[f->policy], sizeof l->knob);
        l->end = (struct round_event){.draft_us = draft / sequences,
                                      .verify_us = verify / sequences,
                                      .drafted = verified,
                                      .verified = verified,
                                      .accepted = accepted,
                                      .emitted = accepted + 1,
                                      .layers_loaded = 16 + (float)made_below(f, 20),
                                      .heads_loaded = 1 + (float)made_below(f, 9)};
        const struct event e = {
            .type = EVENT_ROUND, .run = f->run, .seq = seq, .round = f->round, .t_us = 10000, .round_end = l->end};
        segments_event(f->segments, &e);
    }
}
