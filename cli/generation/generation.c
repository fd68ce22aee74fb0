/* Generates a prompt or a batch to the end without a screen, and describes the outcome as JSON. */
#include "cli/generation/generation.h"

#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/text.h"
#include "cli/generation/acceptance.h"
#include "cli/options/commands.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "engine/model/trained/sv_profile.h"
#include "policies/registry.h"
#include "traces/writer.h"

static int
ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double
median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, ascending);
    return v[n / 2];
}

void
outcome_free(struct outcome *out)
{
    for (size_t i = 0; i < out->n_texts; i++)
        free(out->texts[i].tokens);
    free(out->texts);
    *out = (struct outcome){0};
}

size_t
outcome_tokens(const struct outcome *out)
{
    size_t n = 0;
    for (size_t i = 0; i < out->n_texts; i++)
        n += out->texts[i].n_tokens;
    return n;
}

void
json_number(cJSON *to, const char *name, double value)
{
    if (isnan(value))
        cJSON_AddNullToObject(to, name);
    else
        cJSON_AddNumberToObject(to, name, value);
}

void
json_estimate(cJSON *to, const char *name, struct estimate e)
{
    char se[64];
    snprintf(se, sizeof se, "%s_se", name);
    json_number(to, name, e.value);
    json_number(to, se, e.se);
}

void
json_seed(cJSON *to, uint64_t seed)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    cJSON_AddStringToObject(to, "seed", text);
}

static void
add_texts(cJSON *to, const struct outcome *out, const struct session_options *o)
{
    const bool batch = o->batch > 0 || o->versus != NULL;
    cJSON *list = batch ? cJSON_AddArrayToObject(to, "sequences") : NULL;
    for (size_t i = 0; i < out->n_texts; i++) {
        const struct outcome_text *text = &out->texts[i];
        cJSON *at = batch ? cJSON_CreateObject() : to, *ids = cJSON_AddArrayToObject(at, "token_ids");
        for (size_t k = 0; k < text->n_tokens; k++)
            cJSON_AddItemToArray(ids, cJSON_CreateNumber(text->tokens[k]));
        if (!batch)
            continue;
        cJSON_AddStringToObject(at, "end", text->end);
        json_seed(at, o->versus != NULL ? o->seed : rng_sequence_seed(o->seed, (uint32_t)i));
        cJSON_AddItemToArray(list, at);
    }
}

static const char *const verdicts[] = {"unknown", "no clear difference", "faster", "slower"};

/* Adds the measures of each of two settings, with standard errors, and the speed of the second over the first. */
static void
add_sides(cJSON *to, const struct outcome *out, const struct model *model, const char *versus)
{
    cJSON_AddStringToObject(to, "versus", versus);
    cJSON *list = cJSON_AddArrayToObject(to, "settings");
    for (int i = 0; i < 2; i++) {
        const struct estimates e = round_sums_estimates(&out->sides[i], model->desc.n_layers, model->rho);
        cJSON *at = cJSON_CreateObject();
        json_estimate(at, "tok_per_s", e.tokens_per_s);
        json_estimate(at, "tokens_per_round", e.tokens_per_round);
        json_estimate(at, "acceptance_rate", e.acceptance_rate);
        json_estimate(at, "modelled_speedup", e.modelled);
        acceptance_positions_json(at, &out->texts[i].positions);
        cJSON_AddItemToArray(list, at);
    }
    const struct comparison c = paired_comparison(&out->paired);
    cJSON *j = cJSON_AddObjectToObject(to, "comparison");
    json_number(j, "speed_ratio", c.value);
    json_number(j, "low", c.low);
    json_number(j, "high", c.high);
    json_number(j, "segments", (double)c.n);
    cJSON_AddStringToObject(j, "verdict", verdicts[c.verdict]);
}

