#include "tests/rigs/session_rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/sv_profile.h"
#include "tests/rigs/heads_rig.h"

const char *const session_prompts[SESSION_PROMPTS] = {
    "Once upon a time there was a little girl named Lily. Lily had a red ball, and she",
    "A fox was walking to the mill with a basket of bread. On the way",
    "Question: Tom has 4 keys and finds 5 more. How many",
    "Three mice sat on a wall,",
    "def count_words(words):",
    "In the middle of the forest there stood a little house, and",
    "\"Good morning,\" said the wolf. \"Where are you going so early?\"",
    "On Monday the baker made bread. On Tuesday",
    "The king had three sons. The eldest",
    "| name | age |\n| --- | --- |\n| Tom | 7 |\n",
    "What has four legs but cannot walk?",
    "One, two, three,",
    "Dear Mother,\nI am writing to tell you that",
    "The sea was very rough that night, and the captain",
    "This is the house that Jack built. This is the malt that lay in the house that Jack built. This is",
    "Anna gave Ben an apple. Ben gave Clara",
    "1 + 1 = 2\n2 + 2 = 4\n3 + 3 =",
    "Caf\xC3\xA9, na\xC3\xAFve, \xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x98\x80 and",
    "The",
    "for i in range(10):\n    print(",
};

double
session_rig_knob_value(const struct knob *k, int which, uint64_t *random)
{
    double value = k->def;
    if (which == 1)
        value = k->min;
    else if (which == 2)
        value = k->max;
    else if (which > 2)
        value = k->min + (k->max - k->min) * (double)(splitmix64(random) % 1001) / 1000;
    struct err err;
    return knob_check(k, k->kind == KNOB_REAL ? value : round(value), &value, &err) ? value : k->def;
}

/* What a policy may need beside a draft model, so that every policy runs: the layers before the last one as a companion, and
 * a profile that is made up. */
static bool
add_companion(struct engine *e, struct err *err)
{
    enum { EACH = 24 };
    struct sv_observation seen[EACH * EACH];
    const uint32_t layers = e->model->desc.n_layers;
    if (!engine_has(e, HELPER_COMPANION) && layers > 1)
        e->helpers[HELPER_COMPANION].exit_layer = layers - 1;
    for (int i = 0; i < EACH * EACH; i++) {
        const float s = (float)(i / EACH) / (EACH - 1), a = (float)(i % EACH) / (EACH - 1);
        seen[i] = (struct sv_observation){s, a, (s + a) / 2};
    }
    e->profile = calloc(1, sizeof *e->profile);
    return e->profile != NULL && sv_profile_make(e->profile, 6, 5, seen, EACH * EACH, err);
}

bool
session_rig_engine_with(struct engine **engine, const char *model_path, const char *draft, const char *backend,
                        uint32_t threads, struct err *err)
{
    const struct engine_options options = {.model_path = model_path,
                                           .backend = backend,
                                           .backend_options = {.threads = threads, .gpu = -1},
                                           .helpers = {[HELPER_DRAFT] = draft}};
    return engine_open(engine, &options, NULL, NULL, err) &&
           (!engine_has(*engine, HELPER_DRAFT) || add_companion(*engine, err)) && heads_rig_accept(*engine, 1, 9, err);
}

bool
session_rig_engine(struct engine **engine, const char *model_path, const char *backend, uint32_t threads,
                   struct err *err)
{
    char *beside = engine_sibling(model_path, HELPER_DRAFT);
    const bool ok = session_rig_engine_with(engine, model_path, beside, backend, threads, err);
    free(beside);
    if (!ok || engine_has(*engine, HELPER_DRAFT) || (*engine)->model->desc.n_layers < 2)
        return ok;
    (*engine)->helpers[HELPER_DRAFT].exit_layer = 1;
    return add_companion(*engine, err) && heads_rig_accept(*engine, 1, 9, err);
}

/* ---- what event.h promises ---- */

struct promises {
    struct session_rig_result *out;
    const struct run_info *info;
    uint8_t *seen; /* by token id */
    uint32_t vocab, layers;
    uint64_t number, t_us;
    uint32_t run, round, next_pos, drafts, verdicts;
    uint32_t accepted, committed; /* drafts in this round; tokens in this round */
    bool judged, own, whole;      /* the round's verification began; the target's own token, its ROUND came */
    bool paused;
    bool other_model; /* drafts may be nobody's layer */
    token_t draft[VERIFY_NODES];
};

