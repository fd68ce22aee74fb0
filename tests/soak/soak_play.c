/* Changes knobs while a session generates, and compares every token as soon as its round ends. */
#include <stdlib.h>
#include <string.h>

#include "engine/model/tokenizer/tokenizer.h"
#include "tests/rigs/knob_changes.h"
#include "tests/soak/soak.h"

#define FROM(random, list) (list)[soak_below(random, (uint32_t)(sizeof(list) / sizeof *(list)))]

static void
wrong(struct soak_play *p, struct live *s, const char *what)
{
    if (p->wrong[0] == '\0')
        snprintf(p->wrong, sizeof p->wrong, "%s", what);
    s->ops->post(s, &(struct control){.kind = CONTROL_QUIT}, NULL);
}

static bool
post(struct soak_play *p, struct live *s, struct control c)
{
    struct err err;
    if (s->ops->post(s, &c, &err))
        return true;
    wrong(p, s, err.text);
    return false;
}

/* ---- comparison ---- */

static void
compare(struct soak_play *p, struct live *s, uint32_t seq)
{
    const struct session_rig_sequence *got = &p->out->sequences[seq];
    const size_t prompt = p->batch > 0 ? seq % p->texts->n : p->prompt;
    char text[200];
    for (size_t i = p->compared[seq]; i < got->n && p->greedy && p->wrong[0] == '\0'; i++) {
        if (i < p->texts->n_greedy[prompt] && got->tokens[i] != p->texts->greedy[prompt][i]) {
            snprintf(text, sizeof text, "token %zu of sequence %u is %d, autoregressive decoding gives %d", i, seq,
                     (int)got->tokens[i], (int)p->texts->greedy[prompt][i]);
            wrong(p, s, text);
        }
        if (!p->ignore_eos && !p->extended && i + 1 < got->n && tokenizer_is_end(p->tokenizer, got->tokens[i]))
            wrong(p, s, "it went on behind an end of sequence");
        p->tokens += i < p->texts->n_greedy[prompt];
    }
    p->compared[seq] = got->n;
}

/* Checks that the text is complete for the reason of its end. */
static void
check_end(struct soak_play *p, struct live *s, uint32_t seq, const char *why)
{
    const struct session_rig_sequence *got = &p->out->sequences[seq];
    const bool tokens = strcmp(why, "tokens") == 0, eos = strcmp(why, "eos") == 0;
    char text[200];
    if (strncmp(why, "error", 5) == 0 || (tokens ? got->n != p->wanted : got->n > p->wanted) ||
        (eos && (p->ignore_eos || !tokenizer_is_end(p->tokenizer, got->tokens[got->n - 1])))) {
        snprintf(text, sizeof text, "%zu of %u tokens, and an end by \"%s\"", got->n, p->wanted, why);
        wrong(p, s, text);
    }
}

/* ---- changes of knobs ---- */

static uint32_t
usable_policy(const struct run_info *info, uint64_t *random)
{
    uint32_t i = soak_below(random, info->n_policies);
    while (info->policies[i].missing != 0)
        i = (i + 1) % info->n_policies;
    return i;
}

static void
turn_sampling(struct soak_play *p, struct live *s)
{
    struct control c = {.kind = CONTROL_KNOB};
    char text[16];
    const bool seed = soak_chance(&p->random, 50);
    snprintf(c.name, sizeof c.name, seed ? "seed" : "temperature");
    snprintf(text, sizeof text, seed ? "%u" : "0.%u", soak_below(&p->random, 100));
    c.text = text;
    post(p, s, c);
}

static void
turn_one(struct soak_play *p, struct live *s)
{
    const struct run_info *info = s->ops->info(s);
    const uint32_t seq = p->versus || p->next_versus ? soak_below(&p->random, 2) : 0;
    const uint32_t what = soak_below(&p->random, 100);
    struct control c = {.seq = seq};
    p->turns++;
    if (what < 60) {
        const struct policy_info *policy = &info->policies[p->policy[seq]];
        struct err err;
        if (policy->n_knobs > 0 && !knob_change(s, &policy->knobs[soak_below(&p->random, policy->n_knobs)],
                                                (int)soak_below(&p->random, 6), seq, &p->random, &err))
            wrong(p, s, err.text);
        return;
    }
    if (what < 70) {
        p->policy[seq] = usable_policy(info, &p->random);
        c.kind = CONTROL_POLICY;
        c.text = info->policies[p->policy[seq]].name;
    } else if (what < 78) {
        c.kind = CONTROL_HEAD;
        c.text = head_mode_names[soak_below(&p->random, info->exit_heads.path[0] != '\0' ? HEAD_MODES : HEADS_TRAINED)];
    } else if (what < 86) {
        c.kind = CONTROL_PROBE;
        static const char *const probes[] = {"off", "policy", "20%", "all"};
        c.text = probes[soak_below(&p->random, PROBE_MODES)];
    } else if (what < 91) {
        c.kind = CONTROL_BASELINE;
    } else {
        if (p->top_one)
            turn_sampling(p, s);
        return;
    }
    post(p, s, c);
}

static void
turn(struct soak_play *p, struct live *s)
{
    for (uint32_t n = soak_below(&p->random, 4); n > 0 && p->wrong[0] == '\0'; n--)
        turn_one(p, s);
}