static void
add_times(cJSON *j, const struct metrics *metrics, const struct measures *m)
{
    const struct tally *t = &metrics->total;
    json_number(j, "prompt_tokens", (double)metrics->prefilled);
    json_number(j, "prefill_s", metrics->prefill_us * 1e-6);
    json_number(j, "decode_s", (t->draft_us + t->verify_us) * 1e-6);
    json_number(j, "learning_s", t->learning_us * 1e-6);
    json_number(j, "tok_per_s", m->tokens_per_s);
    json_number(j, "tok_per_s_all_in", m->tokens_per_s_all_in);
    json_number(j, "draft_share", m->layers_share);
    json_number(j, "heads_share", m->heads_share);
    json_number(j, "verify_share", m->verify_share);
    json_number(j, "probe_share", m->probe_share);
    json_number(j, "wait_share", m->wait_share);
    json_number(j, "learning_share", m->learning_share);
}

/* Adds the settings of sampling to the parameters. */
static void
add_sampling(cJSON *params, const struct sampling *s, uint64_t seed)
{
    json_number(params, "temperature", (double)s->temperature);
    json_number(params, "top_k", s->top_k);
    json_number(params, "top_p", (double)s->top_p);
    json_seed(params, seed);
}

/* Adds counts and measures. `positions`: NULL, if there are two settings. */
static void
add_measures(cJSON *j, const struct outcome *out, const struct positions *positions)
{
    const struct tally *t = &out->metrics.total;
    struct measures m = metrics_measures(&out->metrics, t);
    cJSON_AddStringToObject(j, "end", out->end);
    json_number(j, "rounds", (double)t->rounds);
    json_number(j, "drafted", (double)t->drafted);
    json_number(j, "verified", (double)t->verified);
    json_number(j, "accepted", (double)t->accepted);
    json_number(j, "emitted", (double)t->emitted);
    json_number(j, "cut", (double)t->cut);
    json_number(j, "acceptance_rate", m.acceptance_rate);
    json_number(j, "per_token_acceptance", m.per_token_acceptance);
    if (positions != NULL)
        acceptance_positions_json(j, positions);
    json_number(j, "tokens_per_round", m.tokens_per_round);
    json_number(j, "etpl", m.etpl);
    json_number(j, "discard_rate", m.discard_rate);
    json_number(j, "verification_rate", m.verification_rate);
    json_number(j, "layers_loaded", t->layers);
    json_number(j, "heads_loaded", t->heads);
    json_number(j, "modelled_speedup", m.modelled);
    if (t->experts_rounds > 0)
        json_number(j, "verify_experts", t->experts / (double)t->experts_rounds);
    add_times(j, &out->metrics, &m);
}

cJSON *
outcome_json(const struct outcome *out, const struct engine *engine, const struct session_options *o)
{
    cJSON *j = cJSON_CreateObject(), *params = cJSON_CreateObject();
    char name[64];
    cJSON_AddStringToObject(j, "model", engine->model->name);
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        if (engine_has(engine, role))
            cJSON_AddStringToObject(j, aux_names[role], engine_aux_name(engine, role, name, sizeof name));
    cJSON_AddStringToObject(j, "backend", engine->ops->name);
    cJSON_AddStringToObject(j, "isa", engine->ops->describe(engine->backend));
    cJSON_AddStringToObject(j, "policy", out->policy[0] != '\0' ? out->policy : o->policy);
    if (out->choice[0] != '\0')
        cJSON_AddStringToObject(j, "choice", out->choice);
    for (size_t i = 0; i < o->n_set; i++)
        cJSON_AddStringToObject(params, o->set[i].name, o->set[i].text);
    if (engine->heads != HEAD_LENS)
        cJSON_AddStringToObject(params, "head", head_mode_names[o->head]);
    add_sampling(params, &o->sampling, o->seed);
    cJSON_AddItemToObject(j, "params", params);
    if (o->batch > 0)
        json_number(params, "batch", o->batch);
    if (o->versus != NULL)
        add_sides(j, out, engine->model, o->versus);
    add_texts(j, out, o);
    add_measures(j, out, o->versus == NULL ? &out->positions : NULL);
    return j;
}

cJSON *
outcome_server_json(const struct outcome *out, const struct run_info *info)
{
    const struct session_options one = {0};
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "model", info->model_name);
    cJSON_AddStringToObject(j, "backend", info->backend);
    cJSON_AddStringToObject(j, "isa", info->isa);
    cJSON_AddStringToObject(j, "policy", out->policy);
    add_sampling(cJSON_AddObjectToObject(j, "params"), &info->sampling, info->seed);
    add_texts(j, out, &one);
    add_measures(j, out, &out->positions);
    return j;
}

