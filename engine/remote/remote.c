/* Opens a server as a live source, and takes its controls. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/platform.h"
#include "engine/events/sampling_knobs.h"
#include "engine/remote/remote_internal.h"

#define COUNTERS_S 5 /* of a request for counters */
#define POLL_S     1

static struct remote *
remote_of(struct live *live)
{
    return (struct remote *)(void *)live;
}

static const struct remote *
remote_read(const struct live *live)
{
    return (const struct remote *)(const void *)live;
}

/* ---- posting ---- */

/* Checks a change of speculation against the knobs that the policies declare. */
static bool
may_change(const struct remote *r, const struct control *c, struct err *err)
{
    double value;
    if (c->kind == CONTROL_KNOB && sampling_knob_index(c->name) >= 0)
        return knob_parse(&sampling_knobs[sampling_knob_index(c->name)], c->text, &value, err);
    if (r->launcher.command == NULL)
        return err_set(err, ERR_USAGE, "%s changes its speculation only at a start: --launch", r->kind->name);
    if (c->kind == CONTROL_POLICY)
        return run_info_policy(&r->info, c->text) != NULL ||
               err_set(err, ERR_USAGE, "there is no policy '%.32s' for %s", c->text, r->kind->name);
    const struct policy_info *p = &r->info.policies[r->requested.policy];
    const int knob = policy_knob_index(p, c->name);
    return knob >= 0 ? knob_parse(&p->knobs[knob], c->text, &value, err)
                     : err_set(err, ERR_USAGE, "policy %s has no knob '%.16s'", p->name, c->name);
}

static bool
may_post(const struct remote *r, const struct control *c, struct err *err)
{
    const unsigned possible = 1u << CONTROL_PAUSE | 1u << CONTROL_RESUME | 1u << CONTROL_STEP_ROUNDS |
                              1u << CONTROL_BREAK | 1u << CONTROL_PROMPT | 1u << CONTROL_RESTART |
                              1u << CONTROL_EXTEND | 1u << CONTROL_RACE | 1u << CONTROL_NOTE;
    if (c->kind == CONTROL_KNOB || c->kind == CONTROL_POLICY)
        return may_change(r, c, err);
    if (c->kind == CONTROL_EXTEND && c->n == 0)
        return err_set(err, ERR_USAGE, "extend by how many tokens? give a number above 0");
    return (possible >> c->kind & 1u) != 0 ||
           err_set(err, ERR_USAGE, "this is not possible here: %s sends whole rounds of its own setting",
                   r->kind->name);
}

static bool
remote_post(struct live *live, const struct control *c, struct err *err)
{
    struct remote *r = remote_of(live);
    char text[64];
    if (c->kind == CONTROL_QUIT) { /* also without memory */
        pthread_mutex_lock(&r->lock);
        atomic_store(&r->quits, true);
        atomic_store(&r->cancel, true);
        pthread_cond_signal(&r->wake);
        pthread_mutex_unlock(&r->lock);
        return true;
    }
    struct remote_mail *m = calloc(1, sizeof *m);
    if (m != NULL) {
        m->c = *c;
        m->c.text = c->text != NULL ? strdup(c->text) : NULL;
        m->c.before = c->before != NULL ? strdup(c->before) : NULL;
    }
    const bool copied =
        m != NULL && (c->text == NULL || m->c.text != NULL) && (c->before == NULL || m->c.before != NULL);
    pthread_mutex_lock(&r->lock);
    const bool posted = copied ? may_post(r, c, err) : err_set(err, ERR_WORK, "out of memory");
    if (posted) {
        m->asked = r->round;
        if (r->last != NULL)
            r->last->next = m;
        else
            r->first = m;
        r->last = m;
        if (c->kind == CONTROL_KNOB || c->kind == CONTROL_POLICY)
            remote_change(r, &r->requested, c, text, sizeof text);
        r->moves = control_steers(c) ? c->kind != CONTROL_PAUSE : r->moves;
        r->steering += control_steers(c);
        r->interrupts += control_interrupts(c);
        atomic_store(&r->cancel, r->interrupts > 0 || atomic_load(&r->quits));
        pthread_cond_signal(&r->wake);
    }
    pthread_mutex_unlock(&r->lock);
    if (!posted && m != NULL)
        remote_mail_free(m);
    return posted;
}

