/* Posts controls: parses and checks them, on the thread that posts them and before any lock is taken, and puts them
 * into the mailbox. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "base/program.h"
#include "engine/events/sampling_knobs.h"
#include "engine/session/session_internal.h"

/* ---- the mailbox ---- */

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
    case CONTROL_PROBE:
        s->probe = m->probe;
        s->probe_percent = m->probe_percent;
        break;
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

/* A run of different settings begins with settings that differ in policy, head and the knobs of this policy alone: a
 * trace records no others. */
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

/* ---- reading and posting ---- */

bool
session_find_policy(const struct session *s, const char *name, uint32_t *index, struct err *err)
{
    char missing[POLICY_MISSING];
    for (*index = 0; *index < s->info.n_policies; ++*index) {
        const struct policy_info *p = &s->info.policies[*index];
        if (strcmp(p->name, name) != 0)
            continue;
        if (p->missing == NEEDS_PROFILE && s->engine->profile_refused[0] != '\0')
            return err_set(err, ERR_USAGE, "policy %s needs a profile: %s; `%s train profile` makes one", name,
                           s->engine->profile_refused, program_name());
        if (p->missing == NEEDS(AUX_MTP) && s->engine->model->ahead_refused[0] != '\0')
            return err_set(err, ERR_USAGE, "policy %s cannot use the model's layer for multi-token prediction: %s",
                           name, s->engine->model->ahead_refused);
        return p->missing == 0 ||
               err_set(err, ERR_USAGE, "policy %s needs %s", name, policy_missing(p->missing, missing));
    }
    char list[256] = "";
    size_t n = 0;
    for (uint32_t i = 0; i < s->info.n_policies && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i > 0 ? ", " : "", s->info.policies[i].name);
    return err_set(err, ERR_USAGE, "there is no policy '%.32s'; there are %s", name, list);
}

bool
session_read_knob(const struct session *s, uint32_t policy, const char *name, const char *text, uint32_t *knob,
                  double *value, struct err *err)
{
    const struct policy_info *p = &s->info.policies[policy];
    const int index = policy_knob_index(p, name);
    if (index >= 0) {
        *knob = (uint32_t)index;
        if (!knob_parse(&p->knobs[index], text, value, err))
            return false;
        if (*value > 0 && s->engine->ops->draft_set == NULL && strcmp(p->knobs[index].name, DRAFT_VOCAB) == 0)
            return err_set(err, ERR_USAGE, DRAFT_VOCAB " = %.20s: the %s backend computes all tokens; leave it at 0",
                           text, s->engine->ops->name);
        return true;
    }
    char list[256] = "";
    size_t n = 0;
    for (uint32_t i = 0; i < p->n_knobs && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i > 0 ? ", " : "", p->knobs[i].name);
    return err_set(err, ERR_USAGE, "policy %s has no knob '%.16s'; it has %s", p->name, name,
                   p->n_knobs > 0 ? list : "none");
}

bool
session_check_head(const struct session *s, enum head_mode mode, struct err *err)
{
    return mode != HEADS_TRAINED || s->engine->heads != HEAD_LENS ||
           err_set(
               err, ERR_USAGE,
               "there are no trained heads for %.60s; make some with `%s train heads` and give them with --heads FILE",
               s->engine->model->name, program_name());
}

/* Returns the index of a word among n names; -1: not found. */
static int
find_word(const char *word, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    return -1;
}

static bool
read_probe(const struct control *c, struct mail *m, struct err *err)
{
    return probe_parse(c->text, &m->probe, &m->probe_percent) ||
           err_set(err, ERR_USAGE,
                   "probe '%.16s' is not known; there are off, policy, all, and a share from 1%% to 99%%", c->text);
}

static bool
read_head_mode(const struct session *s, const char *text, enum head_mode *head, struct err *err)
{
    const int mode = find_word(text, head_mode_names, HEAD_MODES);
    *head = (enum head_mode)mode;
    return mode >= 0 ? session_check_head(s, *head, err)
                     : err_set(err, ERR_USAGE, "head '%.16s' is not known; there are policy, lens and trained", text);
}

static bool
read_sampling(const struct control *c, struct mail *m, struct err *err)
{
    m->knob = (uint32_t)sampling_knob_index(c->name);
    return knob_parse(&sampling_knobs[m->knob], c->text, &m->value, err);
}

/* Parses a condition; "round N" becomes a breakpoint. */
static bool
read_until(const struct control *c, struct mail *m, struct err *err)
{
    if (!until_parse(c->text, &m->until, err))
        return false;
    if (m->until.kind == UNTIL_ROUND) {
        m->kind = CONTROL_BREAK;
        m->n = m->until.round;
    }
    return true;
}

static bool
read_pace(const struct control *c, struct mail *m, struct err *err)
{
    char *end;
    m->value = strtod(c->text, &end);
    return (end != c->text && *end == '\0' && m->value >= 0 && m->value <= 1e9) ||
           err_set(err, ERR_USAGE, "speed %.16s: tokens a second are wanted, 0 for as fast as it goes", c->text);
}

static bool
read_note(const struct control *c, struct mail *m, struct err *err)
{
    const size_t n = strlen(c->text);
    if (n >= SESSION_NOTE)
        return err_set(err, ERR_USAGE, "a note has at most %d bytes, this one has %zu", SESSION_NOTE - 1, n);
    m->note = malloc(n + 16);
    if (m->note == NULL)
        return err_set(err, ERR_WORK, "out of memory for the note");
    snprintf(m->note, n + 16, "%" PRIu32 " %s", c->n, c->text);
    return true;
}

