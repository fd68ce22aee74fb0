#include "cli/generation.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/timing.h"
#include "engine/tokenizer/chat.h"
#include "policies/policy.h"
#include "traces/writer.h"

static volatile sig_atomic_t interrupted;

static void
on_signal(int number)
{
    (void)number;
    interrupted = 1;
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
    return interrupted != 0;
}

/* ---- progress ---- */

static void
show_progress(const char *what, double done)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%s %3.0f%% ", what, done * 100);
}

static void
clear_progress(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\x1b[K", stderr);
}

struct load_progress {
    double start_us;
    bool shown;
};

static bool
load_progress(void *user, double done)
{
    struct load_progress *p = user;
    if (now_us() - p->start_us > 5e5) {
        show_progress("loading", done);
        p->shown = true;
    }
    return !interrupted;
}

/* What there is to say about the tokenizer and the chat template, where the engine has nothing more important. */
static void
note_tokenizer(const struct options *o, struct engine *engine)
{
    const struct tokenizer *t = engine->model->tokenizer;
    struct chat chat;
    if (engine->note[0] != '\0')
        return;
    if (o->chat && !chat_of_tokenizer(&chat, t))
        snprintf(engine->note, sizeof engine->note, "%s: prompts go to it as they are",
                 tokenizer_chat_template(t).len > 0 ? "the model's chat template is not a known one"
                                                    : "the model comes without a chat template");
    else
        snprintf(engine->note, sizeof engine->note, "%s", tokenizer_note(t));
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
                                           .quantize = o->quantize,
                                           .ctx = o->ctx};
    struct load_progress progress = {.start_us = now_us()};
    bool ok = engine_open(engine, &options, load_progress, &progress, err);
    if (progress.shown)
        clear_progress();
    if (ok)
        note_tokenizer(o, *engine);
    if (ok && (*engine)->note[0] != '\0' && o->command != COMMAND_SCOPE) /* the scope has its status line for it */
        fprintf(stderr, "specscope: %s\n", (*engine)->note);
    return ok;
}

struct session_options
generation_options(const struct options *o)
{
    bool given = o->prompt != NULL;
    return (struct session_options){.policies = policy_registry,
                                    .policy = o->policies.n > 0 ? o->policies.at[0] : default_policy,
                                    .prompt = given ? o->prompt : default_prompt,
                                    .prompt_len = given ? o->prompt_len : strlen(default_prompt),
                                    .chat = o->chat,
                                    .system = o->system,
                                    .sampling = o->sampling,
                                    .seed = o->seed,
                                    .tokens = o->tokens,
                                    .ctx = o->ctx,
                                    .ignore_eos = o->ignore_eos,
                                    .probe = o->probe,
                                    .head = o->n_heads_given > 0 ? o->heads_given[0] : HEADS_POLICY,
                                    .set = o->set,
                                    .n_set = o->n_set};
}

/* ---- generating ---- */

struct collector {
    const struct generation *g;
    struct outcome *out;
    size_t room;
    token_t draft[VERIFY_NODES];
    bool shown, failed;
};

static void
committed(struct collector *c, token_t token, enum token_source source)
{
    struct outcome *out = c->out;
    if (out->n_tokens == c->room) {
        size_t room = c->room > 0 ? c->room * 2 : 256;
        token_t *more = realloc(out->tokens, room * sizeof *more);
        if (more == NULL) {
            c->failed = true;
            return;
        }
        out->tokens = more;
        c->room = room;
    }
    out->tokens[out->n_tokens++] = token;
    if (c->g->token != NULL)
        c->g->token(c->g->user, token, source);
}

static void
collect(struct collector *c, const struct event *e)
{
    metrics_event(&c->out->metrics, e);
    if (e->type == EVENT_PROGRESS && c->g->progress) {
        show_progress(e->progress.what, (double)e->progress.done);
        c->shown = true;
    } else if (c->shown) {
        clear_progress();
        c->shown = false;
    }
    if (e->type == EVENT_TOKEN && e->token.source == SOURCE_DRAFT) {
        if (e->token.candidate > 0 && e->token.candidate < VERIFY_NODES)
            c->draft[e->token.candidate] = e->token.token;
    } else if (e->type == EVENT_TOKEN && e->token.source != SOURCE_PROMPT) {
        committed(c, e->token.token, e->token.source);
    } else if (e->type == EVENT_VERDICT && e->verdict.committed == 1) {
        committed(c, c->draft[e->verdict.candidate], SOURCE_DRAFT);
    } else if (e->type == EVENT_CONTROL && strcmp(e->control.name, "end") == 0) {
        snprintf(c->out->end, sizeof c->out->end, "%s", e->control.new_text);
    }
}

static bool
follow(struct collector *c, struct session *s, struct event_reader *reader)
{
    bool asked = false;
    for (;;) {
        const struct event *e;
        bool finished = event_log_finished(session_log(s)); /* before the last look: nothing can come after it */
        while ((e = event_reader_next(reader)) != NULL)
            collect(c, e);
        if (finished)
            return !c->failed;
        if ((interrupted || c->failed) && !asked) {
            asked = true;
            snprintf(c->out->end, sizeof c->out->end, "cancelled");
            session_post(s, &(struct control){.kind = CONTROL_QUIT}, NULL);
        }
        event_reader_wait(reader, 100);
    }
}

