/* specscope verdict: generates the same prompts here and on a server, greedily, and compares the drafts that both
 * accepted (docs/methods.md: Head or engine). */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array_grow.h"
#include "base/plural.h"
#include "base/program.h"
#include "base/text.h"
#include "cli/generation/generation.h"
#include "cli/options/commands.h"
#include "cli/options/option_table.h"
#include "cli/partings.h"
#include "cli/servers.h"
#include "engine/measure/same_drafts.h"
#include "tui/terminal/terminal.h"

#define TESTED_LEAST 20 /* first drafts there, below which texts that part leave nothing to compare */

struct text {
    token_t *tokens; /* (n_prompt + n) */
    struct draft_round *rounds;
    size_t n_prompt, n, n_rounds, room, rounds_room;
    bool failed; /* out of memory */
};

struct parting {
    size_t prompt;
    uint32_t at; /* tokens of both texts */
    bool measured;
    struct divergence d;
};

enum conclusion { SAME_DRAFTS, OTHER_DRAFTS, TEXTS_FIRST }; /* TEXTS_FIRST: exit status 3 */
static const char *const conclusions[] = {"same drafts", "other drafts", "texts part first"};

struct comparing {
    const struct options *o;
    struct prompt_list prompts;
    struct server_given server;
    char kind[16], isa[96];
    struct text *texts[2];    /* (prompts.n) here and there */
    struct draft_pair *pairs; /* (prompts.n) */
    struct parting *partings; /* (n_partings) */
    size_t n_partings, of[DIVERGENCE_VERDICTS], n_measured, strange; /* strange: prompts of other token ids */
    struct parting_engines engines;
    struct same_drafts same, more; /* more: with the sides exchanged */
    enum conclusion conclusion;
    char sentence[600], rule[200];
};

/* ---- texts ---- */

static bool
add_token(struct text *t, token_t token)
{
    if (!array_grow(&t->tokens, &t->room, t->n_prompt + t->n + 1, sizeof *t->tokens))
        return false;
    t->tokens[t->n_prompt + t->n] = token;
    return true;
}

static void
collect(void *user, const struct event *e)
{
    struct text *t = user;
    if (e->type == EVENT_TOKEN && e->token.source == SOURCE_PROMPT) {
        if (add_token(t, e->token.token))
            t->n_prompt++;
        else
            t->failed = true;
    } else if (e->type == EVENT_ROUND) {
        if (array_grow(&t->rounds, &t->rounds_room, t->n_rounds + 1, sizeof *t->rounds))
            t->rounds[t->n_rounds++] = (struct draft_round){e->round_end.drafted, e->round_end.accepted};
        else
            t->failed = true;
    }
}

/* Generates a prompt's text; with a server there. */
static bool
generate_text(struct comparing *v, size_t i, struct engine *engine, struct text *t, struct err *err)
{
    struct generation g = {
        .engine = engine, .session = generation_options(v->o), .event = collect, .user = t, .progress = true};
    struct outcome out;
    g.session.prompt = v->server.remote.prompt = v->prompts.texts[i];
    g.session.prompt_len = v->server.remote.prompt_len = strlen(v->prompts.texts[i]);
    if (engine == NULL && !remote_open(&g.live, &v->server.remote, err))
        return false;
    bool ok = generate(&g, &out, err);
    if (ok && engine == NULL) {
        snprintf(v->kind, sizeof v->kind, "%s", g.live->ops->info(g.live)->backend);
        snprintf(v->isa, sizeof v->isa, "%s", g.live->ops->info(g.live)->isa);
    }
    live_close(g.live);
    if (!ok)
        return false;
    for (size_t k = 0; k < out.texts[0].n_tokens && !t->failed; k++, t->n++)
        t->failed = !add_token(t, out.texts[0].tokens[k]);
    outcome_free(&out);
    if (t->failed)
        return err_set(err, ERR_WORK, "out of memory");
    return !generation_interrupted() || err_set(err, ERR_CANCELLED, "interrupted");
}

