/* Parses and checks controls, on the thread that posts them and before any lock is taken. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/program.h"
#include "engine/events/sampling_knobs.h"
#include "engine/session/session_internal.h"

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
        return knob_parse(&p->knobs[index], text, value, err);
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
           err_set(err, ERR_USAGE,
                   "there are no trained heads for %.60s; make some with `%s train heads` and give them with "
                   "--heads FILE",
                   s->engine->model->name, program_name());
}

/* Returns the index of a word among n names; -1: not found. */
static int
place_of(const char *word, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    return -1;
}

static bool
read_probe(const struct control *c, struct mail *m, struct err *err)
{
    const int mode = place_of(c->text, probe_mode_names, PROBE_MODES);
    m->probe = (enum probe_mode)mode;
    return mode >= 0 || err_set(err, ERR_USAGE, "probe '%.16s' is not known; there are off, policy and all", c->text);
}

static bool
read_head_mode(const struct session *s, const char *text, enum head_mode *head, struct err *err)
{
    const int mode = place_of(text, head_mode_names, HEAD_MODES);
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
        return err_set(
            err, ERR_USAGE,
            "versus heads=%s: a model has one set of trained heads at a time, that of --heads; head=trained, "
            "head=lens and head=policy choose for the second setting",
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
        return err_set(err, ERR_USAGE, "versus which setting? for example layerskip exit_layer=4");
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

bool
session_read_control(const struct session *s, const struct control *c, const struct settings *requested, struct mail *m,
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
