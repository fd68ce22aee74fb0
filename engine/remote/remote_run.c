/* The thread of a server: its controls, requests and events. A run is one request, or several: a pause, a step, a
 * breakpoint and a changed setting end the request after a round, and the next request continues the text by its tokens.
 * So no time of a round contains a pause, and the drafts that the server makes meanwhile are discarded. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array_grow.h"
#include "base/clock.h"
#include "base/json_read.h"
#include "engine/events/sampling_knobs.h"
#include "engine/remote/remote_internal.h"

#define COMMAND_MOST 8192
#define WORD_MOST    1024 /* bytes of a token that are kept */
#define EMPTY_MOST   1000 /* events without a token, one after another */

/* ---- events ---- */

static void
append(struct remote *r, struct event *e, uint64_t us)
{
    e->t_us = us > r->start_us ? us - r->start_us : 0;
    e->run = r->run;
    e->round = e->type == EVENT_CONTROL ? e->round : r->round;
    event_log_append(r->log, e);
}

static void
emit_control(struct remote *r, enum recorded kind, const char *before, const char *after)
{
    struct event e = {.type = EVENT_CONTROL,
                      .round = r->round,
                      .control = {.kind = kind, .old_text = before, .new_text = after, .applied_round = r->round}};
    append(r, &e, clock_us());
}

static void
emit_word(void *user, token_t token, const char *bytes, size_t n)
{
    struct remote *r = user;
    uint64_t *word = &r->words[token / 64], bit = (uint64_t)1 << (token % 64);
    if ((*word & bit) != 0)
        return;
    *word |= bit;
    struct event e = {.type = EVENT_VOCAB, .vocab = {token, bytes, (uint32_t)(n < WORD_MOST ? n : WORD_MOST)}};
    append(r, &e, clock_us());
}

static bool
knows_word(void *user, token_t token)
{
    const struct remote *r = user;
    return (r->words[token / 64] >> (token % 64) & 1u) != 0;
}

bool
remote_connect(const struct remote *r, struct http **http, const atomic_bool *cancel, struct err *err)
{
    return http_open(http, &(struct http_options){.url = r->url, .key = r->key, .cancel = cancel}, err);
}

/* Asks on a connection of its own, because the other one has a stream. */
static cJSON *
ask_aside(void *user, const char *path, cJSON *json)
{
    struct remote *r = user;
    struct err err;
    struct http *http = NULL;
    cJSON *answer = NULL;
    if (remote_connect(r, &http, &r->cancel, &err))
        answer = server_ask(http, path, json, &err);
    else
        cJSON_Delete(json);
    http_close(http);
    return answer;
}

static void
emit_token(struct remote *r, const struct server_token *t, uint32_t at, enum token_source source, uint64_t us)
{
    const bool draft = source == SOURCE_DRAFT, own = !draft && source != SOURCE_PROMPT;
    struct event e = {.type = EVENT_TOKEN};
    struct token_event *k = &e.token;
    *k = (struct token_event){.pos = (uint32_t)r->n_ids + at, .token = t->token, .source = source, .accepted = -1};
    k->parent = draft ? (int32_t)at : -1;
    k->candidate = draft ? (int32_t)at + 1 : -1;
    k->exit_layer = own ? (int32_t)r->info.layers : -1;
    k->head = own ? 0 : -1;
    k->committed = draft ? -1 : 1;
    k->confidence = own && t->n_top > 0 ? t->top_p[0] : NAN;
    k->annealed = NAN;
    append(r, &e, us);
}

/* Emits the target's prediction of a token, which is that of the model's last layer. */
static void
emit_layer(struct remote *r, const struct server_token *t, uint32_t at, uint64_t us)
{
    struct event e = {.type = EVENT_LAYER};
    struct layer_event *l = &e.layer;
    *l = (struct layer_event){.pos = (uint32_t)r->n_ids + at, .final_agrees = 1, .probed_by = PROBED_VERIFY};
    l->layer = (int32_t)r->info.layers;
    l->token = t->top[0];
    l->confidence = t->top_p[0];
    l->entropy = l->annealed = l->temperature = l->acceptance = NAN;
    memcpy(l->top, t->top, sizeof t->top);
    memcpy(l->top_p, t->top_p, sizeof t->top_p);
    if (t->n_top > 0)
        append(r, &e, us);
}

static bool
keep_ids(struct remote *r, const struct server_token *t, size_t n)
{
    if (!array_grow(&r->ids, &r->room, r->n_ids + n, sizeof *r->ids))
        return false;
    for (size_t i = 0; i < n; i++)
        r->ids[r->n_ids++] = t[i].token;
    return true;
}

