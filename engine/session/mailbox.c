#include "engine/session/mailbox.h"

#include <stdlib.h>

#include <string.h>

#include "engine/base/condition.h"
#include "engine/events/sampling_knobs.h"

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
        free(m->second);
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

/* Does it decide whether the session generates? *moving: does it, then? */
static bool
steers(const struct mail *m, bool *moving)
{
    *moving = m->kind != CONTROL_PAUSE;
    return m->kind == CONTROL_PAUSE || m->kind == CONTROL_RESUME || m->kind == CONTROL_STEP_ROUNDS ||
           m->kind == CONTROL_STEP_TOKEN || m->kind == CONTROL_UNTIL;
}

static uint32_t
place_of(const struct mailbox *box, uint32_t seq)
{
    return box->versus && seq == 1 ? 1 : 0;
}

void
settings_second(const struct settings *first, const struct versus *v, struct settings *second)
{
    *second = *first;
    second->policy = v->policy;
    if (v->head_given)
        second->head = v->head;
    for (uint32_t k = 0; k < POLICY_KNOBS; k++)
        if (v->given[k])
            second->value[v->policy][k] = v->value[k];
}

/* ---- from any thread ---- */

/* A run of two settings begins with a second one that differs from the first in the knobs of its policy alone: so a trace
 * says it. */
static void
request_run(struct mailbox *box, struct mail *m)
{
    struct settings *first = &box->requested[0], *second = &box->requested[1];
    if (m->kind == CONTROL_VERSUS) {
        box->versus = m->versus.on;
        settings_second(first, &m->versus, second);
    }
    m->versus.on = box->versus;
    if (!box->versus)
        return;
    for (uint32_t p = 0; p < POLICIES_MOST; p++)
        if (p != second->policy)
            memcpy(second->value[p], first->value[p], sizeof second->value[p]);
    *m->second = *second;
}

static void
request(struct mailbox *box, struct mail *m)
{
    const bool common = m->kind == CONTROL_PROBE || (m->kind == CONTROL_KNOB && m->sampling);
    if (m->kind == CONTROL_PROMPT || m->kind == CONTROL_RESTART || m->kind == CONTROL_VERSUS) {
        request_run(box, m);
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        struct settings *r = &box->requested[i];
        if (!common && i != place_of(box, m->seq))
            continue;
        if (m->kind == CONTROL_POLICY)
            r->policy = m->policy;
        else if (m->kind == CONTROL_HEAD)
            r->head = m->head;
        else if (m->kind == CONTROL_PROBE)
            r->probe = m->probe;
        else if (m->kind == CONTROL_KNOB && m->sampling)
            sampling_knob_set(&r->sampling, &r->seed, (int)m->knob, m->value);
        else if (m->kind == CONTROL_KNOB)
            r->value[m->policy][m->knob] = m->value;
    }
}

static bool
changes_setting(const struct mail *m)
{
    return m->kind == CONTROL_KNOB || m->kind == CONTROL_POLICY || m->kind == CONTROL_HEAD || m->kind == CONTROL_PROBE;
}

static enum posted
may_post(const struct mailbox *box, struct mail *m, struct err *err)
{
    if (m->kind == CONTROL_KNOB && !m->sampling && m->policy != box->requested[place_of(box, m->seq)].policy)
        return POSTED_LATE;
    const bool begins = interrupts(m) && m->kind != CONTROL_QUIT;
    if (begins && (box->versus || m->versus.on) && (m->second = malloc(sizeof *m->second)) == NULL) {
        err_set(err, ERR_WORK, "out of memory for a second setting");
        return POSTED_NOT;
    }
    if (m->kind != CONTROL_BREAK || m->n == 0 || m->n >= box->round || box->interrupts > 0) /* of a run to come */
        return POSTED;
    err_set(err, ERR_USAGE, "round %u is past, this is round %u; restart to stop there", (unsigned)m->n,
            (unsigned)box->round);
    return POSTED_NOT;
}

enum posted
mailbox_post(struct mailbox *box, struct mail *m, struct err *err)
{
    bool moving;
    pthread_mutex_lock(&box->lock);
    const enum posted posted = may_post(box, m, err);
    if (posted == POSTED) {
        m->next = NULL;
        m->asked_round = box->round;
        if (changes_setting(m))
            m->seq = place_of(box, m->seq);
        *(box->last != NULL ? &box->last->next : &box->first) = m;
        box->last = m;
        request(box, m);
        if (steers(m, &moving)) {
            box->steering++;
            box->moving = moving;
        }
        box->interrupts += interrupts(m);
        atomic_store(&box->cancel, box->interrupts > 0);
        pthread_cond_signal(&box->wake);
    }
    pthread_mutex_unlock(&box->lock);
    return posted;
}

void
mailbox_requested(struct mailbox *box, uint32_t seq, struct settings *out)
{
    pthread_mutex_lock(&box->lock);
    *out = box->requested[place_of(box, seq)];
    pthread_mutex_unlock(&box->lock);
}

bool
mailbox_moving(struct mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    const bool moving = !(box->resting && box->first == NULL) && box->moving;
    pthread_mutex_unlock(&box->lock);
    return moving;
}

bool
mailbox_resting(struct mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    const bool resting = box->resting && box->first == NULL;
    pthread_mutex_unlock(&box->lock);
    return resting;
}

/* ---- from the engine's ---- */

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
        box->resting = false;
        bool moving;
        box->steering -= steers(m, &moving);
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

void
mailbox_paused(struct mailbox *box, bool paused)
{
    pthread_mutex_lock(&box->lock);
    if (box->steering == 0)
        box->moving = !paused;
    pthread_mutex_unlock(&box->lock);
}

void
mailbox_rest(struct mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    box->resting = true;
    pthread_mutex_unlock(&box->lock);
}

void
mailbox_alone(struct mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    box->versus = false;
    pthread_mutex_unlock(&box->lock);
}
