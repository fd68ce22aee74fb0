/* Opens, starts and closes a session; contains its thread. */
#include "engine/session/session.h"

#include <stdlib.h>

#include "engine/session/session_internal.h"

static void *
session_thread(void *user)
{
    struct session *s = user;
    do
        session_generate(s);
    while (s->asked.new_run && !s->asked.quit);
    event_log_finish(s->log);
    return NULL;
}

static const struct run_info *
info(const struct live *live)
{
    return &session_from(live)->info;
}

static struct event_log *
log_of(struct live *live)
{
    return session_from(live)->log;
}

static bool
start(struct live *live, struct err *err)
{
    struct session *s = session_from(live);
    if (pthread_create(&s->thread, NULL, session_thread, s) != 0)
        return err_set(err, ERR_WORK, "no thread for the engine; too little memory, or too many processes?");
    s->started = true;
    return true;
}

static bool
post(struct live *live, const struct control *c, struct err *err)
{
    return session_post(session_from(live), c, err);
}

static void
requested(struct live *live, uint32_t seq, struct settings *out)
{
    mailbox_requested(&session_from(live)->mailbox, seq, out);
}

static bool
chats(const struct live *live)
{
    return session_from(live)->format.chat != NULL;
}

static const char *
head(const struct live *live, const struct settings *settings)
{
    return session_head(session_from(live), settings);
}

/* Fewer than those of info() while other processes need the processors. */
static uint32_t
threads(const struct live *live)
{
    const struct engine *e = session_from(live)->engine;
    return e->ops->threads != NULL ? e->ops->threads(e->backend) : e->threads;
}

static bool
moving(struct live *live)
{
    return mailbox_moving(&session_from(live)->mailbox);
}

static bool
resting(struct live *live)
{
    return mailbox_resting(&session_from(live)->mailbox);
}

static bool
failed(struct live *live, struct err *err)
{
    struct session *s = session_from(live);
    pthread_mutex_lock(&s->failure_lock);
    const bool has_failed = session_has_failed(s);
    if (has_failed)
        *err = s->failure;
    pthread_mutex_unlock(&s->failure_lock);
    return has_failed;
}

/* Copies everything that the first sequence's policies have learned to the caller's memory, which is unchanged if
 * memory runs out. */
static void
keep_learned(struct session *s)
{
    struct policy_memory *m = s->memory;
    if (m != NULL && m->learned == NULL && (m->learned = calloc(s->info.n_policies, sizeof *m->learned)) != NULL)
        m->n = s->info.n_policies;
    for (uint32_t i = 0; m != NULL && i < m->n; i++) {
        const struct policy *p = &s->sequences[0].policies[i];
        void *learned = p->ops->save != NULL ? p->ops->save(p) : NULL;
        if (learned == NULL)
            continue;
        free(m->learned[i]);
        m->learned[i] = learned;
    }
}

void
policy_memory_free(struct policy_memory *m)
{
    for (uint32_t i = 0; i < m->n; i++)
        free(m->learned[i]);
    free(m->learned);
    *m = (struct policy_memory){0};
}

static void
close_session(struct live *live)
{
    struct session *s = session_from(live);
    if (s->started) {
        session_post(s, &(struct control){.kind = CONTROL_QUIT}, NULL);
        pthread_join(s->thread, NULL);
    }
    session_close_contexts(s);
    event_log_close(s->log);
    keep_learned(s);
    session_close_sequences(s);
    run_info_free(&s->info);
    mailbox_close(&s->mailbox);
    free(atomic_load(&s->spare));
    mail_free(s->changes);
    for (uint32_t i = 0; i < s->run.n_prompts; i++)
        prompt_free(&s->run.prompts[i]);
    free(s->run.prompts);
    run_forget_left(&s->run);
    prompt_format_close(&s->format);
    free(s->emitted_ids);
    free(s->probing.predictions);
    free(s->probing.probes);
    pthread_mutex_destroy(&s->failure_lock);
    free(s);
}

static const struct live_ops ops = {.info = info,
                                    .log = log_of,
                                    .start = start,
                                    .post = post,
                                    .requested = requested,
                                    .chats = chats,
                                    .head = head,
                                    .threads = threads,
                                    .moving = moving,
                                    .resting = resting,
                                    .failed = failed,
                                    .close = close_session};

bool
session_open(struct live **out, struct engine *engine, const struct session_options *o, struct err *err)
{
    *out = NULL;
    struct session *s = calloc(1, sizeof *s);
    if (s == NULL)
        return err_set(err, ERR_WORK, "out of memory");
    s->live.ops = &ops;
    s->engine = engine;
    s->ignore_eos = o->ignore_eos;
    s->stay = o->stay;
    s->timing = (struct timing){.paused = o->paused, .pace = o->pace};
    pthread_mutex_init(&s->failure_lock, NULL);
    mailbox_open(&s->mailbox);
    atomic_store(&s->spare, malloc(sizeof(struct mail)));
    if (atomic_load(&s->spare) == NULL)
        err_set(err, ERR_WORK, "out of memory");
    if (atomic_load(&s->spare) == NULL || !session_open_parts(s, o, err)) {
        close_session(&s->live);
        return false;
    }
    s->mailbox.moving = !o->paused;
    *out = &s->live;
    return true;
}
