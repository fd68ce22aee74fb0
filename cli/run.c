/* specscope run: prints text to stdout and a summary line to stderr. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/plural.h"
#include "base/program.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cli/generation/acceptance.h"
#include "cli/generation/generation.h"
#include "cli/options/commands.h"
#include "cli/options/files.h"
#include "cli/options/option_table.h"
#include "cli/servers.h"
#include "engine/measure/reason.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "engine/tune/results.h"
#include "tui/terminal/terminal.h"

struct printer {
    const struct tokenizer *tokenizer; /* NULL: of a server, whose events have the tokens' bytes */
    struct slice *words;               /* (n_words) by id; owned, as are their bytes */
    size_t n_words;
    struct utf8_stream stream;
    bool terminal, quiet; /* quiet: JSON goes to stdout */
    bool broken;          /* stdout accepts no more output */
    bool begun;           /* a text was printed */
    size_t printed;       /* texts of a batch */
};

static void
put(struct printer *p, const char *text, size_t len)
{
    if (p->quiet || p->broken)
        return;
    char safe[512];
    p->begun = p->begun || len > 0;
    while (len > 0 && !p->broken) {
        size_t n = len < 64 ? len : 64;
        while (n < len && n > 1 && ((unsigned char)text[n] & 0xC0) == 0x80) /* whole characters */
            n--;
        if (p->terminal) { /* generated text is escaped for a terminal, except line breaks */
            for (size_t i = 0; i < n && !p->broken;) {
                size_t run = 0;
                while (i + run < n && text[i + run] != '\n')
                    run++;
                size_t made = printable_text(text + i, run, safe, sizeof safe);
                p->broken = fwrite(safe, 1, made, stdout) < made;
                i += run;
                if (i < n && !p->broken) {
                    p->broken = fputc('\n', stdout) == EOF;
                    i++;
                }
            }
        } else {
            p->broken = fwrite(text, 1, n, stdout) < n;
        }
        text += n;
        len -= n;
    }
    p->broken = p->broken || fflush(stdout) != 0;
}

static void
print_token(void *user, token_t token, enum token_source source)
{
    (void)source;
    struct printer *p = user;
    struct slice bytes = {0};
    if (p->tokenizer != NULL)
        bytes = tokenizer_bytes(p->tokenizer, token, false);
    else if ((size_t)token < p->n_words)
        bytes = p->words[token];
    char out[512];
    for (size_t at = 0;
         at < bytes.len;) { /* a piece may be long; the stream writes at most 3 bytes more than it reads */
        size_t n = bytes.len - at < sizeof out - 3 ? bytes.len - at : sizeof out - 3;
        put(p, out, utf8_stream_feed(&p->stream, bytes.data + at, n, out));
        at += n;
    }
}

/* Keeps the bytes of a server's token. */
static void
keep_word(void *user, const struct event *e)
{
    struct printer *p = user;
    const size_t i = e->type == EVENT_VOCAB ? (size_t)e->vocab.token : p->n_words;
    char *bytes = i < p->n_words && p->words[i].data == NULL ? malloc(e->vocab.n_bytes + 1) : NULL;
    if (bytes == NULL)
        return;
    memcpy(bytes, e->vocab.bytes, e->vocab.n_bytes);
    p->words[i] = (struct slice){bytes, e->vocab.n_bytes};
}

static void
forget_words(struct printer *p)
{
    for (size_t i = 0; i < p->n_words; i++)
        free((char *)p->words[i].data);
    free(p->words);
}

static void
end_text(struct printer *p)
{
    char rest[4];
    put(p, rest, utf8_stream_end(&p->stream, rest));
    put(p, "\n", 1);
}

/* Prints the texts of a batch in the order of their numbers, each after all texts before it. */
static void
print_texts(void *user, const struct outcome *out)
{
    struct printer *p = user;
    for (const struct outcome_text *text; p->printed < out->n_texts && (text = &out->texts[p->printed])->end[0] != '\0';
         p->printed++) {
        for (size_t i = 0; i < text->n_tokens; i++)
            print_token(p, text->tokens[i], SOURCE_DRAFT);
        end_text(p);
    }
}

