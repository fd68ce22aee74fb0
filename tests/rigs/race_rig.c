#include "tests/rigs/race_rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "policies/registry.h"
#include "tests/rigs/test.h"

#define SESSION_TOKENS 160 /* tokens that the session generates if no other run is requested */

static bool
declare_length(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)model, (void)sampling, (void)err;
    return policy_number(p, "k", "K", 1, 16, 1, 5, "tokens drafted a round");
}

static bool
forecast_sd(const struct layer_record *record, const double *values, struct tally *out)
{
    const double speed = race_rig_speed("sd", values[0]);
    *out = (struct tally){.rounds = 100, .emitted = 100, .layers = 100 * record->layers / speed, .heads = 100 / speed};
    return true;
}

static bool
forecast_ngram(const struct layer_record *record, const double *values, struct tally *out)
{
    const double speed = race_rig_speed("ngram", values[0]);
    *out = (struct tally){.rounds = 100, .emitted = 100, .layers = 100 * record->layers / speed, .heads = 100 / speed};
    return true;
}

static struct policy_ops simulated[] = {
    {.name = "ar", .title = "plain", .paper = ""},
    {.name = "sd",
     .title = "draft",
     .paper = "",
     .open = declare_length,
     .length = "k",
     .needs = NEEDS(AUX_DRAFT),
     .what_if = forecast_sd},
    {.name = "ngram", .title = "text", .paper = "", .open = declare_length, .length = "k", .what_if = forecast_ngram},
    {.name = "swift", .title = "layers", .paper = ""}};
#define POLICIES (sizeof simulated / sizeof *simulated)
static const struct policy_ops *const registry[] = {&simulated[0], &simulated[1], &simulated[2], &simulated[3], NULL};

double
race_rig_speed(const char *policy, double k)
{
    if (strcmp(policy, "sd") == 0)
        return 1.6 - 0.03 * (k - 4) * (k - 4);
    if (strcmp(policy, "ngram") == 0)
        return 1.25 - 0.02 * fabs(k - 6);
    return strcmp(policy, "swift") == 0 ? 0.7 : 1;
}

void
race_rig_open(struct simulated_race *r)
{
    static const char *const categories[] = {"chat", "lists", "summaries"};
    const struct model_info model = {.layers = 8, .width = 16, .vocab = 100, .rho = 1};
    const struct sampling greedy = {.top_p = 1};
    struct err err = {0};
    *r = (struct simulated_race){.token_s = 0.01, .run_s = 0.05, .noise = 0.02, .serves = "ar"};
    r->info = (struct run_info){.layers = 8, .rho = 1, .vocab = 100, .tokens = SESSION_TOKENS, .n_policies = POLICIES};
    snprintf(r->info.model_path, sizeof r->info.model_path, "/models/fables.gguf");
    r->info.policies = calloc(POLICIES, sizeof *r->info.policies);
    assert_non_null(r->info.policies);
    for (size_t i = 0; i < POLICIES; i++) {
        struct policy p;
        memcpy(simulated[i].command, policy_named(policy_registry, simulated[i].name)->command,
               sizeof simulated[i].command);
        assert_ok(policy_open(&p, &simulated[i], &model, &greedy, &err), err);
        r->info.policies[i] = p.info;
        policy_close(&p);
    }
    for (uint32_t i = 0; i < RACE_RIG_PROMPTS; i++) {
        snprintf(r->texts[i], sizeof r->texts[i], "prompt %u", i);
        r->prompts[i] = (struct race_prompt){r->texts[i], categories[i % 3]};
    }
    assert_ok(tuner_open(&r->tuner, &r->info, &err), err);
}

void
race_rig_close(struct simulated_race *r)
{
    tuner_close(r->tuner);
    free(r->info.policies);
}

struct tune_request
race_rig_request(const struct simulated_race *r, double time_s)
{
    return (struct tune_request){.registry = registry,
                                 .prompts = r->prompts,
                                 .n_prompts = RACE_RIG_PROMPTS,
                                 .time_s = time_s,
                                 .tokens = TUNE_TOKENS,
                                 .seed = 1,
                                 .start_s = r->start_s,
                                 .sampling = {.top_p = 1}};
}

/* ---- the owner ---- */

static void
log_request(struct simulated_race *r, char what)
{
    const size_t n = strlen(r->log);
    if (n + 1 < sizeof r->log)
        r->log[n] = what;
}

/* Returns the time of the start if the setting differs from that of the running server. */
static double
start_server(struct simulated_race *r)
{
    if (strcmp(r->serves, r->policy) == 0 && fabs(r->serves_k - r->k) < 0.5)
        return 0;
    snprintf(r->serves, sizeof r->serves, "%s", r->policy);
    r->serves_k = r->k;
    r->starts++;
    return r->start_s;
}

