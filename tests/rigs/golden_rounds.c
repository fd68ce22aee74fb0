#include "tests/rigs/golden_rounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_read.h"
#include "base/json_read.h"
#include "policies/registry.h"
#include "tests/rigs/test.h"

#define NEAR 2e-4 /* of a probability */

const cJSON *
golden_item(const cJSON *o, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(o, name);
}

cJSON *
golden_rounds_read(const struct golden_rounds *g, const char *name)
{
    char path[128];
    cJSON *root = NULL;
    struct err err;
    char *text;
    size_t n;
    snprintf(path, sizeof path, "%s%s/expect.json", g->folder, name);
    assert_ok(file_text(path, 16 << 20, &text, &n, &err), err);
    assert_true(json_read(&root, text, n));
    assert_non_null(root);
    free(text);
    return root;
}

static struct engine *
open_engine(const struct golden_rounds *g, const char *name, const cJSON *c, const char *target)
{
    char model[160], head[160];
    struct err err = {0};
    struct engine *engine;
    const char *own = cJSON_GetStringValue(golden_item(c, "head"));
    snprintf(model, sizeof model, "%s%s/%s", g->folder, name, target);
    snprintf(head, sizeof head, "%s%s/%s", g->folder, name, own != NULL ? own : "");
    const struct engine_options options = {.model_path = model,
                                           .backend = g->backend,
                                           .backend_options = {.threads = 1, .gpu = -1, .exact = true},
                                           .wanted = NEEDS(AUX_MTP),
                                           .aux = {[AUX_DRAFT] = own != NULL ? head : NULL}};
    assert_ok(engine_open(&engine, &options, NULL, NULL, &err), err);
    return engine;
}

struct round_seen {
    uint32_t n, accepted, at;
    struct token_event draft[VERIFY_NODES];
    uint32_t n_layers;
    struct layer_event layer[2 * VERIFY_NODES]; /* of a block drafter */
};

/* Compares what else the reference has of a draft of a block drafter: with a Markov head the prediction without its
 * bias, and the forecast of the confidence head. */
static bool
same_predictions(const cJSON *want, const struct round_seen *r, const struct token_event *draft)
{
    const int n = cJSON_GetArraySize(want);
    bool plain = n < 5, sure = n != 4 && n != 6;
    for (uint32_t i = 0; i < r->n_layers; i++) {
        const struct layer_event *e = &r->layer[i];
        if (e->pos != draft->pos)
            continue;
        if (n >= 5 && e->head == 0)
            plain = e->token == (token_t)cJSON_GetArrayItem(want, 3)->valuedouble &&
                    fabs((double)e->confidence - cJSON_GetArrayItem(want, 4)->valuedouble) < NEAR;
        if (!sure && !isnan(e->acceptance))
            sure = fabs((double)e->acceptance - cJSON_GetArrayItem(want, n - 1)->valuedouble) < NEAR;
    }
    return plain && sure;
}

/* Returns whether the draft, with all drafts before it, is in the reference. The order may differ. */
static bool
find_draft(const cJSON *drafts, const struct round_seen *r, int index, int *where)
{
    const cJSON *want = cJSON_GetArrayItem(drafts, index);
    const int parent = (int)cJSON_GetArrayItem(want, 1)->valuedouble;
    int before = 0;
    if (parent >= 0 && !find_draft(drafts, r, parent, &before))
        return false;
    for (uint32_t i = 0; i < r->n; i++)
        if (r->draft[i].token == (token_t)cJSON_GetArrayItem(want, 0)->valuedouble &&
            r->draft[i].parent == (parent < 0 ? 0 : r->draft[before].candidate)) {
            *where = (int)i;
            return fabs((double)r->draft[i].confidence - cJSON_GetArrayItem(want, 2)->valuedouble) < NEAR &&
                   same_predictions(want, r, &r->draft[i]);
        }
    return false;
}

static uint32_t
compare_round(const struct round_seen *r, const cJSON *rounds, const char *name)
{
    const cJSON *want = NULL, *one, *last = NULL;
    cJSON_ArrayForEach(one, rounds)
    {
        want = (uint32_t)golden_item(one, "at")->valuedouble == r->at ? one : want;
        last = one;
    }
    if (want == NULL && r->at > (uint32_t)golden_item(last, "at")->valuedouble)
        return 0; /* at the end of the text the reference has more room for drafts */
    if (want == NULL)
        fail_msg("%s: the reference has no round at %u", name, (unsigned)r->at);
    const cJSON *drafts = golden_item(want, "drafts");
    for (int i = 0, where; i < cJSON_GetArraySize(drafts); i++)
        if (!find_draft(drafts, r, i, &where))
            fail_msg("%s: round at %u: draft %d of the reference differs or is missing", name, (unsigned)r->at, i);
    assert_int_equal(r->n, cJSON_GetArraySize(drafts));
    assert_int_equal(r->accepted, golden_item(want, "accepted")->valuedouble);
    return 1;
}