/* Generates all texts here, then there: the server may need this machine's processors, too. */
static bool
generate_texts(struct comparing *v, struct engine *engine, struct err *err)
{
    const size_t n = v->prompts.n;
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < n; i++) {
            if (isatty(STDERR_FILENO))
                fprintf(stderr, "\rprompt %zu of %zu %s ", i + 1, n, side == 0 ? "here " : "there");
            if (!generate_text(v, i, side == 0 ? engine : NULL, &v->texts[side][i], err))
                return false;
        }
    if (isatty(STDERR_FILENO))
        fputs("\r\x1b[K", stderr);
    return true;
}

/* ---- partings ---- */

static void
find_partings(struct comparing *v)
{
    for (size_t i = 0; i < v->prompts.n; i++) {
        const struct text *a = &v->texts[0][i], *b = &v->texts[1][i];
        const bool same = a->n_prompt == b->n_prompt &&
                          memcmp(a->tokens, b->tokens, a->n_prompt * sizeof *a->tokens) == 0;
        size_t n = 0;
        while (same && n < a->n && n < b->n && a->tokens[a->n_prompt + n] == b->tokens[b->n_prompt + n])
            n++;
        v->strange += !same;
        v->pairs[i] = (struct draft_pair){{a->rounds, b->rounds}, {a->n_rounds, b->n_rounds}, (uint32_t)n};
        if (same && n < a->n && n < b->n)
            v->partings[v->n_partings++] =
                (struct parting){.prompt = i,
                                 .at = (uint32_t)n,
                                 .d = {.here = a->tokens[a->n_prompt + n], .there = b->tokens[b->n_prompt + n]}};
    }
}

/* Measures the partings. If that is not possible, prints the reason, and they stay unexplained. */
static void
measure_partings(struct comparing *v)
{
    struct err err = {0};
    bool ok = v->n_partings == 0 || parting_engines_open(&v->engines, v->o, &err);
    for (size_t i = 0; i < v->n_partings && ok; i++) {
        struct parting *p = &v->partings[i];
        const struct text *t = &v->texts[0][p->prompt];
        ok = divergence_measure(&p->d, v->engines.exact, v->engines.rounded, t->tokens,
                                (uint32_t)t->n_prompt + p->at, generation_interruption(), &err);
        p->measured = ok;
        v->n_measured += ok;
        v->of[p->d.verdict] += ok;
    }
    if (!ok)
        fprintf(stderr, "specscope: why texts part was not measured: %s\n", err.text);
}

/* ---- the conclusion ---- */

static const struct rule {
    const char *kind, *policy, *text;
} rules[] = {
    {"llama-server", "ngram",
     "llama-server looks for n_min tokens only, drafts at least as many, and not yet in a short text"},
    {"vllm", "ngram", "vLLM copies from the earliest occurrence of the longest match"},
    {"sglang", "ngram", "SGLang also drafts after shorter matches, and from other requests"},
};

static void
conclude(struct comparing *v, enum conclusion c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    v->conclusion = c;
    vsnprintf(v->sentence, sizeof v->sentence, format, args);
    va_end(args);
}

static double
rate(const struct same_drafts *s, int side, uint32_t i)
{
    return 100 * (double)s->k[side][i] / (double)s->n[side][i];
}

static void
conclude_difference(struct comparing *v, const struct same_drafts *s, const char *word)
{
    const uint32_t i = s->fewer_from - 1;
    conclude(v, OTHER_DRAFTS, "%s from position %u on: %.0f%% there, %.0f%% here, p %.2g", word,
             (unsigned)s->fewer_from, rate(&v->same, 1, i), rate(&v->same, 0, i), fmax(s->fisher[i], s->permuted[i]));
}