/* Prints to stderr, in ASCII if the user's locale asks for it. */
__attribute__((format(printf, 1, 2))) static void
report(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (terminal_wants_ascii())
        text_ascii(text);
    fputs(text, stderr);
}

#define REASON_US       2e6  /* decoding takes at least as long, where costs are measured for a reason */
#define REASON_COSTS_US 3e5  /* that measuring them may take, */
#define REASON_SHARE    0.05 /* or this share of the time of decoding */

/* Prints why the policy does not gain, if it does not. A short run has a reason only if the costs are known. */
static void
print_reason(const struct outcome *out, const struct session_options *o, struct engine *engine)
{
    const struct tally *t = &out->metrics.total;
    const struct policy_ops *ops = policy_named(o->policies, out->policy);
    const bool alone = o->batch == 0 && ops != NULL && !policy_is_baseline(out->policy) && out->choice[0] == '\0';
    double need_us;
    if (!alone || t->rounds == 0 ||
        (!cost_known(&engine->costs) &&
         (t->draft_us + t->verify_us < REASON_US ||
          !engine_costs(engine, fmax(REASON_COSTS_US, REASON_SHARE * (t->draft_us + t->verify_us)),
                        generation_interruption(), &need_us))))
        return;
    const uint32_t layers = engine->model->desc.n_layers;
    const double middle = (double)(out->metrics.prefilled + t->emitted / 2);
    struct reason_rounds rounds = {.of = *t,
                                   .plain_us = cost_autoregressive(&engine->costs, layers, middle),
                                   .model = (ops->needs & NEEDS_DRAFTER) != 0,
                                   .speedup_se = (double)NAN};
    for (size_t i = 0; i < o->n_set; i++)
        rounds.draft_vocab =
            rounds.draft_vocab || (strcmp(o->set[i].name, DRAFT_VOCAB) == 0 && o->set[i].text[0] != '0');
    const struct reason reason = reason_find(&rounds, layers, engine->model->rho, &engine->costs, NULL);
    struct reason_line line;
    char text[500];
    reason_print(&reason, NULL, out->policy, &line);
    if (line.n > 0)
        report("%s; %.2f× plain decoding by its measured steps; next: --policy auto, or %s tune\n",
               reason_text(&line, text, sizeof text), reason.speedup, program_name());
}

static void
summary(const struct outcome *out, const struct session_options *o, struct engine *engine, const char *why)
{
    struct measures m = metrics_measures(&out->metrics, &out->metrics.total);
    char all_in[48] = ""; /* with learning passes, if there were any */
    if (out->metrics.total.learning_us > 0)
        snprintf(all_in, sizeof all_in, " (%.1f all in)", m.tokens_per_s_all_in);
    char sequences[40] = "";
    if (o->batch > 0)
        snprintf(sequences, sizeof sequences, "%zu sequence%s, ", out->n_texts, plural(out->n_texts));
    report("%s: %s%zu token%s, ", out->policy, sequences, outcome_tokens(out), plural(outcome_tokens(out)));
    char acceptance[16] = "–"; /* nothing was verified */
    if (!isnan(m.acceptance_rate))
        snprintf(acceptance, sizeof acceptance, "%.2f", m.acceptance_rate);
    if (isnan(m.tokens_per_round)) /* the first token comes with the prompt */
        report("no round");
    else
        report("%.1f tokens/s%s, %.2f tokens/round, acceptance %s", m.tokens_per_s, all_in, m.tokens_per_round,
               acceptance);
    if (!isnan(m.etpl)) /* a server does not tell its layers */
        report(", eTPL %.3f, modelled %.2f×", m.etpl, m.modelled);
    const double experts = metrics_verify_experts(&out->metrics);
    if (!isnan(experts))
        report(", verified by %.1f experts a layer", experts);
    const uint32_t positions = positions_count(&out->positions);
    for (uint32_t i = 0; i < positions && i < POSITIONS_SHOWN; i++)
        report("%s %.2f", i == 0 ? ", of all rounds by position" : "",
               positions_unconditional(&out->positions, i).value);
    char ranks[160];
    if (positions_ranked(&out->positions) > 0)
        report(", rank at rejections %s", positions_ranks_text(&out->positions, ranks, sizeof ranks));
    char prompt[64];
    if (out->metrics.prefilled > 0) /* not if it was cancelled before */
        report("; %s", metrics_prefill_text(&out->metrics, prompt, sizeof prompt));
    report("; end: %s\n", why);
    if (out->choice[0] != '\0')
        report("%s\n", out->choice);
    if (engine != NULL)
        print_reason(out, o, engine);
}