/* The server does not tell the ids of rejected drafts: only accepted ones have events; the round's line counts all. */
static void
emit_round(struct remote *r, const struct server_round *s, const struct server_token *t)
{
    const uint32_t n = (uint32_t)s->n, drafts = s->accepted < n ? s->accepted : n;
    for (uint32_t i = 0; i < drafts; i++)
        emit_token(r, &t[i], i, SOURCE_DRAFT, s->us);
    for (uint32_t i = 0; i < drafts; i++) {
        struct event e = {.type = EVENT_VERDICT, .verdict = {(int32_t)i + 1, 1, 1}};
        append(r, &e, s->us);
    }
    for (uint32_t i = drafts; i < n; i++) /* one, unless the server does not count drafts */
        emit_token(r, &t[i], i, s->accepted < s->drafted ? SOURCE_CORRECTION : SOURCE_BONUS, s->us);
    for (uint32_t i = 0; i < n; i++)
        emit_layer(r, &t[i], i, s->us);
    struct event e = {.type = EVENT_ROUND};
    struct round_event *l = &e.round_end;
    *l = (struct round_event){.drafted = s->drafted, .verified = s->drafted, .accepted = s->accepted, .emitted = n};
    l->verify_us = (uint32_t)(s->us > r->round_us ? s->us - r->round_us : 0);
    l->exit_layer = l->d_max = l->w_max = l->reject_rank = -1;
    l->threshold = l->layers_loaded = l->heads_loaded = l->heads_us = l->wait_us = l->learning_us = NAN;
    l->verify_experts = NAN;
    memcpy(l->policy, r->info.policies[r->current.policy].name, sizeof l->policy);
    append(r, &e, s->us);
}

/* ---- controls ---- */

/* Has a control ended the run? */
static bool
leaves(const struct remote *r)
{
    return r->new_run || atomic_load(&r->quits);
}

bool
control_interrupts(const struct control *c)
{
    return c->kind == CONTROL_PROMPT || c->kind == CONTROL_RESTART;
}

bool
control_steers(const struct control *c)
{
    return c->kind == CONTROL_PAUSE || c->kind == CONTROL_RESUME || c->kind == CONTROL_STEP_ROUNDS;
}

void
remote_mail_free(struct remote_mail *m)
{
    free((char *)m->c.text);
    free((char *)m->c.before);
    free(m);
}

const char *
remote_change(const struct remote *r, struct settings *s, const struct control *c, char *out, size_t n)
{
    struct control_event e = {.kind = c->kind == CONTROL_POLICY ? RECORDED_POLICY : RECORDED_KNOB, .new_text = c->text};
    snprintf(e.knob, sizeof e.knob, "%s", c->name);
    settings_apply(s, &r->info, &e);
    return settings_print(s, &r->info, e.kind, c->name, out, n);
}

static void
set_paused(struct remote *r, bool paused)
{
    static const char *const name[] = {"running", "paused"};
    if (r->paused == paused)
        return;
    r->paused = paused;
    pthread_mutex_lock(&r->lock);
    if (r->steering == 0)
        r->moves = !paused;
    pthread_mutex_unlock(&r->lock);
    emit_control(r, RECORDED_STATE, name[!paused], name[paused]);
}

static void
receive_setting(struct remote *r, const struct remote_mail *m)
{
    char before[64] = "", after[64] = "";
    const enum recorded kind = m->c.kind == CONTROL_POLICY ? RECORDED_POLICY : RECORDED_KNOB;
    settings_print(&r->current, &r->info, kind, m->c.name, before, sizeof before);
    const char *name = remote_change(r, &r->current, &m->c, after, sizeof after);
    struct event e = {.type = EVENT_CONTROL,
                      .round = m->asked,
                      .control = {.kind = kind, .old_text = before, .new_text = after, .applied_round = r->round + 1}};
    if (kind == RECORDED_KNOB && name != NULL)
        snprintf(e.control.knob, sizeof e.control.knob, "%s", name);
    append(r, &e, clock_us());
    r->again = r->again || sampling_knob_index(m->c.name) >= 0; /* another speculation begins with the next prompt */
}

