/* Rounds of feature drafters against a reference in PyTorch (tests/golden/make_eagle_golden.py): the greedy text, every
 * drafted token with its parent and probability, and the number of accepted drafts, for each format of EAGLE-3 heads
 * and each family with layers for multi-token prediction, on the CPU and on a GPU. An emulated GPU computes one run of
 * a quarter of them, which the seed chooses. The tests run in the repository's root. */
#include <cjson/cJSON.h>
#include <limits.h>
#include <math.h>
#include <unistd.h>

#include "base/file_read.h"
#include "base/json_read.h"
#include "engine/model/model_open.h"
#include "engine/session/session_internal.h"
#include "policies/registry.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/golden_logits.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define FOLDER "tests/golden/eagle/"
#define NEAR   2e-4 /* of a probability */

static const char *const cases[] = {"specforge", "angelslim",    "speculators", "gguf",
                                    "glm4_moe",  "ernie4_5_moe", "qwen3_5",     "qwen3_next"};

static const char *backend;
static uint64_t seed;
static uint32_t step; /* one run in `step` is compared; ONE_RUN: one run per case, of a quarter of the cases */
#define ONE_RUN 1000

static const char *const converted[] = {"glm4_moe", "qwen3_5"}; /* also converted to GGUF */

static cJSON *
read_case(const char *name)
{
    char path[128];
    cJSON *root = NULL;
    struct err err;
    char *text;
    size_t n;
    snprintf(path, sizeof path, FOLDER "%s/expect.json", name);
    assert_ok(file_text(path, 16 << 20, &text, &n, &err), err);
    assert_true(json_read(&root, text, n));
    assert_non_null(root);
    free(text);
    return root;
}

static const cJSON *
item(const cJSON *o, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(o, name);
}

static struct engine *
open_engine(const char *name, const cJSON *c, const char *target)
{
    char model[160], head[160];
    struct err err = {0};
    struct engine *engine;
    snprintf(model, sizeof model, FOLDER "%s/%s", name, target);
    snprintf(head, sizeof head, FOLDER "%s/%s", name,
             cJSON_IsString(item(c, "head")) ? item(c, "head")->valuestring : "");
    const struct engine_options options = {.model_path = model,
                                           .backend = backend,
                                           .backend_options = {.threads = 1, .gpu = -1, .exact = true},
                                           .wanted = NEEDS(AUX_MTP),
                                           .aux = {[AUX_DRAFT] = cJSON_IsString(item(c, "head")) ? head : NULL}};
    assert_ok(engine_open(&engine, &options, NULL, NULL, &err), err);
    return engine;
}

struct round_seen {
    uint32_t n, accepted, at;
    struct token_event draft[VERIFY_NODES];
    bool found[VERIFY_NODES];
};

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
            return fabs((double)r->draft[i].confidence - cJSON_GetArrayItem(want, 2)->valuedouble) < NEAR;
        }
    return false;
}

static uint32_t
compare_round(const struct round_seen *r, const cJSON *rounds, const char *name)
{
    const cJSON *want = NULL, *one, *last = NULL;
    cJSON_ArrayForEach(one, rounds)
    {
        want = (uint32_t)item(one, "at")->valuedouble == r->at ? one : want;
        last = one;
    }
    if (want == NULL && r->at > (uint32_t)item(last, "at")->valuedouble)
        return 0; /* at the end of the text the reference has more room for drafts */
    if (want == NULL)
        fail_msg("%s: the reference has no round at %u", name, (unsigned)r->at);
    const cJSON *drafts = item(want, "drafts");
    for (int i = 0, where; i < cJSON_GetArraySize(drafts); i++)
        if (!find_draft(drafts, r, i, &where))
            fail_msg("%s: round at %u: draft %d of the reference differs or is missing", name, (unsigned)r->at, i);
    assert_int_equal(r->n, cJSON_GetArraySize(drafts));
    assert_int_equal(r->accepted, item(want, "accepted")->valuedouble);
    return 1;
}

static uint32_t
compare_run(struct live *s, const cJSON *run, const char *name)
{
    struct event_reader *reader = event_reader_open(s->ops->log(s));
    struct round_seen r = {0};
    uint32_t rounds = 0, n_tokens = (uint32_t)cJSON_GetArraySize(item(run, "ids")) + 1;
    const cJSON *text = item(run, "text");
    session_generate(session_from(s));
    for (const struct event *e; (e = event_reader_next(reader)) != NULL;) {
        if (e->type == EVENT_TOKEN && e->token.source == SOURCE_DRAFT)
            r.draft[r.n++] = e->token;
        if (e->type != EVENT_ROUND)
            continue;
        r.at = n_tokens;
        r.accepted = e->round_end.accepted;
        rounds += compare_round(&r, item(run, "rounds"), name);
        n_tokens += e->round_end.emitted;
        r.n = 0;
    }
    event_reader_close(reader);
    const struct sequence *q = &session_from(s)->sequences[0];
    assert_int_equal(seq_emitted(q), cJSON_GetArraySize(text));
    for (uint32_t i = 0; i < seq_emitted(q); i++)
        assert_int_equal(q->tokens[q->prompt_tokens + i], cJSON_GetArrayItem(text, (int)i)->valuedouble);
    assert_int_equal(rounds, cJSON_GetArraySize(item(run, "rounds")));
    return rounds;
}