static bool
take_draft(void *user, uint32_t draft, struct err *err)
{
    (void)err;
    log_request(user, (char)('0' + draft));
    return true;
}

static bool
take(void *user, enum control_kind kind, const char *name, const char *text, struct err *err)
{
    struct simulated_race *r = user;
    (void)err;
    switch (kind) {
    case CONTROL_POLICY:
        snprintf(r->policy, sizeof r->policy, "%s", text);
        r->k = 0;
        break;
    case CONTROL_KNOB:
        assert_string_equal(name, "k");
        r->k = strtod(text, NULL);
        break;
    case CONTROL_PROMPT:
        r->prompt = 0;
        while (strcmp(r->texts[r->prompt], text) != 0)
            r->prompt++;
        r->runs++;
        log_request(r, 'r');
        break;
    case CONTROL_PROBE:
        snprintf(r->probe, sizeof r->probe, "%s", text);
        log_request(r, text[0]);
        break;
    default:
        assert_int_equal(kind, CONTROL_COSTS);
        r->costs++;
        log_request(r, 'c');
    }
    return true;
}

static bool
give_record(void *user, struct layer_record *record)
{
    const struct simulated_race *r = user;
    record->n = 100;
    return r->forecasts;
}

struct run_host
race_rig_host(struct simulated_race *r)
{
    return (struct run_host){.user = r, .post = take, .record = give_record, .draft = take_draft};
}

/* ---- events ---- */

static void
emit_control(struct simulated_race *r, enum recorded kind, const char *text, double s)
{
    tuner_event(r->tuner, &(struct event){.type = EVENT_CONTROL,
                                          .t_us = (uint64_t)(s * 1e6),
                                          .control = {.kind = kind, .old_text = "", .new_text = text}});
}

static void
emit_token(struct simulated_race *r, uint32_t at, enum token_source source, double s)
{
    const bool other = r->differs != NULL && strcmp(r->policy, r->differs) == 0 && at == 7;
    tuner_event(
        r->tuner,
        &(struct event){.type = EVENT_TOKEN,
                        .t_us = (uint64_t)(s * 1e6),
                        .token = {.token = (token_t)(r->prompt + at + other), .source = source, .candidate = -1}});
}

/* Returns a random number of mean 0 and standard deviation 1. */
static double
deviation(struct simulated_race *r)
{
    return ((double)(splitmix64(&r->random) >> 11) * 0x1p-53 - 0.5) * 3.4641016151377544;
}

/* Emits the requested run: rounds of one token, or of up to four that accept the first two of four drafts. */
static void
emit_run(struct simulated_race *r)
{
    const bool ar = strcmp(r->policy, "ar") == 0;
    const bool changes = r->tuner->phase == TUNE_HELD_OUT && r->held_out[0] > 0 && strcmp(r->policy, "sd") == 0;
    const double speed = changes ? r->held_out[r->k != 4] : race_rig_speed(r->policy, r->k);
    const double noise = changes && r->k == 4 && r->held_out_noise > 0 ? r->held_out_noise : r->noise;
    const double token_s = r->token_s / speed * exp(noise * deviation(r));
    const uint32_t tokens = r->text_tokens > 0 ? r->text_tokens : SESSION_TOKENS, step = ar ? 1 : 3;
    double s = start_server(r) + r->run_s;
    emit_control(r, RECORDED_RUN, "prompt", 0);
    emit_token(r, 0, SOURCE_PREFILL, s);
    if (r->fails != NULL && strcmp(r->policy, r->fails) == 0) {
        emit_control(r, RECORDED_END, "error: draft: out of memory", s);
        return;
    }
    for (uint32_t at = 1, round = 1; at < tokens; round++) {
        const uint32_t n = at + step > tokens ? tokens - at : step, us = (uint32_t)(token_s * n * 1e6);
        for (uint32_t i = 0; i < n; i++)
            emit_token(r, at + i, SOURCE_BONUS, s);
        s += token_s * n;
        at += n;
        tuner_event(r->tuner, &(struct event){.type = EVENT_ROUND,
                                              .round = round,
                                              .t_us = (uint64_t)(s * 1e6),
                                              .round_end = {.draft_us = ar ? 0 : us / 2,
                                                            .verify_us = ar ? us : us - us / 2,
                                                            .drafted = ar ? 0 : 4,
                                                            .verified = ar ? 0 : 4,
                                                            .accepted = n - 1,
                                                            .emitted = n}});
    }
    emit_control(r, RECORDED_END, "tokens", s);
}

bool
race_rig_run(struct simulated_race *r, uint32_t n, struct err *err)
{
    const struct run_host host = race_rig_host(r);
    for (uint32_t i = 0; i < n && tuner_running(r->tuner); i++) {
        if (!tuner_next(r->tuner, &host, err))
            return false;
        if (tuner_running(r->tuner))
            emit_run(r);
    }
    return true;
}