const struct file_kind results_json_file = {.what = "results of specscope as JSON", .begins = "{\"specscope\":"};

bool
json_write(cJSON *j, const char *path, struct err *err)
{
    struct output o;
    char *text = json_memory_ran_out() ? NULL : cJSON_Print(j);
    cJSON_Delete(j);
    if (text == NULL)
        return err_set(err, ERR_WORK, "out of memory for the JSON results");
    bool ok = output_open(&o, path, &results_json_file, err);
    if (ok) {
        fprintf(o.f, "{\n\t\"specscope\":\t\"%s\",%s\n", SPECSCOPE_VERSION, text + 1);
        ok = output_close(&o, true, err);
    }
    cJSON_free(text);
    return ok;
}

static atomic_bool interrupted;

static void
on_signal(int number)
{
    command_interrupt(number);
    atomic_store(&interrupted, true); /* lock-free on all platforms, so a signal handler may do it */
}

void
generation_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND}; /* twice ends it at once */
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

bool
generation_interrupted(void)
{
    return atomic_load(&interrupted);
}

const atomic_bool *
generation_interruption(void)
{
    return &interrupted;
}

/* ---- progress ---- */

void
generation_progress(double share, const char *text)
{
    struct winsize size = {.ws_col = 0};
    char line[300] = "";
    if (!isatty(STDERR_FILENO))
        return;
    const int cols = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80,
              full = (int)(share * 20);
    if (text[0] != '\0')
        snprintf(line, sizeof line, "[%.*s%.*s] %3.0f%% %s", full, "####################", 20 - full,
                 "....................", share * 100, text);
    text_ascii(line);
    fprintf(stderr, "\r%.*s\x1b[K", cols - 1, line);
}

struct load_progress {
    double start_us;
    bool shown;
    char noticed[sizeof((struct engine){0}).note];
};

/* Prints notes before the model loads, so that they are not printed again. */
static void
print_before(void *user, const char *line)
{
    struct load_progress *p = user;
    snprintf(p->noticed, sizeof p->noticed, "%s", line);
    fprintf(stderr, "specscope: %s\n", line);
}

static bool
load_progress(void *user, double done)
{
    struct load_progress *p = user;
    if (clock_fine_us() - p->start_us > 5e5) {
        generation_progress(done, "loading");
        p->shown = true;
    }
    return !interrupted;
}

bool
generation_chat_unused(const struct options *o, const struct engine *engine)
{
    return !o->chat.on && tokenizer_chat_template_name(engine->model->tokenizer, 0) != NULL;
}

bool
generation_tune_prompts(const struct options *o, struct prompt_list *list, struct err *err)
{
    char model[PATH_MAX], own[PATH_MAX];
    bool is_own = o->synth == NULL && o->launch == NULL;
    if (is_own && o->model != NULL) { /* one of the files beside the bundled model */
        is_own = realpath(o->model, model) != NULL && realpath(bundled_model_path(), own) != NULL;
        const char *end = is_own ? strrchr(own, '/') : NULL;
        is_own = end != NULL && strncmp(model, own, (size_t)(end - own) + 1) == 0;
    }
    return prompts_bundled(is_own ? "prompts-tune" : "prompts-tasks", list, err);
}

/* Returns the note on the tokenizer or the chat template, if the engine has none that is more important. */
static void
note_tokenizer(const struct options *o, struct engine *engine)
{
    const struct tokenizer *t = engine->model->tokenizer;
    if (engine->note[0] != '\0')
        return;
    if (o->chat.on && o->chat.template.data == NULL && o->chat.name == NULL &&
        tokenizer_chat_template_name(t, 0) == NULL)
        snprintf(engine->note, sizeof engine->note,
                 "the model comes without a chat template: prompts go to it as they are");
    else if ((o->command & (COMMAND_TUNE | COMMAND_SCORE | COMMAND_DOCTOR)) == 0 && generation_chat_unused(o, engine))
        snprintf(engine->note, sizeof engine->note,
                 "the model has a chat template, which is not used: --chat sends prompts as chat messages");
    else
        snprintf(engine->note, sizeof engine->note, "%s", tokenizer_note(t));
}