/* ---- further runs ---- */

static void
step(struct soak_play *p, struct live *s)
{
    static const char *const until[] = {"reject", "spurious", "confidence 0.4", "text e"};
    const uint32_t what = soak_below(&p->random, 10);
    if (p->pace == SOAK_FREE)
        post(p, s, (struct control){.kind = CONTROL_RESUME});
    else if (what < 6)
        post(p, s, (struct control){.kind = CONTROL_STEP_ROUNDS, .n = 1 + soak_below(&p->random, 3)});
    else if (what < 8)
        post(p, s, (struct control){.kind = CONTROL_STEP_TOKEN});
    else
        post(p, s, (struct control){.kind = CONTROL_UNTIL, .text = FROM(&p->random, until)});
}

/* Requests a versus: policy and some knobs of the second sequence, as in "layerskip gamma=3 …". */
static void
ask_versus(struct soak_play *p, struct live *s)
{
    const struct run_info *info = s->ops->info(s);
    char text[200], value[32];
    if (p->next_versus) {
        p->next_versus = false;
        post(p, s, (struct control){.kind = CONTROL_VERSUS, .text = "off"});
        return;
    }
    p->next_versus = true;
    p->policy[1] = usable_policy(info, &p->random);
    const struct policy_info *policy = &info->policies[p->policy[1]];
    int n = snprintf(text, sizeof text, "%s", policy->name);
    for (uint32_t i = 0; i < policy->n_knobs && n < 150; i++)
        if (soak_chance(&p->random, 40)) {
            const struct knob *k = &policy->knobs[i];
            knob_format(k, session_rig_knob_value(k, (int)soak_below(&p->random, 6), &p->random), value, sizeof value);
            n += snprintf(text + n, sizeof text - (size_t)n, " %s=%s", k->name, value);
        }
    post(p, s, (struct control){.kind = CONTROL_VERSUS, .text = text});
}

static void
ask_new_run(struct soak_play *p, struct live *s)
{
    const uint32_t what = p->batch > 0 ? 0 : soak_below(&p->random, 3);
    p->coming = true;
    p->next_prompt = p->prompt;
    p->next_versus = p->versus;
    if (what == 0) {
        post(p, s, (struct control){.kind = CONTROL_RESTART});
    } else if (what == 1) {
        p->next_prompt = soak_below(&p->random, (uint32_t)p->texts->n);
        post(p, s, (struct control){.kind = CONTROL_PROMPT, .text = p->texts->prompt[p->next_prompt]});
    } else {
        ask_versus(p, s);
    }
}

static void
act_after_end(struct soak_play *p, struct live *s)
{
    if (p->actions == 0) {
        post(p, s, (struct control){.kind = CONTROL_QUIT});
        return;
    }
    p->actions--;
    turn(p, s);
    if (soak_chance(&p->random, 50)) {
        const uint32_t n = 1 + soak_below(&p->random, p->texts->tokens / 2);
        p->extended = true;
        p->wanted += n;
        post(p, s, (struct control){.kind = CONTROL_EXTEND, .n = n});
    } else {
        ask_new_run(p, s);
    }
    step(p, s);
}

static void
begin(struct soak_play *p)
{
    p->prompt = p->coming ? p->next_prompt : p->prompt;
    p->versus = p->coming ? p->next_versus : p->versus;
    p->coming = p->extended = false;
    p->wanted = p->texts->tokens;
    p->runs++;
    memset(p->compared, 0, sizeof p->compared);
}

static void
heard(struct soak_play *p, struct live *s, const struct event *e)
{
    const enum recorded kind = e->control.kind;
    const char *text = e->control.new_text;
    if (kind == RECORDED_RUN)
        begin(p);
    else if (kind == RECORDED_LOSSLESS && strncmp(text, "no:", 3) == 0)
        wrong(p, s, text);
    else if (kind == RECORDED_LEFT)
        check_end(p, s, e->seq, text);
    else if (kind == RECORDED_STATE && strcmp(text, "paused") == 0 && p->pace != SOAK_ALONE) {
        turn(p, s);
        if (p->pace == SOAK_STEPS && !p->coming && p->actions > 0 && soak_chance(&p->random, 2)) {
            p->actions--;
            ask_new_run(p, s); /* in the middle of a run */
        }
        step(p, s);
    } else if (kind == RECORDED_END) {
        for (uint32_t i = 0; i < (p->batch > 0 ? p->out->n_sequences : p->versus ? 2 : 1); i++)
            compare(p, s, i);
        if (p->batch == 0 && !p->versus)
            check_end(p, s, 0, text);
        if (p->pace != SOAK_ALONE && p->wrong[0] == '\0')
            act_after_end(p, s);
    }
}

void
soak_play_watch(void *user, struct live *s, const struct event *e)
{
    struct soak_play *p = user;
    if (p->out->wrong[0] != '\0')
        wrong(p, s, p->out->wrong);
    if (p->wrong[0] != '\0')
        return;
    if (e->type == EVENT_ROUND)
        compare(p, s, e->seq);
    if (e->type == EVENT_ROUND && p->pace == SOAK_FREE && soak_chance(&p->random, 30))
        turn(p, s);
    if (e->type == EVENT_CONTROL)
        heard(p, s, e);
}