/* Carries out a control of the mail, and takes its texts. */
static void
receive(struct remote *r, struct remote_mail *m)
{
    char note[256];
    switch (m->c.kind) {
    case CONTROL_PROMPT:
        free(r->prompt);
        free(r->before);
        r->prompt = (char *)m->c.text;
        r->before = (char *)m->c.before;
        m->c.text = m->c.before = NULL; /* fall through */
    case CONTROL_RESTART:
        r->cause = m->c.kind == CONTROL_PROMPT ? "prompt" : "restart";
        r->new_run = true;
        break;
    case CONTROL_PAUSE: set_paused(r, true); break;
    case CONTROL_STEP_ROUNDS:
    case CONTROL_RESUME:
        r->steps = m->c.kind == CONTROL_RESUME ? 0 : m->c.n > 0 ? m->c.n : 1;
        set_paused(r, false);
        break;
    case CONTROL_BREAK: r->break_at = m->c.n; break;
    case CONTROL_EXTEND:
        r->wanted = m->c.n < UINT32_MAX - r->wanted ? r->wanted + m->c.n : UINT32_MAX;
        r->extended = true;
        break;
    case CONTROL_KNOB:
    case CONTROL_POLICY: receive_setting(r, m); break;
    case CONTROL_RACE: emit_control(r, RECORDED_RACE, "", m->c.n > 0 ? "begins" : "ends"); break;
    case CONTROL_NOTE:
        snprintf(note, sizeof note, "%" PRIu32 " %s", m->c.n, m->c.text);
        emit_control(r, RECORDED_NOTE, "", note);
        break;
    default: break;
    }
    remote_mail_free(m);
}

/* Appends the counters that were read, and carries out the posted controls. wait: until one comes. */
static void
take_mail(struct remote *r, bool wait)
{
    for (;;) {
        pthread_mutex_lock(&r->lock);
        r->rests = wait && r->first == NULL;
        while (wait && r->first == NULL && r->counters[0] == '\0' && !atomic_load(&r->quits))
            pthread_cond_wait(&r->wake, &r->lock);
        if (r->counters[0] != '\0')
            emit_control(r, RECORDED_SERVER, "", r->counters);
        r->counters[0] = '\0';
        struct remote_mail *m = r->first;
        if (m != NULL) {
            r->rests = false;
            r->first = m->next;
            r->last = m->next != NULL ? r->last : NULL;
            r->interrupts -= control_interrupts(&m->c);
            r->steering -= control_steers(&m->c);
            atomic_store(&r->cancel, r->interrupts > 0 || atomic_load(&r->quits));
        }
        pthread_mutex_unlock(&r->lock);
        if (m == NULL)
            return;
        receive(r, m);
        wait = false;
    }
}

/* ---- the server ---- */

static bool
recognise(struct remote *r, const char *kind, struct err *err)
{
    for (size_t i = 0; server_kinds[i] != NULL; i++) {
        struct server_facts facts = {0};
        if (kind != NULL && strcmp(kind, server_kinds[i]->name) != 0)
            continue;
        err->kind = ERR_NONE;
        if (server_kinds[i]->recognise(r->http, &facts, err)) {
            facts.vocab = facts.vocab > 0 ? facts.vocab : SERVER_VOCAB;
            if (r->kind == NULL) { /* after a restart it is the same model */
                r->kind = server_kinds[i];
                r->facts = facts;
            }
            return true;
        }
        if (err->kind != ERR_NONE)
            return false;
    }
    return err_set(err, ERR_WORK, "%.200s is not %s; llama-server, vllm and sglang are known (--server-kind)", r->url,
                   kind != NULL ? kind : "a server of a known kind");
}

/* Writes the launcher's command with the options of the present settings. */
static bool
command_of(const struct remote *r, char *out, size_t n, struct err *err)
{
    char flags[COMMAND_MOST] = "";
    const char *command = r->launcher.command, *place = strstr(command, "{flags}");
    if (r->launcher.flags != NULL && !r->launcher.flags(r->launcher.user, &r->current, flags, sizeof flags, err))
        return false;
    const int used = place == NULL ? snprintf(out, n, "%s", command)
                                   : snprintf(out, n, "%.*s%s%s", (int)(place - command), command, flags, place + 7);
    return (used >= 0 && (size_t)used < n) || err_set(err, ERR_USAGE, "--launch: the command is too long");
}

static bool
same_speculation(const struct remote *r)
{
    const uint32_t policy = r->current.policy;
    return policy == r->launched.policy &&
           memcmp(r->current.value[policy], r->launched.value[policy], sizeof r->current.value[policy]) == 0;
}