static uint32_t
compare_runs(const char *name, const cJSON *c, const char *target)
{
    struct engine *engine = open_engine(name, c, target);
    const uint32_t n = (uint32_t)cJSON_GetArraySize(item(c, "runs")), every = step < n ? step : n;
    uint32_t rounds = 0, i = 0;
    const cJSON *run, *set;
    cJSON_ArrayForEach(run, item(c, "runs"))
    {
        if (i++ % every != seed % every)
            continue;
        struct knob_setting knobs[3];
        struct session_options o = {.policies = policy_registry,
                                    .policy = item(c, "policy")->valuestring,
                                    .prompt = item(run, "prompt")->valuestring,
                                    .prompt_len = strlen(item(run, "prompt")->valuestring),
                                    .sampling.top_p = 1,
                                    .tokens = (uint32_t)cJSON_GetArraySize(item(run, "text")),
                                    .ignore_eos = true,
                                    .set = knobs};
        struct live *s;
        struct err err;
        cJSON_ArrayForEach(set, item(run, "set"))
        {
            snprintf(knobs[o.n_set].name, sizeof knobs->name, "%s",
                     strcmp(set->string, "depth") == 0 ? "k" : set->string);
            snprintf(knobs[o.n_set++].text, sizeof knobs->text, "%.0f", set->valuedouble);
        }
        assert_ok(session_open(&s, engine, &o, &err), err);
        rounds += compare_run(s, run, name);
        live_close(s);
    }
    engine_close(engine);
    return rounds;
}

/* Opens one case's head for another case's target. This must fail with this message in one line. */
static void
refuses(const char *head, const char *target, const char *why)
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

TEST(a_head_of_another_model_is_refused)
{
    refuses(FOLDER "specforge/head", "models/fables-q8_0.gguf", "reads hidden states of width 32, but those of");
    refuses(FOLDER "gguf/head.gguf", "models/fables-q8_0.gguf", "the drafter belongs to another model");
    struct model *m;
    struct err err = {.kind = ERR_NONE};
    assert_false(model_open(&m, FOLDER "specforge/head", &err));
    assert_contains(err.text, "is an EAGLE-3 head, which drafts for a model");
}

/* Writes a copy of a file in which a text is replaced by one of the same length. */
static void
write_changed(const char *path, const char *file, const char *from, const char *to)
{
    char *text, *at;
    size_t n;
    struct err err;
    assert_ok(file_text(file, 1 << 20, &text, &n, &err), err);
    assert_int_equal(strlen(from), strlen(to));
    at = memmem(text, n, from, strlen(from));
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    free(text);
}

TEST(a_head_whose_file_does_not_name_its_target_is_refused_by_its_tensors)
{
    char target[80], folder[] = "/tmp/specscope-head-XXXXXX", head[80], config[80], weights[80], path[PATH_MAX];
    struct err err;
    assert_non_null(mkdtemp(folder));
    snprintf(head, sizeof head, "%s/head.gguf", folder);
    snprintf(config, sizeof config, "%s/config.json", folder);
    snprintf(weights, sizeof weights, "%s/model.safetensors", folder);
    const struct tinymodel tiny = {.n_layers = 7, .width = 32}, wide = {.n_layers = 7, .width = 48};

    assert_ok(tinymodel_write_temp(target, sizeof target, &tiny, &err), err);
    write_changed(head, FOLDER "gguf/head.gguf", "token_embd.weight", "token_embd.unread");
    write_changed(head, head, "d2t", "d2x");
    refuses(head, target, "is for a vocabulary of 288 tokens, but");
    write_changed(head, head, "eagle3.vocab_size", "eagle3.vocab_none");
    refuses(head, target, "is for a vocabulary of 150 tokens, but");
    assert_int_equal(unlink(head), 0);
    assert_int_equal(unlink(target), 0);

    assert_ok(tinymodel_write_temp(target, sizeof target, &wide, &err), err);
    write_changed(config, FOLDER "angelslim/head/config.json", "target_hidden_size", "target_hidden_none");
    write_changed(config, config, "\"vocab_size\": 288", "\"vocab_size\": 320");
    assert_non_null(realpath(FOLDER "angelslim/head/model.safetensors", path));
    assert_int_equal(symlink(path, weights), 0);
    refuses(folder, target, "reads 96 values of hidden states, but 3 layers of");
    assert_int_equal(unlink(config), 0);
    assert_int_equal(unlink(weights), 0);
    assert_int_equal(unlink(target), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void
compare_cases(const char *name, uint32_t one_of)
{
    backend = name;
    step = one_of;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(backend, "cuda") == 0 && strncmp(cases[i], "qwen3", 5) == 0)
            continue; /* a GPU computes no recurrent layers */
        if (step == ONE_RUN && i % 4 != seed % 4)
            continue;
        cJSON *c = read_case(cases[i]);
        print_message("%s: %u rounds\n", cases[i], (unsigned)compare_runs(cases[i], c, item(c, "target")->valuestring));
        for (size_t j = 0; j < sizeof converted / sizeof *converted; j++)
            if (step != ONE_RUN && strcmp(cases[i], converted[j]) == 0) {
                char gguf[64];
                snprintf(gguf, sizeof gguf, "../targets/%s.gguf", converted[j]);
                compare_runs(cases[i], c, gguf);
            }
        cJSON_Delete(c);
    }
}

TEST(no_golden_file_of_drafters_lacks_a_test)
{
    golden_assert_listed(FOLDER, "/expect.json", cases, sizeof cases / sizeof *cases);
}

TEST(rounds_of_every_format_are_those_of_the_reference)
{
    compare_cases("cpu", 1);
}

TEST(rounds_of_every_format_on_cuda_are_those_of_the_reference)
{
    NEEDS_CUDA;
    compare_cases("cuda", !cuda_is_emulated() ? 1 : getenv("SPECSCOPE_LONG") != NULL ? 5 : ONE_RUN);
}

TEST_SEED(seed, 1);
