/* specscope verdict: generates the same prompts here and on a server, greedily, and compares the drafts that both
 * accepted (docs/methods.md: Head or engine). */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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
#include "engine/scope/aggregates.h"
#include "tui/terminal/terminal.h"

#define TESTED_LEAST 20 /* first drafts there, below which texts that part leave nothing to compare */

struct text {
    token_t *tokens; /* (n) with n_prompt of the prompt */
    struct draft_round *rounds;
    size_t n_prompt, n, n_rounds, room, rounds_room;
    bool failed;    /* out of memory */
    bool uncounted; /* the server does not tell the drafts of a round */
};

struct parting {
    size_t prompt;
    size_t at; /* tokens of both texts, with the prompt */
    struct divergence d;
};

enum conclusion { SAME_DRAFTS, OTHER_DRAFTS, UNDECIDED }; /* UNDECIDED: exit status 3 */

struct comparing {
    const struct options *o;
    struct prompt_list prompts;
    struct server_given server;
    char kind[16];
    struct text *texts[2];                                           /* (prompts.n) here and there */
    struct draft_pair *pairs;                                        /* (prompts.n) */
    struct parting *partings;                                        /* (n_partings) */
    size_t n_partings, of[DIVERGENCE_VERDICTS], n_measured, strange; /* strange: prompts of other token ids */
    struct parting_engines engines;
    struct same_drafts same;
    bool uncounted; /* a text there is */
    enum conclusion conclusion;
    char sentence[400];
    const char *rule; /* NULL: the server's is the policy's own */
};

/* ---- texts ---- */

static void
collect_token(void *user, token_t token, enum token_source source)
{
    struct text *t = user;
    t->failed = t->failed || !array_grow(&t->tokens, &t->room, t->n + 1, sizeof *t->tokens);
    if (!t->failed)
        t->tokens[t->n++] = token;
    t->n_prompt = source == SOURCE_PROMPT ? t->n : t->n_prompt;
}

static void
collect(void *user, const struct event *e)
{
    struct text *t = user;
    if (e->type == EVENT_TOKEN && e->token.source == SOURCE_PROMPT)
        collect_token(t, e->token.token, SOURCE_PROMPT);
    if (e->type != EVENT_ROUND)
        return;
    t->failed = t->failed || !array_grow(&t->rounds, &t->rounds_room, t->n_rounds + 1, sizeof *t->rounds);
    t->uncounted = t->uncounted || e->round_end.emitted > e->round_end.accepted + 1;
    if (!t->failed)
        t->rounds[t->n_rounds++] = (struct draft_round){e->round_end.drafted, e->round_end.accepted};
}

/* Generates a prompt's text; with a server there. */
static bool
generate_text(struct comparing *v, size_t i, struct engine *engine, struct text *t, struct err *err)
{
    struct generation g = {
        .engine = engine, .session = generation_options(v->o), .token = collect_token, .event = collect, .user = t};
    struct outcome out;
    g.session.prompt = v->server.remote.prompt = v->prompts.texts[i];
    g.session.prompt_len = v->server.remote.prompt_len = strlen(v->prompts.texts[i]);
    if (engine == NULL && !remote_open(&g.live, &v->server.remote, err))
        return false;
    bool ok = generate(&g, &out, err);
    if (ok && engine == NULL)
        snprintf(v->kind, sizeof v->kind, "%s", g.live->ops->info(g.live)->backend);
    live_close(g.live);
    if (!ok)
        return false;
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
    bool ok = true;
    for (size_t i = 0; i < 2 * n && ok; i++) {
        generation_progress((double)i / (double)(2 * n), i < n ? "here" : "there");
        ok = generate_text(v, i % n, i < n ? engine : NULL, &v->texts[i / n][i % n], err);
    }
    generation_progress(0, "");
    return ok;
}

/* ---- partings ---- */