/* Prints "2.31 ±0.14 tokens/round"; "–" without a value, and no error after one round. */
static void
print_estimate(struct estimate e, int digits, const char *unit)
{
    if (isnan(e.value))
        report("–%s", unit);
    else if (isnan(e.se))
        report("%.*f%s", digits, e.value, unit);
    else
        report("%.*f ±%.*f%s", digits, e.value, digits, e.se, unit);
}

static void
print_side(const char *name, const struct estimates *e)
{
    report("%s: ", name);
    print_estimate(e->tokens_per_s, 1, " tokens/s, ");
    print_estimate(e->tokens_per_round, 2, " tokens/round, acceptance ");
    print_estimate(e->acceptance_rate, 2, ", modelled ");
    print_estimate((struct estimate){.value = e->modelled.value, .se = NAN}, 2, "×\n");
}

/* Prints both settings, and which one was faster by how much. */
static void
compare_sides(const struct outcome *out, const struct session_options *o)
{
    struct estimates side[2];
    for (int i = 0; i < 2; i++)
        side[i] = round_sums_estimates(&out->sides[i], out->metrics.layers, out->metrics.rho);
    char params[OPTIONS_MOST * sizeof(struct knob_setting) + 32], own[sizeof params + 32];
    generation_params(o->set, o->n_set, params, sizeof params);
    snprintf(own, sizeof own, "%s%s%s", out->policy, params[0] != '\0' ? " " : "", params);
    print_side(own, &side[0]);
    print_side(o->versus, &side[1]);
    const struct comparison c = paired_comparison(&out->paired);
    char text[64];
    const struct outcome_text *x = &out->texts[0], *y = &out->texts[1];
    size_t same = 0;
    while (same < x->n_tokens && same < y->n_tokens && x->tokens[same] == y->tokens[same])
        same++;
    comparison_text(c, text, sizeof text);
    if (c.verdict == DIFFERENCE_MORE || c.verdict == DIFFERENCE_LESS)
        report("%s is %s; ", c.value > 1 ? o->versus : own, text);
    else if (c.verdict == DIFFERENCE_NOISE)
        report("%s (%s against %s); ", text, o->versus, own);
    else
        report("too few rounds to compare speeds; ");
    if (same < x->n_tokens && same < y->n_tokens)
        report("the texts part at token %zu; end: %s\n", same + 1, out->end);
    else
        report("the texts are the same for %zu token%s; end: %s\n", same, plural(same), out->end);
}

struct running {
    const struct options *o;
    struct engine *engine; /* NULL: a server generates */
    struct server_given server;
    char model[64], machine[96];
    struct policy_memory *memory;
    char policy[16];            /* of the last session */
    struct prompt_list prompts; /* of a file; empty: the prompt of the command line */
    bool untraced;              /* a trace could not be written */
    struct tally total;
    struct acceptance acceptance;
};

/* Adds a session's outcome to the sums over all prompts. */
static bool
add_outcome(struct running *r, size_t first, const struct outcome *out, struct err *err)
{
    tally_add(&r->total, &out->metrics.total);
    memcpy(r->policy, out->policy, sizeof r->policy);
    for (size_t i = 0; i < out->n_texts && r->o->versus == NULL; i++)
        if (!acceptance_add(&r->acceptance,
                            r->prompts.n > 0 ? r->prompts.categories[r->prompts.n > 1 ? first + i : 0] : NULL,
                            &out->texts[i]))
            return err_set(err, ERR_WORK, "out of memory");
    return true;
}