/* Warns of a context longer than the model was trained with. */
static void
note_context(const struct options *o, struct engine *engine)
{
    const uint32_t trained = engine->model->ctx_train;
    if (engine->note[0] == '\0' && o->ctx > trained && trained > 0)
        snprintf(engine->note, sizeof engine->note,
                 "a context of %u tokens is longer than that of the model's training (%u): later text may be poor",
                 (unsigned)o->ctx, (unsigned)trained);
}

/* Returns the needs of the requested policies; the first word of --versus is one, too. */
static unsigned
needed(const struct options *o)
{
    static const char blanks[] = " \t\n";
    const char *versus = o->versus != NULL ? o->versus + strspn(o->versus, blanks) : "";
    const size_t n = strcspn(versus, blanks);
    unsigned roles = 0;
    for (size_t i = 0; policy_registry[i] != NULL && !o->steps && !o->speed; i++) {
        bool asked = o->policies.n == 0 && (o->command & COMPARES) != 0;
        for (size_t k = 0; k < o->policies.n; k++)
            asked = asked || strcmp(policy_registry[i]->name, o->policies.at[k]) == 0;
        asked = asked || (strlen(policy_registry[i]->name) == n && strncmp(policy_registry[i]->name, versus, n) == 0);
        roles |= asked ? policy_registry[i]->needs : 0;
    }
    return roles;
}

/* Returns the needs to search for beside the model if they are not given: on the screen those of all policies. */
static unsigned
wanted(const struct options *o)
{
    return (o->command & (COMMAND_SCOPE | COMMAND_DOCTOR)) != 0 ? UINT_MAX : needed(o);
}

/* Warns if the profile is for other sampling. */
static void
note_profile(const struct options *o, struct engine *engine)
{
    const struct sv_whose *w = engine->profile != NULL ? &engine->profile->whose : NULL;
    const struct sampling *s = &o->sampling;
    if (w == NULL || (needed(o) & NEEDS_PROFILE) == 0 || engine->note[0] != '\0')
        return;
    if (w->temperature != s->temperature || w->top_k != s->top_k || w->top_p != s->top_p)
        snprintf(engine->note, sizeof engine->note,
                 "the profile is of temperature %g, top-k %u, top-p %g: how likely drafts are accepted may differ here",
                 (double)w->temperature, (unsigned)w->top_k, (double)w->top_p);
}

/* Prints the notes, except for the scope, which shows them itself. */
static void
print_notes(const struct engine *engine, const char *noticed)
{
    for (enum aux_role role = 0; role < AUX_MTP; role++) /* an MTP layer is in the model's own file */
        if (engine->aux[role].found)
            fprintf(stderr, "specscope: the %s model is %s, found beside the model\n", aux_names[role],
                    engine->aux[role].model->path);
    if (engine->note[0] != '\0' && strcmp(engine->note, noticed) != 0)
        fprintf(stderr, "specscope: %s\n", engine->note);
}

bool
generation_engine(const struct options *o, struct engine **engine, struct err *err)
{
    const struct engine_options options = {.model_path = o->synth != NULL   ? o->synth
                                                         : o->model != NULL ? o->model
                                                                            : bundled_model_path(),
                                           .synth = o->synth != NULL,
                                           .backend = o->backend,
                                           .backend_options = o->backend_options,
                                           .heads = o->heads,
                                           .vocab_counts = o->vocab_counts,
                                           .aux = {o->aux[AUX_DRAFT], o->aux[AUX_COMPANION]},
                                           .wanted = wanted(o),
                                           .accept = o->accept_head,
                                           .profile = o->profile_file,
                                           .quantize = o->quantize,
                                           .lora = o->lora.at,
                                           .n_lora = o->lora.n,
                                           .ctx = o->ctx,
                                           .sequences = o->batch,
                                           .notice = print_before};
    struct load_progress progress = {.start_us = clock_fine_us()};
    bool ok = engine_open(engine, &options, load_progress, &progress, err);
    if (progress.shown)
        generation_progress(0, "");
    if (ok) {
        note_profile(o, *engine);
        note_context(o, *engine);
        note_tokenizer(o, *engine);
    }
    if (ok && o->command != COMMAND_SCOPE)
        print_notes(*engine, progress.noticed);
    return ok;
}

