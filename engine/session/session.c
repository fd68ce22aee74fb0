/* Opens, starts and closes a session; contains its thread. */
#include "engine/session/session.h"

#include <stdlib.h>

#include "engine/session/session_internal.h"

bool
session_open(struct session **out, struct engine *engine, const struct session_options *o, struct err *err)
{
    *out = NULL;
    struct session *s = calloc(1, sizeof *s);
    if (s == NULL)
        return err_set(err, ERR_WORK, "out of memory");
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
        session_close(s);
        return false;
    }
    s->mailbox.moving = !o->paused;
    *out = s;
    return true;
}

const struct run_info *
session_info(const struct session *s)
{
    return &s->info;
}

uint32_t
session_threads(const struct session *s)
{
    const struct engine *e = s->engine;
    return e->ops->threads != NULL ? e->ops->threads(e->backend) : e->threads;
}

struct event_log *
session_log(struct session *s)
{
    return s->log;
}

void
session_requested(struct session *s, uint32_t seq, struct settings *out)
{
    mailbox_requested(&s->mailbox, seq, out);
}

bool
session_chats(const struct session *s)
{
    return s->format.chat != NULL;
}

bool
session_moving(struct session *s)
{
    return mailbox_moving(&s->mailbox);
}

bool
session_resting(struct session *s)
{
    return mailbox_resting(&s->mailbox);
}

bool
session_failed(struct session *s, struct err *err)
{
    pthread_mutex_lock(&s->failure_lock);
    const bool failed = session_has_failed(s);
    if (failed)
        *err = s->failure;
    pthread_mutex_unlock(&s->failure_lock);
    return failed;
}

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

bool
session_start(struct session *s, struct err *err)
{
    if (pthread_create(&s->thread, NULL, session_thread, s) != 0)
        return err_set(err, ERR_WORK, "no thread for the engine; too little memory, or too many processes?");
    s->started = true;
    return true;
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

void
session_close(struct session *s)
{
    if (s == NULL)
        return;
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