bool
remote_reach(struct remote *r, const char *kind, struct err *err)
{
    char command[COMMAND_MOST];
    if (r->http != NULL && (r->launcher.command == NULL || same_speculation(r)))
        return true;
    http_close(r->http);
    r->http = NULL;
    if (r->launcher.command != NULL) {
        launch_close(r->launch);
        r->launch = NULL;
        if (!command_of(r, command, sizeof command, err) ||
            !launch_open(&r->launch, command, LAUNCH_START_S, r->opens != NULL ? r->opens : &r->quits, err))
            return false;
        r->launched = r->current;
        snprintf(r->url, sizeof r->url, "%s", launch_url(r->launch));
    }
    return remote_connect(r, &r->http, r->opens != NULL ? r->opens : &r->cancel, err) && recognise(r, kind, err);
}

/* ---- a run ---- */

/* Takes the controls after a round; returns whether the request continues. */
static bool
continues(struct remote *r)
{
    char text[16];
    take_mail(r, false);
    if (r->break_at > 0 && r->round >= r->break_at) {
        snprintf(text, sizeof text, "%" PRIu32, r->round);
        r->break_at = 0;
        set_paused(r, true);
        emit_control(r, RECORDED_BREAK, "", text);
    }
    return !(r->paused || r->again || leaves(r));
}

static bool
take_round(void *user, const struct server_round *s, const struct server_token *t)
{
    struct remote *r = user;
    event_log_reserve(r->log, 4 * s->n + 8, 64 * s->n, NULL);
    if (!r->prefilled) {
        r->prefilled = true;
        emit_token(r, t, 0, SOURCE_PREFILL, s->us);
        emit_layer(r, t, 0, s->us);
    } else {
        pthread_mutex_lock(&r->lock);
        r->round++;
        pthread_mutex_unlock(&r->lock);
        emit_round(r, s, t);
        if (r->steps > 0 && --r->steps == 0)
            set_paused(r, true);
    }
    r->round_us = s->us;
    return keep_ids(r, t, s->n) && continues(r);
}

static bool
take_event(void *user, const char *data, size_t n)
{
    struct server_answer *a = user;
    struct remote *r = a->user;
    const uint64_t before = a->read;
    cJSON *event = NULL;
    if (strcmp(data, "[DONE]") == 0)
        return false;
    a->us = clock_us();
    bool going = json_read(&event, data, n) || answer_refuse(a, "is larger than the memory");
    going = going && (cJSON_IsObject(event) || answer_refuse(a, "contains an event that is no JSON object"));
    const cJSON *error = server_at(event, "error");
    if (going && error != NULL) {
        char why[200];
        server_label(why, sizeof why, server_text(error, "message"));
        going = err_set(&a->err, ERR_WORK, "the server stopped: %s", why);
    }
    going = going && r->kind->event(a, event);
    cJSON_Delete(event);
    a->empty = a->read > before ? 0 : a->empty + 1;
    if (going && r->kind->finish != NULL && !r->watched) { /* nothing else is appended before the last event */
        struct event e = {.type = EVENT_PROGRESS, .progress = {"generating", (float)a->read / (float)a->most}};
        append(r, &e, a->us);
    }
    return going && (a->empty < EMPTY_MOST || answer_refuse(a, "has events without tokens and without an end"));
}

/* Posts a request for the rest of the text. Returns false if the run fails; `end`: why it is over, "": it is not. */
static bool
request(struct remote *r, char end[16], struct err *err)
{
    const size_t made = r->n_ids - r->prompt_ids, left = r->info.ctx - r->n_ids;
    const struct server_request asked = {r->facts.id, (uint32_t)(r->wanted - made < left ? r->wanted - made : left),
                                         r->ignore_eos, r->current.sampling, r->current.seed};
    struct server_answer a = {.facts = &r->facts,
                              .word = emit_word,
                              .known = knows_word,
                              .ask = ask_aside,
                              .round = take_round,
                              .user = r,
                              .most = asked.tokens,
                              .first = true,
                              .watched = r->watched};
    r->again = false;
    if (r->http == NULL && !remote_reach(r, r->kind->name, err))
        return false;
    cJSON *json = r->kind->request(&asked), *ids = cJSON_AddArrayToObject(json, r->kind->ids);
    for (size_t i = 0; i < r->n_ids; i++)
        cJSON_AddItemToArray(ids, cJSON_CreateNumber(r->ids[i]));
    char *body = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    r->round_us = clock_us();
    bool ok = body != NULL ? http_stream(r->http, r->kind->path, body, take_event, &a, err)
                           : err_set(err, ERR_WORK, "out of memory for a request");
    cJSON_free(body);
    if (ok && a.err.kind == ERR_NONE && r->kind->finish != NULL && !atomic_load(&r->cancel))
        r->kind->finish(&a);
    take_mail(r, false);
    const bool stopped = r->paused || r->again || leaves(r);
    if (ok && a.err.kind != ERR_NONE)
        ok = err_copy(err, &a.err);
    else if (ok && a.end[0] == '\0' && !stopped)
        ok = err_set(err, ERR_WORK, "the server's answer ended without a reason; is the server still running?");
    const bool full = strcmp(a.end, "tokens") == 0 && asked.tokens < r->wanted - made;
    snprintf(end, 16, "%s", full ? "context" : a.end);
    free(a.tokens);
    free(a.later);
    free(a.steps);
    return ok || stopped;
}