static void
conclude_equal(struct comparing *v)
{
    const struct same_drafts *s = &v->same;
    double least = 1;
    for (uint32_t i = 0; i < s->positions; i++)
        least = fmin(least, fmin(fmax(s->fisher[i], s->permuted[i]), fmax(v->more.fisher[i], v->more.permuted[i])));
    if (s->equal)
        conclude(v, SAME_DRAFTS, "the same drafts: every round there is the round here");
    else
        conclude(v, SAME_DRAFTS,
                 "the same drafts: counts differ within sampling error (least p %.2g; first in prompt %zu, token %u, "
                 "draft %u)",
                 least, s->prompt + 1, (unsigned)s->token + 1, (unsigned)s->draft);
}

static void
find_conclusion(struct comparing *v)
{
    const struct same_drafts *s = &v->same;
    const char *policy = v->o->policies.at[0];
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].kind, v->kind) == 0 && strcmp(rules[i].policy, policy) == 0)
            snprintf(v->rule, sizeof v->rule, "compared under the nearest rule, %s: %s", policy, rules[i].text);
    if (v->strange == v->prompts.n)
        conclude(v, TEXTS_FIRST, "the token ids of every prompt differ: another tokenizer or template");
    else if (v->of[DIVERGENCE_OTHER] > 0)
        conclude(v, TEXTS_FIRST,
                 "texts part first, and rounding does not explain %zu of %zu partings: other weights, another "
                 "template, or a bug",
                 v->of[DIVERGENCE_OTHER], v->n_partings);
    else if (s->n[0][0] == 0)
        conclude(v, TEXTS_FIRST, "nothing to compare: no draft was made here before the texts' ends or partings");
    else if (s->n[1][0] == 0 && s->longest[1] == 0)
        conclude(v, OTHER_DRAFTS, "fewer drafts than the drafter deserves: the server drafted nothing");
    else if (s->fewer_from > 0)
        conclude_difference(v, s, "fewer drafts than the drafter deserves are accepted");
    else if (v->more.fewer_from > 0)
        conclude_difference(v, &v->more, "more drafts are accepted there, so they are of another drafter or setting,");
    else if (v->n_partings > 0 && s->n[1][0] < TESTED_LEAST)
        conclude(v, TEXTS_FIRST, "texts part first: only %u rounds with drafts are before the partings",
                 (unsigned)s->n[1][0]);
    else
        conclude_equal(v);
}

/* ---- output ---- */

static void
put(const char *text)
{
    char plain[700];
    snprintf(plain, sizeof plain, "%s", text);
    if (terminal_wants_ascii())
        text_ascii(plain);
    puts(plain);
}

static void
print_position(const struct same_drafts *s, uint32_t i)
{
    char line[200];
    size_t used = (size_t)snprintf(line, sizeof line, "%8u", (unsigned)i + 1);
    for (int side = 0; side < 2; side++) {
        double low = NAN, high = NAN;
        char cell[40] = "–";
        if (s->n[side][i] > 0) {
            same_drafts_interval(s->k[side][i], s->n[side][i], &low, &high);
            snprintf(cell, sizeof cell, "%3.0f%% (%.0f to %.0f)", rate(s, side, i), 100 * low, 100 * high);
        }
        used += (size_t)snprintf(line + used, sizeof line - used, "  %6llu of %-6llu %-17s",
                                 (unsigned long long)s->k[side][i], (unsigned long long)s->n[side][i], cell);
    }
    snprintf(line + used, sizeof line - used, "  %.2g", fmax(s->fisher[i], s->permuted[i]));
    put(line);
}