static uint32_t
compare_run(struct live *s, const cJSON *run, const char *name)
{
    struct event_reader *reader = event_reader_open(s->ops->log(s));
    struct round_seen r = {0};
    uint32_t rounds = 0, n_tokens = (uint32_t)cJSON_GetArraySize(golden_item(run, "ids")) + 1;
    const cJSON *text = golden_item(run, "text");
    session_generate(session_from(s));
    for (const struct event *e; (e = event_reader_next(reader)) != NULL;) {
        if (e->type == EVENT_TOKEN && e->token.source == SOURCE_DRAFT)
            r.draft[r.n++] = e->token;
        if (e->type == EVENT_LAYER && e->layer.model == LAYERS_OF(AUX_BLOCK) && r.n_layers < 2 * VERIFY_NODES)
            r.layer[r.n_layers++] = e->layer;
        if (e->type != EVENT_ROUND)
            continue;
        r.at = n_tokens;
        r.accepted = e->round_end.accepted;
        rounds += compare_round(&r, golden_item(run, "rounds"), name);
        n_tokens += e->round_end.emitted;
        r.n = r.n_layers = 0;
    }
    event_reader_close(reader);
    const struct sequence *q = &session_from(s)->sequences[0];
    assert_int_equal(seq_emitted(q), cJSON_GetArraySize(text));
    for (uint32_t i = 0; i < seq_emitted(q); i++)
        assert_int_equal(q->tokens[q->prompt_tokens + i], cJSON_GetArrayItem(text, (int)i)->valuedouble);
    assert_int_equal(rounds, cJSON_GetArraySize(golden_item(run, "rounds")));
    return rounds;
}

uint32_t
golden_rounds_compare(const struct golden_rounds *g, const char *name, const cJSON *c, const char *target)
{
    struct engine *engine = open_engine(g, name, c, target);
    const uint32_t n = (uint32_t)cJSON_GetArraySize(golden_item(c, "runs")), every = g->step < n ? g->step : n;
    uint32_t rounds = 0, i = 0;
    const cJSON *run, *set;
    cJSON_ArrayForEach(run, golden_item(c, "runs"))
    {
        if (i++ % every != g->seed % every)
            continue;
        const cJSON *own = golden_item(run, "policy"), *prompt = golden_item(run, "prompt");
        struct knob_setting knobs[4];
        struct session_options o = {.policies = policy_registry,
                                    .policy = (own != NULL ? own : golden_item(c, "policy"))->valuestring,
                                    .prompt = prompt->valuestring,
                                    .prompt_len = strlen(prompt->valuestring),
                                    .sampling.top_p = 1,
                                    .tokens = (uint32_t)cJSON_GetArraySize(golden_item(run, "text")),
                                    .ignore_eos = true,
                                    .probe = PROBE_POLICY,
                                    .set = knobs};
        struct live *s;
        struct err err;
        cJSON_ArrayForEach(set, golden_item(run, "set"))
        {
            snprintf(knobs[o.n_set].name, sizeof knobs->name, "%s", set->string);
            snprintf(knobs[o.n_set++].text, sizeof knobs->text, "%g", set->valuedouble);
        }
        assert_ok(session_open(&s, engine, &o, &err), err);
        rounds += compare_run(s, run, name);
        live_close(s);
    }
    engine_close(engine);
    return rounds;
}

void
golden_rounds_refused(const char *head, const char *target, const char *why)
{
    struct engine *engine;
    struct err err = {.kind = ERR_NONE};
    const struct engine_options options = {.model_path = target,
                                           .backend = "cpu",
                                           .backend_options = {.threads = 1, .gpu = -1},
                                           .aux = {[AUX_DRAFT] = head}};
    assert_false(engine_open(&engine, &options, NULL, NULL, &err));
    if (strstr(err.text, why) == NULL || strchr(err.text, '\n') != NULL)
        fail_msg("%s", err.text);
}

void
golden_write_changed(const char *path, const char *file, const char *from, const char *to)
{
    char *text, *at;
    size_t n;
    struct err err;
    assert_ok(file_text(file, 1 << 20, &text, &n, &err), err);
    assert_int_equal(strlen(from), strlen(to));
    at = memmem(text, n, from, strlen(from));
    if (at == NULL)
        fail_msg("%s does not contain '%s'", file, from);
    memcpy(at, to, strlen(to));
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    free(text);
}