/* ---- opening and closing ---- */

static void
describe(struct remote *r, const struct remote_options *o)
{
    struct run_info *info = &r->info;
    const struct server_facts *f = &r->facts;
    run_info_begin(info, &o->sampling, o->seed, o->tokens, o->policy);
    snprintf(info->model_path, sizeof info->model_path, "%s", r->url);
    snprintf(info->model_name, sizeof info->model_name, "%s", f->model);
    snprintf(info->types, sizeof info->types, "%s", f->types);
    snprintf(info->backend, sizeof info->backend, "%s", r->kind->name);
    const char *host = strstr(r->url, "://");
    snprintf(info->isa, sizeof info->isa, "%.32s at %.60s", f->version, host != NULL ? host + 3 : r->url);
    info->layers = 1; /* the last one: servers do not tell how many there are */
    info->vocab = f->vocab;
    info->width = f->width;
    info->ctx = f->ctx > 0 ? f->ctx : SERVER_VOCAB;
    info->parameters = f->parameters;
    info->rho = NAN;
    info->asked.chat = o->chat;
    info->asked.ignore_eos = o->ignore_eos;
}

/* Copies what the options have borrowed. */
static bool
copy_options(struct remote *r, const struct remote_options *o)
{
    struct run_info *info = &r->info;
    info->policies = calloc(o->n_policies, sizeof *info->policies);
    info->start_values = calloc((size_t)o->n_policies * POLICY_KNOBS, sizeof *info->start_values);
    info->prompt = strndup(o->prompt, o->prompt_len);
    r->prompt = strndup(o->prompt, o->prompt_len);
    info->asked.system = o->system != NULL ? strdup(o->system) : NULL;
    r->key = o->key != NULL ? strdup(o->key) : NULL;
    if (info->policies == NULL || info->start_values == NULL || info->prompt == NULL || r->prompt == NULL ||
        (o->system != NULL && info->asked.system == NULL) || (o->key != NULL && r->key == NULL))
        return false;
    info->prompt_len = strlen(info->prompt); /* JSON has no NUL */
    info->n_policies = o->n_policies;
    for (uint32_t i = 0; i < o->n_policies; i++) {
        info->policies[i] = o->policies[i];
        for (uint32_t k = 0; k < o->policies[i].n_knobs; k++)
            info->start_values[i * POLICY_KNOBS + k] = o->policies[i].knobs[k].def;
    }
    return true;
}

static const struct live_ops ops;

bool
remote_open(struct live **out, const struct remote_options *o, struct err *err)
{
    *out = NULL;
    struct remote *r = calloc(1, sizeof *r);
    if (r == NULL)
        return err_set(err, ERR_WORK, "out of memory");
    r->live.ops = &ops;
    pthread_mutex_init(&r->lock, NULL);
    platform_condition_open(&r->wake);
    r->launcher = o->launch;
    r->chat = o->chat;
    r->stay = o->stay;
    r->polls = o->counters;
    r->ignore_eos = o->ignore_eos;
    r->watched = o->watched;
    r->paused = o->paused;
    r->moves = !o->paused;
    r->cause = "start";
    r->opens = o->cancel;
    snprintf(r->url, sizeof r->url, "%s", o->url != NULL ? o->url : "");
    snprintf(r->info.policy, sizeof r->info.policy, "%s", o->policy);
    r->info.sampling = o->sampling;
    r->info.seed = o->seed;
    bool ok = copy_options(r, o) || err_set(err, ERR_WORK, "out of memory");
    if (ok)
        settings_begin(&r->current, &r->info);
    r->requested = r->current;
    ok = ok && remote_reach(r, o->kind, err) && event_log_open(&r->log, 0, err);
    if (ok)
        describe(r, o);
    r->opens = NULL;
    http_close(r->http); /* the next one has the flag of requests */
    r->http = NULL;
    ok = ok && remote_connect(r, &r->http, &r->cancel, err);
    if (ok && (r->words = calloc(r->info.vocab / 64 + 1, sizeof *r->words)) == NULL)
        ok = err_set(err, ERR_WORK, "out of memory");
    *out = ok ? &r->live : NULL;
    if (!ok)
        ops.close(&r->live);
    return ok;
}

/* ---- counters ---- */

