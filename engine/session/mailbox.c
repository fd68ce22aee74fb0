#include "engine/session/mailbox.h"

#include <stdlib.h>

#include "engine/base/condition.h"

void
mailbox_open(struct mailbox *box)
{
    pthread_mutex_init(&box->lock, NULL);
    condition_open(&box->wake);
}

void
mailbox_close(struct mailbox *box)
{
    mail_free(box->first);
    pthread_mutex_destroy(&box->lock);
    pthread_cond_destroy(&box->wake);
}

void
mail_free(struct mail *m)
{
    while (m != NULL) {
        struct mail *next = m->next;
        prompt_free(&m->prompt);
        free(m->note);
        free(m);
        m = next;
    }
}

static bool
interrupts(const struct mail *m)
{
    return m->kind == CONTROL_PROMPT || m->kind == CONTROL_RESTART || m->kind == CONTROL_VERSUS ||
           m->kind == CONTROL_QUIT;
}

static uint32_t
place_of(const struct mailbox *box, uint32_t seq)
{
    return box->versus && seq == 1 ? 1 : 0;
}

static enum posted
may_post(const struct mailbox *box, const struct mail *m, struct err *err)
{
    if (m->kind == CONTROL_KNOB && m->policy != box->policy[place_of(box, m->seq)])
        return POSTED_LATE;
    if (m->kind != CONTROL_BREAK || m->n == 0 || m->n >= box->round || box->interrupts > 0) /* of a run to come */
        return POSTED;
    err_set(err, ERR_USAGE, "round %u is past, this is round %u; restart to stop there", (unsigned)m->n,
            (unsigned)box->round);
    return POSTED_NOT;
}

enum posted
mailbox_post(struct mailbox *box, struct mail *m, struct err *err)
{
    pthread_mutex_lock(&box->lock);
    const enum posted posted = may_post(box, m, err);
    if (posted == POSTED) {
        m->next = NULL;
        m->asked_round = box->round;
        *(box->last != NULL ? &box->last->next : &box->first) = m;
        box->last = m;
        if (m->kind == CONTROL_POLICY)
            box->policy[place_of(box, m->seq)] = m->policy;
        if (m->kind == CONTROL_VERSUS) {
            box->versus = m->versus.on;
            box->policy[1] = m->versus.policy;
        }
        box->interrupts += interrupts(m);
        atomic_store(&box->cancel, box->interrupts > 0);
        pthread_cond_signal(&box->wake);
    }
    pthread_mutex_unlock(&box->lock);
    return posted;
}

uint32_t
mailbox_policy(struct mailbox *box, uint32_t seq)
{
    pthread_mutex_lock(&box->lock);
    const uint32_t policy = box->policy[place_of(box, seq)];
    pthread_mutex_unlock(&box->lock);
    return policy;
}

struct mail *
mailbox_take(struct mailbox *box, uint64_t until_us)
{
    pthread_mutex_lock(&box->lock);
    while (box->first == NULL && until_us > 0 && condition_wait(&box->wake, &box->lock, until_us))
        ;
    struct mail *m = box->first;
    if (m != NULL) {
        box->first = m->next;
        if (box->first == NULL)
            box->last = NULL;
        m->next = NULL;
        box->interrupts -= interrupts(m);
        atomic_store(&box->cancel, box->interrupts > 0);
        if (interrupts(m))
            box->round = 0; /* what is asked for from here on is asked of the new run */
    }
    pthread_mutex_unlock(&box->lock);
    return m;
}

void
mailbox_round(struct mailbox *box, uint32_t number)
{
    pthread_mutex_lock(&box->lock);
    box->round = number;
    pthread_mutex_unlock(&box->lock);
}