/* Opens the server as the source, with the prompt of the session. */
static bool
open_server(struct running *r, struct generation *g, struct printer *printer, struct err *err)
{
    struct remote_options *o = &r->server.remote;
    o->prompt = g->session.prompt;
    o->prompt_len = g->session.prompt_len;
    if (!remote_open(&g->live, o, err))
        return false;
    const struct run_info *info = g->live->ops->info(g->live);
    snprintf(r->model, sizeof r->model, "%s", info->model_name);
    snprintf(r->machine, sizeof r->machine, "%s", info->isa);
    printer->words = calloc(info->vocab, sizeof *printer->words);
    printer->n_words = printer->words != NULL ? info->vocab : 0;
    g->event = keep_word;
    return true;
}

/* Runs one session: of prompt `first` of a file, of that of the command line, or of all prompts as a batch. */
static bool
run_session(struct running *r, size_t first, struct prompt_text *batch, cJSON **result, struct err *err)
{
    const char *prompt = r->prompts.n > 0 && batch == NULL ? r->prompts.texts[first] : NULL;
    const struct options *o = r->o;
    struct printer printer = {.tokenizer = r->engine != NULL ? r->engine->model->tokenizer : NULL,
                              .terminal = isatty(STDOUT_FILENO),
                              .quiet = output_is_stdout(o->json) || output_is_stdout(o->csv)};
    struct generation g = {.engine = r->engine,
                           .session = generation_options(o),
                           .trace = o->trace,
                           .bounds = o->trace_bounds,
                           .token = o->batch > 0 ? NULL : print_token,
                           .left = o->batch > 0 ? print_texts : NULL,
                           .user = &printer,
                           .progress = true};
    struct outcome out;
    g.session.memory = r->memory;
    g.session.prompts = batch;
    g.session.n_prompts = batch != NULL ? r->prompts.n : 0;
    g.session.prompts_path = o->prompts_file;
    if (prompt != NULL) {
        g.session.prompt = prompt;
        g.session.prompt_len = strlen(prompt);
    }
    if (r->engine == NULL && !open_server(r, &g, &printer, err))
        return false;
    const bool ok = generate(&g, &out, err);
    if (o->batch == 0 && (ok || printer.begun))
        end_text(&printer);
    if (ok && g.session.versus != NULL)
        compare_sides(&out, &g.session);
    else if (ok)
        summary(&out, &g.session, r->engine, out.end);
    if (ok)
        *result = r->engine != NULL ? outcome_json(&out, g.engine, &g.session)
                                    : outcome_server_json(&out, g.live->ops->info(g.live));
    live_close(g.live);
    forget_words(&printer);
    if (!ok)
        return false;
    r->untraced = r->untraced || out.untraced;
    const bool added = add_outcome(r, first, &out, err);
    outcome_free(&out);
    return added && (!printer.broken || err_set(err, ERR_WORK, "stdout: %s", strerror(errno)));
}

static bool
run_batch(struct running *r, cJSON **result, struct err *err)
{
    struct prompt_text *batch = r->prompts.n > 0 ? generation_prompts(&r->prompts, err) : NULL;
    const bool ok = (r->prompts.n == 0 || batch != NULL) && run_session(r, 0, batch, result, err);
    free(batch);
    return ok;
}

/* One after another. */
static bool
run_prompts(struct running *r, cJSON **result, struct err *err)
{
    if (r->prompts.n == 0)
        return run_session(r, 0, NULL, result, err);
    cJSON *all = cJSON_AddArrayToObject(*result = cJSON_CreateObject(), "results"), *one;
    for (size_t i = 0; i < r->prompts.n && !generation_interrupted(); i++) {
        if (!run_session(r, i, NULL, &one, err))
            return false;
        cJSON_AddItemToArray(all, one);
    }
    if (r->o->versus == NULL)
        acceptance_positions_json(*result, &r->acceptance.all.positions);
    return true;
}