static void
find_partings(struct comparing *v)
{
    for (size_t i = 0; i < v->prompts.n; i++) {
        const struct text *a = &v->texts[0][i], *b = &v->texts[1][i];
        size_t n = 0;
        while (n < a->n && n < b->n && a->tokens[n] == b->tokens[n])
            n++;
        const bool same = a->n_prompt == b->n_prompt && n >= a->n_prompt;
        v->strange += !same;
        v->uncounted = v->uncounted || b->uncounted;
        v->pairs[i] = (struct draft_pair){
            {a->rounds, b->rounds}, {a->n_rounds, b->n_rounds}, same ? (uint32_t)(n - a->n_prompt) : 0};
        if (same && n < a->n && n < b->n)
            v->partings[v->n_partings++] =
                (struct parting){.prompt = i, .at = n, .d = {.here = a->tokens[n], .there = b->tokens[n]}};
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
        ok = divergence_measure(&p->d, v->engines.exact, v->engines.rounded, v->texts[0][p->prompt].tokens,
                                (uint32_t)p->at, generation_interruption(), &err);
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

__attribute__((format(printf, 3, 4))) static void
conclude(struct comparing *v, enum conclusion c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    v->conclusion = c;
    vsnprintf(v->sentence, sizeof v->sentence, format, args);
    va_end(args);
}

static double
percent(const struct same_drafts *s, int side, uint32_t i)
{
    return 100 * (double)s->k[side][i] / (double)s->n[side][i];
}

static void
conclude_counts(struct comparing *v)
{
    const struct same_drafts *s = &v->same;
    const struct policy_ops *ops = policy_named(policy_registry, v->o->policies.at[0]);
    const int i = s->differs_from;
    double least = 1;
    for (uint32_t d = 0; d <= s->positions; d++)
        least = fmin(least, s->p[d]);
    if (i == 0)
        conclude(v, OTHER_DRAFTS, "%s rounds have drafts there: %.0f%%, and %.0f%% here, p %.2g",
                 s->fewer ? "fewer" : "more", percent(s, 1, 0), percent(s, 0, 0), s->p[0]);
    else if (i > 0)
        conclude(v, OTHER_DRAFTS, "%s from position %d on: %.0f%% are accepted there, %.0f%% here, p %.2g",
                 s->fewer ? "fewer drafts than the drafter deserves" : "more drafts than here, of another drafter,", i,
                 percent(s, 1, (uint32_t)i), percent(s, 0, (uint32_t)i), s->p[i]);
    else if (s->equal)
        conclude(v, SAME_DRAFTS, "the same drafts: every round there is the round here");
    else if (s->longest[0] != s->longest[1])
        conclude(v, UNDECIDED, "drafts have other lengths: up to %u tokens a round there, up to %u here; --set %s=%u?",
                 (unsigned)s->longest[1], (unsigned)s->longest[0], ops->length != NULL ? ops->length : "k",
                 (unsigned)s->longest[1]);
    else if (s->prompts < SAME_DRAFTS_LEAST)
        conclude(v, UNDECIDED, "rounds differ, and only %zu prompts have drafts: at least %d show whether by chance",
                 s->prompts, SAME_DRAFTS_LEAST);
    else
        conclude(v, SAME_DRAFTS,
                 "the same drafts: counts differ within sampling error, least p %.2g; the first difference is in "
                 "prompt %zu, token %u, draft %u",
                 least, s->prompt + 1, (unsigned)s->token + 1, (unsigned)s->draft);
}

static void
find_conclusion(struct comparing *v)
{
    const struct same_drafts *s = &v->same;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].kind, v->kind) == 0 && strcmp(rules[i].policy, v->o->policies.at[0]) == 0)
            v->rule = rules[i].text;
    if (v->strange == v->prompts.n)
        conclude(v, UNDECIDED, "the token ids of every prompt differ: another tokenizer or template");
    else if (v->of[DIVERGENCE_OTHER] > 0)
        conclude(v, UNDECIDED,
                 "texts part first, %zu of %zu not by rounding: other weights, another template, or a bug",
                 v->of[DIVERGENCE_OTHER], v->n_partings);
    else if (s->n[0][1] == 0)
        conclude(v, UNDECIDED, "nothing to compare: no draft was made here before the texts ended or parted");
    else if (v->uncounted)
        conclude(v, UNDECIDED,
                 "nothing to compare: the server does not count drafts; vLLM does with "
                 "--per-request-spec-decode-metrics detailed");
    else if (s->longest[1] == 0)
        conclude(v, OTHER_DRAFTS, "fewer drafts than the drafter deserves: the server drafted nothing");
    else if (s->differs_from < 0 && v->n_partings > 0 && s->n[1][1] < TESTED_LEAST)
        conclude(v, UNDECIDED, "texts part first: only %u rounds with drafts are before that", (unsigned)s->n[1][1]);
    else
        conclude_counts(v);
}