static void
broken(struct promises *p, const struct event *e, const char *what)
{
    if (p->out->wrong[0] == '\0')
        snprintf(p->out->wrong, sizeof p->out->wrong, "event %llu, run %u, round %u: %s", (unsigned long long)e->number,
                 (unsigned)e->run, (unsigned)e->round, what);
}

static void
known(struct promises *p, const struct event *e, token_t token)
{
    if (token == TOKEN_NONE)
        return;
    if (token < 0 || (uint32_t)token >= p->vocab || !p->seen[token])
        broken(p, e, "a token id before its VOCAB event");
}

static void
commit(struct promises *p, token_t token)
{
    struct session_rig_result *out = p->out;
    if (out->n == out->room) {
        size_t room = out->room > 0 ? out->room * 2 : 256;
        token_t *more = realloc(out->tokens, room * sizeof *more);
        if (more == NULL)
            return;
        out->tokens = more;
        out->room = room;
    }
    out->tokens[out->n++] = token;
    p->next_pos++;
    p->committed++;
}

static void
check_control(struct promises *p, const struct event *e)
{
    const struct control_event *c = &e->control;
    if (c->applied_round < e->round || e->round > p->round + 1) /* a round may have begun and said nothing yet */
        broken(p, e, "a control that was applied before it was asked for, or asked for in a round to come");
    bool known = false;
    for (size_t i = 0; control_names[i] != NULL; i++)
        known = known || strcmp(c->name, control_names[i]) == 0;
    for (uint32_t i = 0; i < p->info->n_policies; i++)
        known = known || policy_knob_index(&p->info->policies[i], c->name) >= 0;
    if (!known)
        broken(p, e, "a control that is no knob and that control_names does not have");
    if (strcmp(c->name, "end") == 0)
        snprintf(p->out->end, sizeof p->out->end, "%s", c->new_text);
    if (strcmp(c->name, "state") == 0)
        p->paused = strcmp(c->new_text, "paused") == 0;
}

static void
check_round(struct promises *p, const struct event *e)
{
    const struct round_event *r = &e->round_end;
    if (p->verdicts + (r->drafted - r->verified) != p->drafts)
        broken(p, e, "a round without all verdicts of what it verified");
    if (r->emitted == 0 || r->emitted != p->committed || r->accepted != p->accepted)
        broken(p, e, "a round that says other counts than its tokens and verdicts");
    if (r->accepted > r->verified || r->verified > r->drafted || r->drafted > p->drafts)
        broken(p, e, "a round that accepts more than it verified, or verifies more than it drafted");
    if (!(r->layers_loaded >= (float)p->layers) || !(r->heads_loaded >= 1))
        broken(p, e, "a round with less work than one verification");
    p->whole = true;
}

static void
check_token(struct promises *p, const struct event *e)
{
    const struct token_event *t = &e->token;
    known(p, e, t->token);
    if (t->source == SOURCE_DRAFT) {
        if (p->judged)
            broken(p, e, "a draft after verification began");
        if (t->candidate != (int32_t)++p->drafts || t->parent < 0 || t->parent >= t->candidate)
            broken(p, e, "a draft whose node numbers are not in order");
        if (t->pos < p->next_pos || t->accepted != -1 || t->exit_layer > (int32_t)p->layers ||
            (t->exit_layer < 1 && (t->exit_layer != -1 || !p->other_model)))
            broken(p, e, "a draft with a wrong position, fate or exit layer");
        if (t->candidate > 0 && t->candidate < VERIFY_NODES)
            p->draft[t->candidate] = t->token;
        return;
    }
    if (t->pos != p->next_pos)
        broken(p, e, "a committed token out of place");
    if (t->source == SOURCE_PROMPT) {
        p->next_pos++;
        return;
    }
    p->judged = p->own = true;
    commit(p, t->token);
}

static void
check_layer(struct promises *p, const struct event *e)
{
    const struct layer_event *l = &e->layer;
    known(p, e, l->token);
    for (int i = 0; i < GUESS_TOP; i++)
        known(p, e, l->top[i]);
    if (l->layer < 1 || l->layer > (int32_t)p->layers || !(l->confidence > 0 && l->confidence <= 1.0001f) ||
        l->entropy < -1e-4f)
        broken(p, e, "a guess with a layer, confidence or entropy that cannot be");
    if (l->probed_by == PROBED_SCOPE && (isnan(l->kl_final) || l->rank_final < 0 || l->final_agrees < 0))
        broken(p, e, "the scope's probe without its relation to the final layer");
}

