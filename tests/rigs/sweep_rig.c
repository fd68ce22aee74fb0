#include "tests/rigs/sweep_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
made_emit(struct made *m, const struct event *e)
{
    segments_event(m->f->segments, e);
    sweep_event(m->sweep, e);
}

void
made_emit_control(struct made *m, const char *name, const char *before, const char *after)
{
    struct event e = {
        .type = EVENT_CONTROL, .run = m->f->run, .round = m->f->round, .t_us = 2000 * (uint64_t)m->f->round};
    e.control = (struct control_event){.old_text = before, .new_text = after};
    control_event_set_name(&e.control, name);
    made_emit(m, &e);
}

bool
made_ask_knob(struct made *m, const char *name, const char *text, struct err *err)
{
    char before[32];
    double *value = strcmp(name, "tau") == 0 ? &m->tau : &m->d_max;
    if (m->refuse != NULL && strcmp(m->refuse, name) == 0)
        return err_set(err, ERR_USAGE, "%s can't be turned", name);
    snprintf(before, sizeof before, "%.9g", *value);
    *value = strtod(text, NULL);
    if (!m->silent)
        made_emit_control(m, name, before, text);
    return true;
}

void
made_ask_run(struct made *m, const char *prompt)
{
    snprintf(m->run, sizeof m->run, "%s", prompt != NULL ? "prompt" : "restart");
    if (prompt != NULL)
        snprintf(m->prompt, sizeof m->prompt, "%s", prompt);
    m->asked++;
}

static bool
made_ask(void *user, enum control_kind kind, const char *name, const char *text, struct err *err)
{
    struct made *m = user;
    if (kind == CONTROL_KNOB)
        return made_ask_knob(m, name, text, err);
    if (kind == CONTROL_POLICY) {
        char before[16];
        memcpy(before, m->policy, sizeof before);
        snprintf(m->policy, sizeof m->policy, "%s", text);
        if (!m->silent)
            made_emit_control(m, "policy", before, text);
    } else {
        made_ask_run(m, text);
    }
    return true;
}

struct run_host
made_host_of(struct made *m)
{
    return (struct run_host){.user = m, .post = made_ask};
}

void
made_baseline(struct made *m, bool with)
{
    snprintf(m->f->info.policies[2].name, sizeof m->f->info.policies[2].name, with ? "ar" : "none");
}

/* Emits rounds whose tokens and times depend only on knobs, prompt and round. */
void
made_emit_round(struct made *m, uint32_t sequences)
{
    const bool ar = strcmp(m->policy, "ar") == 0;
    const uint32_t round = ++m->f->round, deep = ar || m->alike ? 0 : (uint32_t)m->d_max,
                   wide = ar || m->alike ? 0 : (uint32_t)(m->tau * 20 + 0.5);
    for (uint32_t seq = 0; seq < sequences; seq++) {
        const uint32_t accepted = ar ? 0 : (round * 7 + deep * wide + seq + (uint32_t)strlen(m->prompt)) % 5;
        const struct event e = {.type = EVENT_ROUND,
                                .run = m->f->run,
                                .seq = seq,
                                .round = round,
                                .t_us = 2000 * (uint64_t)round,
                                .round_end = {.draft_us = (uint32_t)(m->slow * (500 + 10 * (round % 3) + 20 * deep)),
                                              .verify_us = (uint32_t)(m->slow * (900 + 5 * wide)),
                                              .drafted = ar ? 0 : 5,
                                              .verified = ar ? 0 : 5,
                                              .accepted = accepted,
                                              .emitted = accepted + 1,
                                              .layers_loaded = 20 + (float)deep,
                                              .heads_loaded = 3}};
        made_emit(m, &e);
    }
}

/* Plays up to `rounds` rounds of the requested run. Returns true if it ended. */
bool
made_run(struct made *m, uint32_t rounds)
{
    char run[16];
    memcpy(run, m->run, sizeof run);
    m->run[0] = '\0';
    if (run[0] == '\0')
        return false;
    m->f->run++;
    m->f->round = 0;
    made_emit_control(m, "run", "", run);
    if (strcmp(run, "prompt") == 0)
        made_emit_control(m, "prompt", "", m->prompt);
    for (uint32_t i = 0; i < rounds && i < m->rounds; i++)
        made_emit_round(m, 1);
    if (rounds >= m->rounds)
        made_emit_control(m, "end", "", m->end);
    return rounds >= m->rounds;
}

void
made_next(struct made *m)
{
    const struct run_host host = made_host_of(m);
    struct err err = {0};
    assert_ok(sweep_next(m->sweep, &host, &err), err);
}

/* Plays n further runs, or all. */
void
made_go_on(struct made *m, uint32_t n)
{
    for (; n > 0 && sweep_running(m->sweep); n--) {
        made_next(m);
        made_run(m, UINT32_MAX);
    }
    made_next(m);
}

struct settings
made_settings(const struct made *m)
{
    const struct run_info *info = &m->f->info;
    struct settings now;
    settings_begin(&now, info);
    now.policy = (uint32_t)(run_info_policy(info, m->policy[0] != '\0' ? m->policy : info->policy) - info->policies);
    const struct policy_info *policy = &info->policies[now.policy];
    for (uint32_t k = 0; k < policy->n_knobs; k++)
        now.value[now.policy][k] = strcmp(policy->knobs[k].name, "tau") == 0     ? m->tau
                                   : strcmp(policy->knobs[k].name, "d_max") == 0 ? m->d_max
                                                                                 : now.value[now.policy][k];
    return now;
}

void
made_sweep(struct made *m, const char *grid, char *const *prompts, size_t n)
{
    struct err err = {0};
    const struct settings now = made_settings(m);
    const struct segments *all = m->f->segments;
    assert_ok(sweep_begin(m->sweep, grid, prompts, n, &now, segments_prompt(all, segments_now(all)), &err), err);
}

void
made_session(struct made *m, struct fixture *f)
{
    struct err err = {0};
    *m = (struct made){.f = f, .tau = 0.55, .d_max = 5, .rounds = 6, .slow = 1, .end = "tokens"};
    assert_ok(sweep_open(&m->sweep, &f->info, &err), err);
    made_baseline(m, false);
    made_emit_control(m, "run", "", "start");
    made_emit_round(m, 1);
}