/* ---- output ---- */

__attribute__((format(printf, 1, 2))) static void
put(const char *format, ...)
{
    char line[700];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (terminal_wants_ascii())
        text_ascii(line);
    puts(line);
}

static const char *
cell(const struct same_drafts *s, int side, uint32_t i, char out[80])
{
    double low, high;
    const uint64_t k = s->k[side][i], n = s->n[side][i];
    if (n == 0)
        return "0 of 0";
    share_interval(k, n, &low, &high);
    snprintf(out, 80, "%llu of %llu, %.0f%% (%.0f to %.0f)", (unsigned long long)k, (unsigned long long)n,
             percent(s, side, i), 100 * low, 100 * high);
    return out;
}

static void
print_verdict(const struct comparing *v)
{
    static const char *const names[] = {"here", "there"};
    char a[400], b[80];
    const struct same_drafts *s = &v->same;
    put("position  %-30s  %-30s  p", "accepted here", "there");
    put("  rounds  %-30s  %-30s  %.2g  (with drafts)", cell(s, 0, 0, a), cell(s, 1, 0, b), s->p[0]);
    for (uint32_t i = 1; i <= s->positions; i++)
        put("%8u  %-30s  %-30s  %.2g", (unsigned)i, cell(s, 0, i, a), cell(s, 1, i, b), s->p[i]);
    put("95%% intervals; p of %d permutations of %zu prompts (seed %llu) and of Fisher's test", SAME_DRAFTS_DRAWS,
        v->prompts.n, (unsigned long long)v->o->seed);
    for (size_t i = 0; i < v->n_partings; i++) {
        const struct parting *p = &v->partings[i];
        put("prompt %zu parts at token %zu%s%s", p->prompt + 1, p->at - v->texts[0][p->prompt].n_prompt + 1,
            i < v->n_measured ? ": " : "",
            i < v->n_measured ? parting_text(&p->d, &v->engines, names, a, sizeof a) : "");
    }
    if (v->strange > 0)
        put("%zu of %zu prompts have other token ids there (another tokenizer or template): not compared", v->strange,
            v->prompts.n);
    if (v->rule != NULL)
        put("compared under the nearest rule, %s: %s", v->o->policies.at[0], v->rule);
    put("%s", v->sentence);
}

/* ---- the command ---- */

static bool
prepare(struct comparing *v, struct options *o, struct err *err)
{
    struct options server = *o;
    server.n_set = server.n_config_set; /* settings of drafting here */
    if (o->server.url == NULL)
        return err_set(err, ERR_USAGE, "which server? --server http://HOST:PORT");
    if (o->policies.n == 0 || strcmp(o->policies.at[0], POLICY_AUTO) == 0)
        return err_set(err, ERR_USAGE,
                       "which policy does the server have? --policy sd, ngram, eagle, dspark, dflash or mtp");
    if (o->sampling.temperature > 0)
        return err_set(err, ERR_USAGE, "--temp: texts are compared, so both are greedy");
    if (!server_given_read(&v->server, &server, err) ||
        !(o->prompts_file != NULL ? prompts_read(o->prompts_file, &v->prompts, err)
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
        ok = same_drafts(&v.same, v.pairs, v.prompts.n, o->seed, err);
    }
    if (ok) {
        find_conclusion(&v);
        print_verdict(&v);
        *status = v.conclusion == UNDECIDED ? 3 : v.conclusion == OTHER_DRAFTS ? 1 : 0;
    }
    ok = ok && (fflush(stdout) == 0 || err_set(err, ERR_WORK, "stdout: %s", strerror(errno)));
    verdict_free(&v);
    return ok;
}