static void
check(struct promises *p, const struct event *e)
{
    if (e->number != p->number + 1)
        broken(p, e, "numbers are not consecutive");
    p->number = e->number;
    bool begins = e->type == EVENT_CONTROL && strcmp(e->control.name, "run") == 0;
    if (begins) {
        p->run++;
        p->round = p->next_pos = p->drafts = p->verdicts = 0;
        p->t_us = 0;
        p->judged = false;
        p->whole = true;
        p->committed = p->accepted = 0;
        p->out->n = 0;
        p->out->runs++;
    }
    if (e->run != p->run)
        broken(p, e, "a wrong run number");
    if (e->t_us < p->t_us)
        broken(p, e, "time runs backwards");
    p->t_us = e->t_us;
    if (e->type == EVENT_CONTROL)
        check_control(p, e);
    if (e->type == EVENT_CONTROL || e->type == EVENT_PROGRESS)
        return;
    if (e->round != p->round) {
        if (e->round != p->round + 1 || !p->whole)
            broken(p, e, "a round that is not the next one, or the last one has no ROUND event");
        p->round = e->round;
        p->drafts = p->verdicts = p->accepted = p->committed = 0;
        p->judged = p->own = p->whole = false;
    } else if (p->whole && p->round > 0) {
        broken(p, e, "something of a round after its ROUND event");
    }
    if (p->paused && p->round > 0 && (e->type == EVENT_TOKEN || e->type == EVENT_VERDICT || e->type == EVENT_ROUND))
        broken(p, e, "work while paused");
    switch (e->type) {
    case EVENT_VOCAB:
        if (e->vocab.token < 0 || (uint32_t)e->vocab.token >= p->vocab || p->seen[e->vocab.token])
            broken(p, e, "a VOCAB event for an id out of range or seen before");
        else
            p->seen[e->vocab.token] = 1;
        break;
    case EVENT_TOKEN: check_token(p, e); break;
    case EVENT_VERDICT:
        if (p->own || e->verdict.candidate != (int32_t)++p->verdicts || (e->verdict.committed && !e->verdict.accepted))
            broken(p, e, "verdicts out of order, after the target's token, or committed and not accepted");
        else if (e->verdict.committed)
            commit(p, p->draft[e->verdict.candidate]);
        p->accepted += e->verdict.accepted == 1;
        p->judged = true;
        break;
    case EVENT_LAYER: check_layer(p, e); break;
    case EVENT_ROUND: check_round(p, e); break;
    default: break;
    }
}

/* ---- running ---- */

static bool
follow(struct session *s, struct event_reader *reader, struct promises *p, session_rig_hook hook, void *user)
{
    for (;;) {
        bool finished = event_log_finished(session_log(s));
        const struct event *e;
        while ((e = event_reader_next(reader)) != NULL) {
            check(p, e);
            metrics_event(&p->out->metrics, e);
            p->out->events++;
            if (hook != NULL)
                hook(user, s, e);
        }
        if (finished)
            return true;
        event_reader_wait(reader, 1000);
    }
}

bool
session_rig_generate(struct engine *engine, const struct session_options *options, session_rig_hook hook, void *user,
                     struct session_rig_result *out, struct err *err)
{
    *out = (struct session_rig_result){0};
    struct session *s;
    if (!session_open(&s, engine, options, err))
        return false;
    struct promises p = {.out = out,
                         .info = session_info(s),
                         .vocab = session_info(s)->vocab,
                         .layers = session_info(s)->layers,
                         .other_model = session_info(s)->helpers[HELPER_DRAFT].path[0] != '\0'};
    metrics_begin(&out->metrics, p.layers, session_info(s)->rho);
    p.seen = calloc(p.vocab, 1);
    struct event_reader *reader = event_reader_open(session_log(s));
    bool ok = p.seen != NULL && reader != NULL && session_start(s, err) && follow(s, reader, &p, hook, user);
    struct err failure;
    if (ok && session_failed(s, &failure)) {
        *err = failure;
        ok = false;
    }
    event_reader_close(reader);
    session_close(s);
    free(p.seen);
    if (!ok)
        session_rig_free(out);
    return ok;
}

void
session_rig_free(struct session_rig_result *out)
{
    free(out->tokens);
    out->tokens = NULL;
    out->n = out->room = 0;
}