/* ---- the setting of a second sequence ---- */

static bool
read_setting(const struct session *s, const char *word, size_t n, struct settings *out, struct err *err)
{
    char name[16], text[64];
    const char *equals = memchr(word, '=', n);
    const size_t n_name = equals != NULL ? (size_t)(equals - word) : n, n_text = equals != NULL ? n - n_name - 1 : 0;
    uint32_t knob;
    double value;
    if (equals == NULL || n_name == 0 || n_name >= sizeof name || n_text == 0 || n_text >= sizeof text)
        return err_set(err, ERR_USAGE, "versus '%.*s': no KNOB=VALUE; give for example exit_layer=4 after the policy",
                       (int)(n < 40 ? n : 40), word);
    memcpy(name, word, n_name);
    name[n_name] = '\0';
    memcpy(text, equals + 1, n_text);
    text[n_text] = '\0';
    if (strcmp(name, "head") == 0)
        return read_head_mode(s, text, &out->head, err);
    if (strcmp(name, "heads") == 0)
        return err_set(err, ERR_USAGE,
                       "versus heads=%s: a model has one set of trained heads at a time, that of --heads; "
                       "head=trained, head=lens and head=policy choose for the second setting",
                       text);
    if (!session_read_knob(s, out->policy, name, text, &knob, &value, err))
        return false;
    out->value[out->policy][knob] = value;
    return true;
}

bool
session_read_versus(const struct session *s, const char *text, const struct settings *first, struct mail *m,
                    struct err *err)
{
    static const char blanks[] = " \t\n";
    char policy[32];
    m->n_settings = 1;
    text += strspn(text, blanks);
    size_t n = strcspn(text, blanks);
    if (n == 0)
        return err_set(err, ERR_USAGE, "versus which setting? POLICY KNOB=VALUE …");
    if (n == 3 && strncmp(text, "off", 3) == 0)
        return text[3 + strspn(text + 3, blanks)] == '\0' ||
               err_set(err, ERR_USAGE, "versus off: takes no further words");
    if (s->batch)
        return err_set(err, ERR_USAGE, "versus compares two settings on one prompt; this is a batch of several");
    if ((m->settings = malloc(SETTINGS_MOST * sizeof *m->settings)) == NULL)
        return err_set(err, ERR_WORK, "out of memory for a second setting");
    m->settings[0] = m->settings[1] = *first;
    m->n_settings = 2;
    snprintf(policy, sizeof policy, "%.*s", (int)(n < sizeof policy ? n : sizeof policy - 1), text);
    if (!session_find_policy(s, policy, &m->settings[1].policy, err))
        return false;
    for (text += n + strspn(text + n, blanks); *text != '\0'; text += n + strspn(text + n, blanks)) {
        n = strcspn(text, blanks);
        if (!read_setting(s, text, n, &m->settings[1], err))
            return false;
    }
    return session_contexts_fit(s, SETTINGS_MOST, err);
}

/* ---- all ---- */

static bool
read_control(const struct session *s, const struct control *c, const struct settings *requested, struct mail *m,
             struct err *err)
{
    const uint32_t policy = requested->policy;
    *m = (struct mail){.kind = c->kind, .n = c->n, .seq = c->seq, .policy = policy};
    switch (c->kind) {
    case CONTROL_KNOB:
        m->sampling = sampling_knob_index(c->name) >= 0;
        return m->sampling ? read_sampling(c, m, err)
                           : session_read_knob(s, policy, c->name, c->text, &m->knob, &m->value, err);
    case CONTROL_POLICY: return session_find_policy(s, c->text, &m->policy, err);
    case CONTROL_PROMPT: return prompt_read(&m->prompt, &s->format, c->text, strlen(c->text), c->before, err);
    case CONTROL_VERSUS: return session_read_versus(s, c->text, requested, m, err);
    case CONTROL_UNTIL: return read_until(c, m, err);
    case CONTROL_PROBE: return read_probe(c, m, err);
    case CONTROL_HEAD: return read_head_mode(s, c->text, &m->head, err);
    case CONTROL_PACE: return read_pace(c, m, err);
    case CONTROL_NOTE: return read_note(c, m, err);
    case CONTROL_EXTEND: return c->n > 0 || err_set(err, ERR_USAGE, "extend by how many tokens? give a number above 0");
    default: return true;
    }
}

bool
session_post(struct session *s, const struct control *c, struct err *err)
{
    struct mail *m = malloc(sizeof *m);
    if (m == NULL && c->kind == CONTROL_QUIT)
        m = atomic_exchange(&s->spare, NULL);
    if (m == NULL)
        return err_set(err, ERR_WORK, "out of memory");
    enum posted posted = POSTED_LATE;
    while (posted == POSTED_LATE) {
        struct settings requested; /* a second setting is made from the first one */
        const uint64_t changes = mailbox_requested(&s->mailbox, c->kind == CONTROL_VERSUS ? 0 : c->seq, &requested);
        const bool ok = read_control(s, c, &requested, m, err);
        m->read_at = changes;
        posted = ok ? mailbox_post(&s->mailbox, m, err) : POSTED_NOT;
        if (posted == POSTED_LATE)
            free(m->settings);
    }
    if (posted == POSTED_NOT)
        mail_free(m);
    return posted == POSTED;
}