bool
generate(const struct generation *g, struct outcome *out, struct err *err)
{
    *out = (struct outcome){0};
    struct session *s = NULL;
    struct event_reader *reader = NULL;
    struct trace_writer *writer = NULL;
    struct collector c = {.g = g, .out = out};
    bool ok = session_open(&s, g->engine, &g->session, err);
    if (ok)
        metrics_begin(&out->metrics, session_info(s)->layers, session_info(s)->rho);
    if (ok && (reader = event_reader_open(session_log(s))) == NULL)
        ok = err_set(err, ERR_WORK, "out of memory");
    if (ok && g->trace != NULL && !trace_writer_open(&writer, g->trace, session_info(s), session_log(s), err)) {
        ok = err->kind != ERR_USAGE; /* a disk that takes no trace does not stop the run */
        if (ok)
            command_failed(err);
    }
    if (ok)
        ok = session_start(s, err);
    if (ok && !follow(&c, s, reader))
        ok = err_set(err, ERR_WORK, "out of memory");
    struct err failure;
    if (ok && session_failed(s, &failure)) {
        ok = false;
        *err = failure;
    }
    struct err trouble = {0};
    if (writer != NULL && !trace_writer_close(writer, &trouble))
        command_failed(&trouble);
    if (reader != NULL)
        event_reader_close(reader);
    session_close(s);
    if (!ok)
        outcome_free(out);
    return ok;
}

void
outcome_free(struct outcome *out)
{
    free(out->tokens);
    out->tokens = NULL;
    out->n_tokens = 0;
}

/* ---- JSON ---- */

void
json_number(cJSON *to, const char *name, double value)
{
    if (isnan(value))
        cJSON_AddNullToObject(to, name);
    else
        cJSON_AddNumberToObject(to, name, value);
}

cJSON *
outcome_json(const struct outcome *out, const struct engine *engine, const struct session_options *o)
{
    const struct tally *t = &out->metrics.total;
    struct measures m = metrics_measures(&out->metrics, t);
    cJSON *j = cJSON_CreateObject(), *params = cJSON_CreateObject(), *ids = cJSON_CreateArray();
    cJSON_AddStringToObject(j, "model", engine->model->name);
    cJSON_AddStringToObject(j, "backend", engine->ops->name);
    cJSON_AddStringToObject(j, "isa", engine->ops->describe(engine->backend));
    cJSON_AddStringToObject(j, "policy", o->policy);
    for (size_t i = 0; i < o->n_set; i++)
        cJSON_AddStringToObject(params, o->set[i].name, o->set[i].text);
    if (engine->heads != HEAD_LENS)
        cJSON_AddStringToObject(params, "head", head_mode_names[o->head]);
    json_number(params, "temperature", (double)o->sampling.temperature);
    json_number(params, "top_k", o->sampling.top_k);
    json_number(params, "top_p", (double)o->sampling.top_p);
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)o->seed);
    cJSON_AddStringToObject(params, "seed", seed);
    cJSON_AddItemToObject(j, "params", params);
    for (size_t i = 0; i < out->n_tokens; i++)
        cJSON_AddItemToArray(ids, cJSON_CreateNumber(out->tokens[i]));
    cJSON_AddItemToObject(j, "token_ids", ids);
    cJSON_AddStringToObject(j, "end", out->end);
    json_number(j, "rounds", (double)t->rounds);
    json_number(j, "drafted", (double)t->drafted);
    json_number(j, "verified", (double)t->verified);
    json_number(j, "accepted", (double)t->accepted);
    json_number(j, "emitted", (double)t->emitted);
    json_number(j, "acceptance_rate", m.acceptance_rate);
    json_number(j, "per_token_acceptance", m.per_token_acceptance);
    json_number(j, "tokens_per_round", m.tokens_per_round);
    json_number(j, "etpl", m.etpl);
    json_number(j, "discard_rate", m.discard_rate);
    json_number(j, "verification_rate", m.verification_rate);
    json_number(j, "layers_loaded", t->layers);
    json_number(j, "heads_loaded", t->heads);
    json_number(j, "modelled_speedup", m.modelled);
    json_number(j, "decode_s", (t->draft_us + t->verify_us) * 1e-6);
    json_number(j, "aside_s", t->aside_us * 1e-6);
    json_number(j, "tok_per_s", m.tokens_per_s);
    json_number(j, "tok_per_s_all_in", m.tokens_per_s_all_in);
    json_number(j, "draft_share", m.draft_share - m.heads_share);
    json_number(j, "heads_share", m.heads_share);
    json_number(j, "verify_share", m.verify_share);
    json_number(j, "probe_share", m.probe_share);
    json_number(j, "wait_share", m.wait_share);
    json_number(j, "aside_share", m.aside_share);
    return j;
}

bool
json_write(const cJSON *j, const char *path, struct err *err)
{
    FILE *f;
    char *text = cJSON_Print(j);
    if (text == NULL)
        return err_set(err, ERR_WORK, "out of memory for the JSON results");
    bool ok = results_open(&f, path, err);
    if (ok) {
        fputs(text, f);
        fputc('\n', f);
        ok = results_close(f, path, err);
    }
    cJSON_free(text);
    return ok;
}