struct session_options
generation_options(const struct options *o)
{
    bool given = o->prompt != NULL;
    struct session_options so = {.policies = policy_registry,
                                 .policy = o->policies.n > 0 ? o->policies.at[0]
                                           : o->n_set > 0    ? knobs_policy
                                                             : POLICY_AUTO,
                                 .prompt = given ? o->prompt : default_prompt,
                                 .prompt_len = given ? o->prompt_len : strlen(default_prompt),
                                 .batch = o->batch,
                                 .chat = o->chat,
                                 .sampling = o->sampling,
                                 .seed = o->seed,
                                 .tokens = o->tokens,
                                 .ctx = o->ctx,
                                 .ignore_eos = o->ignore_eos,
                                 .probe = o->probe,
                                 .probe_percent = o->probe_percent,
                                 .head = o->n_heads_given > 0 ? o->heads_given[0] : HEADS_POLICY,
                                 .set = o->set,
                                 .n_set = o->n_set,
                                 .versus = o->versus};
    so.chat.cancelled = generation_interrupted;
    return so;
}

struct prompt_text *
generation_prompts(const struct prompt_list *list, struct err *err)
{
    struct prompt_text *texts = calloc(list->n, sizeof *texts);
    for (size_t i = 0; i < list->n && texts != NULL; i++)
        texts[i] = (struct prompt_text){list->texts[i], strlen(list->texts[i])};
    if (texts == NULL)
        err_set(err, ERR_WORK, "out of memory for %zu prompts", list->n);
    return texts;
}

const char *
generation_params(const struct knob_setting *set, size_t n_set, char *out, size_t n)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < n_set && used < n; i++)
        used += (size_t)snprintf(out + used, n - used, "%s%s=%s", i > 0 ? " " : "", set[i].name, set[i].text);
    return out;
}

/* ---- generating ---- */

struct collector {
    const struct generation *g;
    struct outcome *out;
    struct committed *committed; /* (out->n_texts) */
    bool shown, failed;
};

static void
committed(struct collector *c, uint32_t seq, token_t token, enum token_source source)
{
    struct outcome_text *text = &c->out->texts[seq];
    if (text->n_tokens == text->room) {
        size_t room = text->room > 0 ? text->room * 2 : 256;
        token_t *more = realloc(text->tokens, room * sizeof *more);
        if (more == NULL) {
            c->failed = true;
            return;
        }
        text->tokens = more;
        text->room = room;
    }
    text->tokens[text->n_tokens++] = token;
    if (c->g->token != NULL && seq == 0)
        c->g->token(c->g->user, token, source);
}

static void
collect_end(struct collector *c, const struct event *e)
{
    struct outcome *out = c->out;
    struct outcome_text *text = &out->texts[e->seq];
    if (e->control.kind == RECORDED_CHOICE)
        snprintf(out->choice, sizeof out->choice, "%s", e->control.new_text);
    if (e->control.kind == RECORDED_POLICY && e->seq == 0)
        snprintf(out->policy, sizeof out->policy, "%.15s", e->control.new_text);
    if (e->control.kind == RECORDED_END)
        snprintf(out->end, sizeof out->end, "%s", e->control.new_text);
    if (e->control.kind != RECORDED_LEFT)
        return;
    snprintf(text->end, sizeof text->end, "%s", e->control.new_text);
    if (c->g->left != NULL)
        c->g->left(c->g->user, out);
}