static void
print_verdict(const struct comparing *v)
{
    char line[700], text[400];
    const struct same_drafts *s = &v->same;
    printf("%-8s  %-34s  %-34s  p (fewer there)\n", "position", "accepted here", "accepted there");
    for (uint32_t i = 0; i < s->positions; i++)
        print_position(s, i);
    printf("%d permutations of %zu prompts, seed %llu\n", SAME_DRAFTS_DRAWS, v->prompts.n,
           (unsigned long long)v->o->seed);
    if (v->n_partings > 0)
        printf("texts part in %zu of %zu prompts: rounding %zu, undecided %zu, not explained by rounding %zu\n",
               v->n_partings, v->prompts.n, v->of[DIVERGENCE_ROUNDING], v->of[DIVERGENCE_UNDECIDED],
               v->of[DIVERGENCE_OTHER]);
    for (size_t i = 0; i < v->n_measured; i++) {
        const struct parting *p = &v->partings[i];
        snprintf(line, sizeof line, "  prompt %zu, token %u: %s", p->prompt + 1, (unsigned)p->at + 1,
                 parting_text(&p->d, &v->engines, text, sizeof text));
        put(line);
    }
    if (v->strange > 0)
        printf("%zu of %zu prompts have other token ids there (another tokenizer or template): not compared\n",
               v->strange, v->prompts.n);
    if (v->rule[0] != '\0')
        put(v->rule);
    put(v->sentence);
}

static cJSON *
side_json(const struct same_drafts *s, int side, uint32_t i)
{
    cJSON *j = cJSON_CreateObject();
    double low = NAN, high = NAN;
    if (s->n[side][i] > 0)
        same_drafts_interval(s->k[side][i], s->n[side][i], &low, &high);
    json_number(j, "tested", (double)s->n[side][i]);
    json_number(j, "accepted", (double)s->k[side][i]);
    json_number(j, "low", low);
    json_number(j, "high", high);
    return j;
}

static cJSON *
verdict_json(const struct comparing *v)
{
    const struct same_drafts *s = &v->same;
    cJSON *j = cJSON_CreateObject(), *list;
    cJSON_AddStringToObject(j, "verdict", conclusions[v->conclusion]);
    cJSON_AddStringToObject(j, "sentence", v->sentence);
    cJSON_AddStringToObject(j, "rule", v->rule);
    cJSON_AddStringToObject(j, "server", v->kind);
    cJSON_AddStringToObject(j, "server_version", v->isa);
    cJSON_AddStringToObject(j, "policy", v->o->policies.at[0]);
    json_number(j, "prompts", (double)v->prompts.n);
    json_number(j, "prompts_with_other_ids", (double)v->strange);
    cJSON_AddBoolToObject(j, "rounds_equal", s->equal);
    json_seed(j, v->o->seed);
    list = cJSON_AddArrayToObject(j, "positions");
    for (uint32_t i = 0; i < s->positions; i++) {
        cJSON *at = cJSON_CreateObject();
        cJSON_AddItemToObject(at, "here", side_json(s, 0, i));
        cJSON_AddItemToObject(at, "there", side_json(s, 1, i));
        json_number(at, "p_fisher_holm", s->fisher[i]);
        json_number(at, "p_permutation", s->permuted[i]);
        cJSON_AddItemToArray(list, at);
    }
    list = cJSON_AddArrayToObject(j, "partings");
    for (size_t i = 0; i < v->n_partings; i++) {
        cJSON *at = cJSON_CreateObject();
        json_number(at, "prompt", (double)v->partings[i].prompt + 1);
        json_number(at, "token", v->partings[i].at + 1.0);
        if (v->partings[i].measured)
            parting_json(at, &v->partings[i].d);
        cJSON_AddItemToArray(list, at);
    }
    return j;
}

/* ---- the command ---- */

static bool
compare(struct comparing *v, struct err *err)
{
    struct draft_pair *exchanged = calloc(v->prompts.n, sizeof *exchanged);
    if (exchanged == NULL)
        return err_set(err, ERR_WORK, "out of memory");
    for (size_t i = 0; i < v->prompts.n; i++) {
        const struct draft_pair *p = &v->pairs[i];
        exchanged[i] = (struct draft_pair){{p->rounds[1], p->rounds[0]}, {p->n[1], p->n[0]}, p->common};
    }
    const bool ok = same_drafts(&v->same, v->pairs, v->prompts.n, v->o->seed, err) &&
                    same_drafts(&v->more, exchanged, v->prompts.n, v->o->seed, err);
    free(exchanged);
    return ok;
}