/* Reads the counters every second, until the server has none. */
static void *
poll_counters(void *user)
{
    struct remote *r = user;
    struct http *http = NULL;
    bool ok = remote_connect(r, &http, &r->quits, NULL);
    while (ok && !atomic_load(&r->quits)) {
        char *text = NULL;
        size_t n;
        int status = 0;
        ok = http_call(http, "/metrics", NULL, COUNTERS_S, &status, &text, &n, NULL) && status == 200;
        cJSON *json = ok ? server_counters(r->kind, text) : NULL;
        pthread_mutex_lock(&r->lock);
        if (!cJSON_PrintPreallocated(json, r->counters, (int)sizeof r->counters, false))
            r->counters[0] = '\0';
        pthread_cond_signal(&r->wake);
        pthread_mutex_unlock(&r->lock);
        cJSON_Delete(json);
        free(text);
        for (int i = 0; i < POLL_S * 10 && ok && !atomic_load(&r->quits); i++)
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    http_close(http);
    return NULL;
}

static void
remote_close(struct live *live)
{
    struct remote *r = remote_of(live);
    if (r->started) {
        remote_post(live, &(struct control){.kind = CONTROL_QUIT}, NULL);
        pthread_join(r->thread, NULL);
        if (r->polls)
            pthread_join(r->poller, NULL);
    }
    http_close(r->http);
    launch_close(r->launch);
    if (r->log != NULL)
        event_log_close(r->log);
    for (struct remote_mail *m; (m = r->first) != NULL;) {
        r->first = m->next;
        remote_mail_free(m);
    }
    run_info_free(&r->info);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->wake);
    free(r->key);
    free(r->prompt);
    free(r->before);
    free(r->ids);
    free(r->words);
    free(r);
}

static bool
remote_start(struct live *live, struct err *err)
{
    struct remote *r = remote_of(live);
    if (pthread_create(&r->thread, NULL, remote_thread, r) != 0)
        return err_set(err, ERR_WORK, "no thread for the server; too little memory, or too many processes?");
    r->started = true;
    r->polls = r->polls && pthread_create(&r->poller, NULL, poll_counters, r) == 0;
    return true;
}

/* ---- what others ask ---- */

static const struct run_info *
remote_info(const struct live *live)
{
    return &remote_read(live)->info;
}

static struct event_log *
remote_log(struct live *live)
{
    return remote_of(live)->log;
}

static void
remote_requested(struct live *live, uint32_t seq, struct settings *out)
{
    struct remote *r = remote_of(live);
    (void)seq;
    pthread_mutex_lock(&r->lock);
    *out = r->requested;
    pthread_mutex_unlock(&r->lock);
}

static bool
remote_chats(const struct live *live)
{
    return remote_read(live)->chat;
}

static const char *
remote_head(const struct live *live, const struct settings *s)
{
    (void)live;
    (void)s;
    return "";
}

static uint32_t
remote_threads(const struct live *live)
{
    (void)live;
    return 0;
}

static bool
remote_moving(struct live *live)
{
    struct remote *r = remote_of(live);
    pthread_mutex_lock(&r->lock);
    const bool moving = !(r->rests && r->first == NULL) && r->moves;
    pthread_mutex_unlock(&r->lock);
    return moving;
}

static bool
remote_resting(struct live *live)
{
    struct remote *r = remote_of(live);
    pthread_mutex_lock(&r->lock);
    const bool resting = r->rests && r->first == NULL;
    pthread_mutex_unlock(&r->lock);
    return resting;
}

static bool
remote_failed(struct live *live, struct err *err)
{
    struct remote *r = remote_of(live);
    pthread_mutex_lock(&r->lock);
    const bool failed = r->failure.kind != ERR_NONE;
    if (failed)
        *err = r->failure;
    pthread_mutex_unlock(&r->lock);
    return failed;
}

static const struct live_ops ops = {.info = remote_info,
                                    .log = remote_log,
                                    .start = remote_start,
                                    .post = remote_post,
                                    .requested = remote_requested,
                                    .chats = remote_chats,
                                    .head = remote_head,
                                    .threads = remote_threads,
                                    .moving = remote_moving,
                                    .resting = remote_resting,
                                    .failed = remote_failed,
                                    .close = remote_close};