static void
collect(struct collector *c, const struct event *e)
{
    if (e->seq >= c->out->n_texts) /* it has them all */
        return;
    metrics_event(&c->out->metrics, e);
    if (e->type == EVENT_ROUND) {
        struct outcome_text *text = &c->out->texts[e->seq];
        const struct tally t = tally_of(&e->round_end);
        tally_add(&text->total, &t);
        positions_round(&text->positions, &e->round_end);
    }
    if (e->type == EVENT_ROUND && c->g->session.versus != NULL) {
        const struct tally t = tally_of(&e->round_end);
        round_sums_add(&c->out->sides[e->seq], &t, c->out->metrics.rho);
        paired_add(&c->out->paired, e->seq, &e->round_end);
    }
    if (e->type == EVENT_PROGRESS && c->g->progress) {
        generation_progress((double)e->progress.done, e->progress.what);
        c->shown = true;
    } else if (c->shown) {
        generation_progress(0, "");
        c->shown = false;
    }
    token_t token;
    enum token_source source;
    if (committed_token(&c->committed[e->seq], e, &token, &source))
        committed(c, e->seq, token, source);
    else if (e->type == EVENT_CONTROL)
        collect_end(c, e);
}

static bool
follow(struct collector *c, struct live *live, struct event_reader *reader)
{
    bool asked = false;
    for (;;) {
        const struct event *e;
        bool finished = event_log_finished(live->ops->log(live)); /* read before the events, so that none is missed */
        while ((e = event_reader_next(reader)) != NULL) {
            collect(c, e);
            if (c->g->event != NULL)
                c->g->event(c->g->user, e);
        }
        if (finished)
            return !c->failed;
        if ((interrupted || c->failed) && !asked) {
            asked = true;
            snprintf(c->out->end, sizeof c->out->end, "cancelled");
            live->ops->post(live, &(struct control){.kind = CONTROL_QUIT}, NULL);
        }
        event_reader_wait(reader, 100);
    }
}

bool
generate(const struct generation *g, struct outcome *out, struct err *err)
{
    *out = (struct outcome){0};
    struct live *live = g->live;
    struct event_reader *reader = NULL;
    struct trace_writer *writer = NULL;
    struct collector c = {.g = g, .out = out};
    bool ok = live != NULL || session_open(&live, g->engine, &g->session, err);
    const struct run_info *info = ok ? live->ops->info(live) : NULL;
    if (ok) {
        metrics_begin(&out->metrics, info->layers, info->rho);
        snprintf(out->policy, sizeof out->policy, "%s", info->policy);
        out->n_texts = g->session.versus != NULL ? 2 : info->prompts;
        out->texts = calloc(out->n_texts, sizeof *out->texts);
        c.committed = calloc(out->n_texts, sizeof *c.committed);
        ok = (out->texts != NULL && c.committed != NULL) || err_set(err, ERR_WORK, "out of memory");
        out->n_texts = out->texts != NULL ? out->n_texts : 0;
    }
    if (ok && (reader = event_reader_open(live->ops->log(live))) == NULL)
        ok = err_set(err, ERR_WORK, "out of memory");
    if (ok && g->trace != NULL && !trace_writer_open(&writer, g->trace, &g->bounds, info, live->ops->log(live), err)) {
        /* an unwritable disk does not stop the run; missing memory does, because the run would not get far */
        ok = err->kind != ERR_USAGE && !err_is_memory(err) && !g->trace_first;
        out->untraced = ok;
        if (ok)
            command_failed(err);
    }
    if (ok)
        ok = live->ops->start(live, err);
    if (ok && !follow(&c, live, reader))
        ok = err_set(err, ERR_WORK, "out of memory");
    for (size_t i = 0; i < out->n_texts && g->session.versus == NULL; i++)
        positions_add(&out->positions, &out->texts[i].positions);
    ok = ok && !live->ops->failed(live, err);
    struct err trouble = {0};
    if (writer != NULL && !trace_writer_close(writer, &trouble)) {
        out->untraced = trouble.kind != ERR_CANCELLED; /* a full trace is no failure */
        if (ok || !err_is_memory(&trouble))            /* the run's own line says it */
            command_failed(&trouble);
    }
    if (reader != NULL)
        event_reader_close(reader);
    if (g->live == NULL)
        live_close(live);
    free(c.committed);
    if (!ok)
        outcome_free(out);
    return ok;
}