static bool
read_prompt(struct remote *r, struct err *err)
{
    struct server_answer a = {.facts = &r->facts, .word = emit_word, .user = r};
    const struct server_prompt p = {
        .text = r->prompt, .before = r->before, .system = r->info.asked.system, .chat = r->chat};
    r->n_ids = r->prompt_ids = 0;
    bool ok = remote_reach(r, r->kind->name, err) && r->kind->tokens(r->http, &p, &a, err);
    if (!ok && err->kind == ERR_NONE)
        err_set(err, ERR_WORK, "the server gives no tokens of a text: it has no %s",
                r->chat ? "/apply-template or /tokenize" : "/tokenize");
    if (ok && a.err.kind != ERR_NONE)
        ok = err_copy(err, &a.err);
    if (ok && (a.n_tokens == 0 || a.n_tokens >= r->info.ctx))
        ok = err_set(err, ERR_WORK, "the prompt has %zu tokens; the server's context has room for 1 to %" PRIu32,
                     a.n_tokens, r->info.ctx - 1);
    for (size_t i = 0; ok && i < a.n_tokens; i++) {
        emit_token(r, &a.tokens[i], 0, SOURCE_PROMPT, clock_us());
        ok = keep_ids(r, &a.tokens[i], 1) || err_set(err, ERR_WORK, "out of memory for the prompt");
    }
    r->prompt_ids = r->n_ids;
    free(a.tokens);
    return ok;
}

static void
begin_run(struct remote *r)
{
    pthread_mutex_lock(&r->lock);
    r->failure.kind = ERR_NONE;
    r->round = 0;
    pthread_mutex_unlock(&r->lock);
    r->new_run = r->prefilled = r->extended = false;
    r->break_at = r->steps = 0;
    r->run++;
    r->start_us = clock_us();
    r->wanted = r->info.tokens > 0 ? r->info.tokens : UINT32_MAX;
    emit_control(r, RECORDED_RUN, "", r->cause);
    if (strcmp(r->cause, "prompt") == 0)
        emit_control(r, RECORDED_PROMPT, r->before != NULL ? r->before : "", r->prompt);
    if (r->paused)
        emit_control(r, RECORDED_STATE, "", "paused");
}

/* Returns why no further token can come; "": one can. */
static const char *
why_over(const struct remote *r)
{
    return r->n_ids - r->prompt_ids >= r->wanted ? "tokens" : r->n_ids >= r->info.ctx ? "context" : "";
}

/* Fails, unless a control has ended the work. Returns true. */
static bool
fail(struct remote *r, const struct err *err)
{
    char text[sizeof err->text + 8];
    take_mail(r, false);
    if (leaves(r))
        return true;
    pthread_mutex_lock(&r->lock);
    r->failure = *err;
    r->failure.kind = ERR_WORK;
    pthread_mutex_unlock(&r->lock);
    snprintf(text, sizeof text, "error: %s", err->text);
    emit_control(r, RECORDED_END, "", text);
    return true;
}

/* Generates a run to its end, and waits there for controls if the source stays. */
static void
run(struct remote *r)
{
    struct err err = {0};
    char end[16];
    begin_run(r);
    bool failed = !read_prompt(r, &err) && fail(r, &err), over = failed;
    while (!leaves(r) && (!over || r->stay)) {
        const bool holds = over || (r->paused && r->prefilled);
        take_mail(r, holds);
        over = over && (failed || !r->extended);
        if (leaves(r) || over || (r->paused && r->prefilled))
            continue;
        r->extended = false;
        snprintf(end, sizeof end, "%s", why_over(r));
        failed = end[0] == '\0' && !request(r, end, &err) && fail(r, &err);
        over = failed || end[0] != '\0';
        if (over && !failed && !leaves(r))
            emit_control(r, RECORDED_END, "", end);
    }
}

void *
remote_thread(void *user)
{
    struct remote *r = user;
    do
        run(r);
    while (!atomic_load(&r->quits) && r->new_run);
    take_mail(r, false); /* notes, and the end of a race */
    event_log_finish(r->log);
    return NULL;
}
