#include "engine/session/mailbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "engine/events/sampling_knobs.h"

void
mailbox_open(struct mailbox *box)
{
    pthread_mutex_init(&box->lock, NULL);
    platform_condition_open(&box->wake);
    box->n_settings = 1;
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
        free(m->settings);
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

/* Returns whether the control changes `moving`; *moving: its new value. */
static bool
steers(const struct mail *m, bool *moving)
{
    *moving = m->kind != CONTROL_PAUSE;
    return m->kind == CONTROL_PAUSE || m->kind == CONTROL_RESUME || m->kind == CONTROL_STEP_ROUNDS ||
           m->kind == CONTROL_STEP_TOKEN || m->kind == CONTROL_UNTIL;
}

static bool
begins_run(const struct mail *m)
{
    return interrupts(m) && m->kind != CONTROL_QUIT;
}

static uint32_t
place_of(const struct mailbox *box, uint32_t seq)
{
    return seq < box->n_settings ? seq : 0;
}

bool
mail_is_common(const struct mail *m)
{
    return m->kind == CONTROL_PROBE || (m->kind == CONTROL_KNOB && m->sampling);
}

void
mail_apply(const struct mail *m, struct settings *s)
{
    switch (m->kind) {
    case CONTROL_POLICY: s->policy = m->policy; break;
    case CONTROL_HEAD: s->head = m->head; break;
    case CONTROL_PROBE: s->probe = m->probe; break;
    case CONTROL_KNOB:
        if (m->sampling)
            sampling_knob_set(&s->sampling, &s->seed, (int)m->knob, m->value);
        else
            s->value[m->policy][m->knob] = m->value;
        break;
    default: break;
    }
}

/* ---- from any thread ---- */

/* A run of different settings begins with settings that differ in policy, head and the knobs of this policy alone: a trace records no
 * others. */
static void
request_run(struct mailbox *box, struct mail *m)
{
    if (m->kind == CONTROL_VERSUS)
        box->n_settings = m->n_settings;
    m->n_settings = box->n_settings;
    box->changes++;
    for (uint32_t i = 1; i < box->n_settings; i++) {
        struct settings own = m->kind == CONTROL_VERSUS ? m->settings[i] : box->requested[i], *r = &box->requested[i];
        *r = box->requested[0];
        r->policy = own.policy;
        r->head = own.head;
        memcpy(r->value[own.policy], own.value[own.policy], sizeof own.value[own.policy]);
        m->settings[i] = *r;
    }
}

static bool
changes_setting(const struct mail *m)
{
    return m->kind == CONTROL_KNOB || m->kind == CONTROL_POLICY || m->kind == CONTROL_HEAD || m->kind == CONTROL_PROBE;
}

/* Was the control parsed with settings that may have changed since? */
static bool
depends_on_settings(const struct mail *m)
{
    return (m->kind == CONTROL_KNOB && !m->sampling) || (m->kind == CONTROL_VERSUS && m->n_settings > 1);
}

static enum posted
may_post(const struct mailbox *box, struct mail *m, struct err *err)
{
    if (depends_on_settings(m) && m->read_at != box->changes)
        return POSTED_LATE;
    if (begins_run(m) && box->n_settings > 1 && m->settings == NULL &&
        (m->settings = malloc(SETTINGS_MOST * sizeof *m->settings)) == NULL) {
        err_set(err, ERR_WORK, "out of memory for a second setting");
        return POSTED_NOT;
    }
    if (m->kind != CONTROL_BREAK || m->n == 0 || m->n >= box->round ||
        box->interrupts > 0) /* a breakpoint of the next run is never past */
        return POSTED;
    err_set(err, ERR_USAGE, "round %u is past, this is round %u; restart to stop there", (unsigned)m->n,
            (unsigned)box->round);
    return POSTED_NOT;
}

static void
request_change(struct mailbox *box, struct mail *m)
{
    m->seq = place_of(box, m->seq);
    for (uint32_t i = 0; i < box->n_settings; i++)
        if (mail_is_common(m) || i == m->seq)
            mail_apply(m, &box->requested[i]);
    box->changes++;
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
        *(box->last != NULL ? &box->last->next : &box->first) = m;
        box->last = m;
        if (begins_run(m))
            request_run(box, m);
        if (changes_setting(m))
            request_change(box, m);
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

uint64_t
mailbox_requested(struct mailbox *box, uint32_t seq, struct settings *out)
{
    pthread_mutex_lock(&box->lock);
    const uint64_t changes = box->changes;
    *out = box->requested[place_of(box, seq)];
    pthread_mutex_unlock(&box->lock);
    return changes;
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

/* ---- from the engine's thread ---- */

struct mail *
mailbox_take(struct mailbox *box, uint64_t until_us)
{
    pthread_mutex_lock(&box->lock);
    while (box->first == NULL && until_us > 0 && platform_condition_wait(&box->wake, &box->lock, until_us))
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
            box->round = 0; /* later controls belong to the new run */
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
mailbox_share(struct mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    box->n_settings = 1;
    pthread_mutex_unlock(&box->lock);
}