/* Warns if the longest drafts differ: the settings then do, too. */
static void
compare_lengths(const struct comparing *v)
{
    const struct policy_ops *ops = policy_named(policy_registry, v->o->policies.at[0]);
    const uint32_t here = v->same.longest[0], there = v->same.longest[1];
    if (here != there && there > 0)
        fprintf(stderr, "specscope: the server drafts up to %u tokens a round, and %u are drafted here; --set %s=%u?\n",
                (unsigned)there, (unsigned)here, ops->length != NULL ? ops->length : "k", (unsigned)there);
}

static bool
prepare(struct comparing *v, struct options *o, struct err *err)
{
    struct options server = *o;
    server.n_set = server.n_config_set; /* settings of drafting here */
    if (o->server.url == NULL)
        return err_set(err, ERR_USAGE, "which server? --server http://HOST:PORT");
    if (o->policies.n == 0 || strcmp(o->policies.at[0], POLICY_AUTO) == 0)
        return err_set(err, ERR_USAGE, "which policy does the server have? --policy sd, ngram, eagle or mtp");
    if (o->sampling.temperature > 0)
        return err_set(err, ERR_USAGE, "--temp: texts are compared, so both are greedy");
    if (!outputs_possible(o->json, &results_json_file, NULL, NULL, err) || !server_given_read(&v->server, &server, err))
        return false;
    if (!(o->prompts_file != NULL ? prompts_read(o->prompts_file, &v->prompts, err)
                                  : generation_tune_prompts(o, &v->prompts, err)))
        return false;
    const size_t n = v->prompts.n;
    v->texts[0] = calloc(n, sizeof *v->texts[0]);
    v->texts[1] = calloc(n, sizeof *v->texts[1]);
    v->pairs = calloc(n, sizeof *v->pairs);
    v->partings = calloc(n, sizeof *v->partings);
    return (v->texts[0] != NULL && v->texts[1] != NULL && v->pairs != NULL && v->partings != NULL) ||
           err_set(err, ERR_WORK, "out of memory");
}

static void
verdict_free(struct comparing *v)
{
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < v->prompts.n && v->texts[side] != NULL; i++) {
            free(v->texts[side][i].tokens);
            free(v->texts[side][i].rounds);
        }
        free(v->texts[side]);
    }
    free(v->pairs);
    free(v->partings);
    parting_engines_close(&v->engines);
    server_given_free(&v->server);
    prompts_free(&v->prompts);
}

bool
verdict_main(struct options *o, int *status, struct err *err)
{
    struct comparing v = {.o = o};
    struct engine *engine = NULL;
    generation_catch_signals();
    bool ok = prepare(&v, o, err) && generation_engine(o, &engine, err) && generate_texts(&v, engine, err);
    engine_close(engine);
    if (ok) {
        find_partings(&v);
        measure_partings(&v);
        ok = compare(&v, err);
    }
    if (ok) {
        find_conclusion(&v);
        compare_lengths(&v);
        if (!output_is_stdout(o->json))
            print_verdict(&v);
        *status = v.conclusion == TEXTS_FIRST ? 3 : v.conclusion == OTHER_DRAFTS ? 1 : 0;
    }
    if (ok && o->json != NULL) {
        cJSON *j = verdict_json(&v);
        ok = json_write(j, o->json, err);
        cJSON_Delete(j);
    }
    ok = ok && (fflush(stdout) == 0 || err_set(err, ERR_WORK, "stdout: %s", strerror(errno)));
    verdict_free(&v);
    return ok;
}