/* Writes a line for all prompts and one for each category. */
static bool
write_csv(const struct running *r, struct err *err)
{
    const struct session_options so = generation_options(r->o);
    char params[OPTIONS_MOST * sizeof(struct knob_setting) + 32];
    struct metrics metrics;
    struct output output;
    metrics_begin(&metrics, r->engine != NULL ? r->engine->model->desc.n_layers : 1,
                  r->engine != NULL ? r->engine->model->rho : (double)NAN);
    const struct result all = {.policy = r->policy,
                               .params = generation_params(so.set, so.n_set, params, sizeof params),
                               .total = &r->total,
                               .m = metrics_measures(&metrics, &r->total),
                               RESULT_WITHOUT_SPEED,
                               .lossless = "-",
                               .model = r->engine != NULL ? r->engine->model->name : r->model,
                               .machine = r->engine != NULL ? r->engine->ops->describe(r->engine->backend) : r->machine,
                               .positions = &r->acceptance.all.positions};
    if (!output_open(&output, r->o->csv, &results_csv_file, err))
        return false;
    FILE *out = output.f;
    results_csv_head(out);
    results_csv_line(out, &all);
    for (size_t i = 0; i < r->acceptance.n_parts; i++)
        acceptance_csv(out, &all, &r->acceptance.part[i]);
    return output_close(&output, true, err);
}

static bool
run_all(struct running *r, struct err *err)
{
    const struct options *o = r->o;
    cJSON *result = NULL;
    bool ok = (o->batch > 0 ? run_batch : run_prompts)(r, &result, err);
    if (ok && r->acceptance.all.prompts > 1 && positions_count(&r->acceptance.all.positions) > 0) {
        acceptance_print_title(stderr);
        acceptance_print(stderr, r->policy, &r->acceptance);
    }
    if (ok && result != NULL)
        acceptance_categories_json(result, &r->acceptance);
    if (ok && o->json != NULL && result != NULL)
        ok = json_write(result, o->json, err);
    else
        cJSON_Delete(result);
    return ok && (o->csv == NULL || write_csv(r, err));
}

bool
run_main(struct options *o, int *status, struct err *err)
{
    struct policy_memory memory = {0};
    struct running r = {.o = o, .memory = &memory};
    generation_catch_signals();
    bool ok = outputs_possible(o->json, &results_json_file, o->csv, &results_csv_file, err) &&
              (o->prompts_file == NULL || prompts_read(o->prompts_file, &r.prompts, err));
    if (ok && r.prompts.n > 1 && o->trace != NULL && o->batch == 0)
        ok = err_set(err, ERR_USAGE,
                     "--trace with several prompts: a trace holds one run's; give a single prompt, or --batch");
    if (ok && o->csv != NULL && o->versus != NULL)
        ok = err_set(err, ERR_USAGE, "--csv with --versus: a line is about one setting; --json has both");
    if (ok && o->server.url != NULL && o->policy_given)
        ok = err_set(err, ERR_USAGE, "--server: the server has a setting of its own; leave out --policy");
    if (ok && o->server.url != NULL && (o->model != NULL || o->synth != NULL))
        ok = err_set(err, ERR_USAGE, "--server: the server has a model; leave out '%.100s'",
                     o->model != NULL ? o->model : o->synth);
    ok = ok && (o->server.url != NULL ? server_given_read(&r.server, o, err) : generation_engine(o, &r.engine, err)) &&
         run_all(&r, err);
    server_given_free(&r.server);
    acceptance_free(&r.acceptance);
    policy_memory_free(&memory);
    prompts_free(&r.prompts);
    engine_close(r.engine);
    *status = generation_interrupted() ? command_interrupted() : r.untraced ? 1 : 0;
    return ok;
}
