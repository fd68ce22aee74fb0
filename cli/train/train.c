#include "cli/train/train.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/program.h"
#include "base/rng.h"
#include "cli/generation/generation.h"
#include "cli/options/commands.h"
#include "cli/options/files.h"
#include "cli/options/option_table.h"
#include "engine/session/prompt.h"
#include "kernels/blas_library.h"

bool
train_main(struct options *o, int *status, struct err *err)
{
    (void)o, (void)status;
    return err_set(err, ERR_USAGE, "train what? %s train heads, eagle, accept or profile; each has --help",
                   program_name());
}

bool
train_has_input(const struct options *o, const char *command, const char *text, struct err *err)
{
    if (o->train.text == NULL && o->prompts_file == NULL)
        return err_set(err, ERR_USAGE, "train %s: --text FILE is missing: %s", command, text);
    return o->train.out != NULL || err_set(err, ERR_USAGE, "train %s: --out FILE is missing: what to write", command);
}

bool
train_can_begin(const struct options *o, const char *command, const char *text, const struct file_kind *kind,
                struct err *err)
{
    return train_has_input(o, command, text, err) && file_replaceable(AT_FDCWD, o->train.out, kind, err) &&
           file_replace_possible(AT_FDCWD, o->train.out, err);
}

bool
train_engine(const struct options *o, unsigned needs, struct engine **engine, struct err *err)
{
    static const char *const what[AUX_MODELS] = {"which model drafts", "which model is asked about drafts"};
    const struct engine_options options = {.model_path = o->model != NULL ? o->model : bundled_model_path(),
                                           .backend = o->backend,
                                           .lora = o->lora.at,
                                           .n_lora = o->lora.n,
                                           .backend_options = o->backend_options,
                                           .heads = "none",
                                           .aux = {o->aux[AUX_DRAFT], o->aux[AUX_COMPANION]},
                                           .wanted = needs,
                                           .accept = "none",
                                           .profile = "none",
                                           .reads_apart = true,
                                           .ctx = o->answers.at_once * (o->answers.prompt + o->answers.response)};
    if (!engine_open(engine, &options, NULL, NULL, err))
        return false;
    const unsigned missing = engine_missing(*engine, needs);
    const char *note = (*engine)->note; /* may name a file that was found and cannot be used */
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        if ((missing & NEEDS(role)) != 0)
            return err_set(err, ERR_USAGE, "%s: --%s MODEL is missing: %s%s%s", command_row(o->command)->name,
                           aux_names[role], what[role], note[0] != '\0' ? "; " : "", note);
    return true;
}

struct blas *
train_blas(const struct engine *e)
{
    struct blas *b;
    struct err why;
    const struct blas_library *library = blas_library(e->threads, &why);
    if (!blas_open(&b, e, &why))
        fprintf(stderr, "specscope: training multiplies on the CPU: %s\n", why.text);
    if (b == NULL && library != NULL && (library->outdated || library->refused[0] != '\0'))
        fprintf(stderr, "specscope: training takes longer, with OpenBLAS's kernels for %s%s%s\n", library->core,
                library->refused[0] != '\0' ? ": " : "", library->refused);
    return b;
}

void
train_shuffle(size_t *order, size_t n, uint64_t *random)
{
    for (size_t i = n; i-- > 1;) {
        const size_t k = (size_t)(splitmix64(random) % (i + 1)), was = order[i];
        order[i] = order[k];
        order[k] = was;
    }
}

void
train_bar(const char *what, double done, bool line, const char *text, uint64_t start_us)
{
    const bool terminal = isatty(STDERR_FILENO) != 0;
    if (!terminal && !line)
        return;
    char bar[31];
    for (int i = 0; i < 30; i++)
        bar[i] = i < (int)(done * 30) ? '#' : '.';
    bar[30] = '\0';
    fprintf(stderr, "%s%-9s [%s] %3.0f%%  %s  %.0f s%s", terminal ? "\r" : "", what, bar, done * 100, text,
            (double)(clock_us() - start_us) * 1e-6,
            !terminal  ? "\n"
            : done < 1 ? " \x1b[K"
                       : " \x1b[K\n");
    fflush(stderr);
}

static bool
make_room(struct train_prompts *p, size_t n, size_t n_tokens, struct err *err)
{
    p->tokens = malloc((n_tokens + 1) * sizeof *p->tokens);
    p->begin = calloc(n + 1, sizeof *p->begin);
    return (p->tokens != NULL && p->begin != NULL) || err_set(err, ERR_WORK, "train: out of memory for prompts");
}

/* Cuts n prompts out of a text. */
static bool
read_text(struct train_prompts *p, const char *path, const struct tokenizer *t, size_t n, uint32_t length,
          struct err *err)
{
    char *text;
    token_t *ids;
    size_t len, n_ids;
    if (!file_read(path, &text, &len, err))
        return false;
    bool ok = tokenizer_encode(t, text, len, (struct tokenize_options){.bos = true}, &ids, &n_ids, err);
    free(text);
    if (!ok)
        return false;
    const size_t bos = n_ids > 0 && ids[0] == tokenizer_bos(t), own = length - bos;
    ok = n_ids >= 2 * (size_t)length || err_set(err, ERR_WORK,
                                                "train: %s has %zu tokens; two prompts of %" PRIu32
                                                " are the least: give more text, or fewer --prompt-tokens",
                                                path, n_ids, length);
    ok = ok && make_room(p, n, n * length, err);
    for (size_t i = 0; i < n && ok; i++) {
        token_t *to = p->tokens + i * length;
        memcpy(to, ids, bos * sizeof *to);
        memcpy(to + bos, ids + bos + (n_ids - bos - own) * i / n, own * sizeof *to);
        p->begin[++p->n] = (i + 1) * length;
    }
    free(ids);
    return ok;
}

/* Adds a line as a prompt of at most `length` tokens. */
static bool
add_line(struct train_prompts *p, const char *text, const struct prompt_format *f, uint32_t length, struct err *err)
{
    struct prompt prompt;
    if (!prompt_read(&prompt, f, text, strlen(text), NULL, err))
        return false;
    const bool fits = prompt.n <= length;
    const size_t n = fits ? prompt.n : f->chat == NULL ? length : 0, begin = p->begin[p->n];
    if (n > 0) {
        memcpy(p->tokens + begin, prompt.ids, n * sizeof *p->tokens);
        p->begin[++p->n] = begin + n;
    }
    prompt_free(&prompt);
    return true;
}

static bool
read_lines(struct train_prompts *p, const struct options *o, const struct tokenizer *t, size_t most, struct err *err)
{
    const char *path = o->prompts_file;
    const uint32_t length = o->answers.prompt;
    struct prompt_format format = {0};
    struct prompt_list lines;
    if (!prompts_read(path, &lines, err))
        return false;
    const size_t n = lines.n < most ? lines.n : most;
    bool ok = make_room(p, n, n * length, err) && prompt_format_open(&format, t, &o->chat, UINT32_MAX, err);
    for (size_t i = 0; i < n && ok; i++)
        ok = add_line(p, lines.texts[i], &format, length, err);
    prompt_format_close(&format);
    prompts_free(&lines);
    if (ok && p->n == 0)
        return err_set(err, ERR_WORK, "train: %s has no prompts of at most %" PRIu32 " tokens; raise --prompt-tokens",
                       path, length);
    if (ok && p->n < n)
        fprintf(stderr, "specscope: %zu of %zu prompts are left out: they have more than %" PRIu32 " tokens\n",
                n - p->n, n, length);
    return ok;
}

bool
train_prompts_open(struct train_prompts *p, const struct options *o, const struct tokenizer *t, size_t n,
                   struct err *err)
{
    *p = (struct train_prompts){0};
    return o->prompts_file != NULL ? read_lines(p, o, t, n, err)
                                   : read_text(p, o->train.text, t, n, o->answers.prompt, err);
}

void
train_prompts_close(struct train_prompts *p)
{
    free(p->tokens);
    free(p->begin);
    *p = (struct train_prompts){0};
}

/* "40 s", "14 min", "2.5 h" */
static const char *
duration(double seconds, char *out, size_t n)
{
    if (seconds < 90)
        snprintf(out, n, "%.0f s", ceil(seconds));
    else if (seconds < 90 * 60)
        snprintf(out, n, "%.0f min", ceil(seconds / 60));
    else
        snprintf(out, n, "%.1f h", seconds / 3600);
    return out;
}

const char *
train_estimate(const char *first, double first_s, double training_s, char *out, size_t n)
{
    char all[24], one[24], two[24];
    snprintf(out, n, "about %s: %s %s, training %s", duration(first_s + training_s, all, sizeof all), first,
             duration(first_s, one, sizeof one), duration(training_s, two, sizeof two));
    return out;
}

#define ESTIMATE_US 3000000u /* of writing, after which the rest can be estimated */

struct answering {
    const struct train_answering *how;
    struct answers_options options;
    uint64_t wanted, start_us; /* tokens, at most */
    uint64_t first, first_us;  /* the tokens of the first pass, which followed the reading of prompts, and its end */
    bool estimated;
};

static void
show_answers(void *user, const struct answers *a, size_t begun)
{
    struct answering *of = user;
    const uint64_t now = clock_us(), written = a->written;
    const double by_time = (double)(now - of->start_us) * 1e-6 / of->how->seconds,
                 done = fmax(by_time, fmax((double)written / (double)of->wanted, (double)begun / (double)a->n));
    if (of->first == 0) {
        of->first = written;
        of->first_us = now;
    }
    if (by_time >= 1)
        of->options.tokens = 1; /* no answer is begun from now on */
    const double rate = (double)(written - of->first) * 1e6 / (double)(now - of->first_us + 1);
    char text[128];
    if (!of->estimated && now - of->first_us > ESTIMATE_US && written > of->first) {
        of->estimated = true;
        fprintf(stderr, "%s%s\n", isatty(STDERR_FILENO) ? "\r\x1b[K" : "",
                train_estimate("answers", fmin((double)of->wanted / rate, of->how->seconds), of->how->training_s, text,
                               sizeof text));
    }
    snprintf(text, sizeof text, "%zu of %zu prompts, %" PRIu64 " tokens, %.0f tokens/s", begun, a->n, written, rate);
    train_bar("answers", fmin(done, 0.99), false, text, of->start_us);
}

static bool
read_answer(void *user, struct reader *r, const struct answer *a, uint32_t at, slot_t slot)
{
    const struct answering *of = user;
    return of->how->row(of->how->user, r, a, at, slot);
}

bool
train_answers(struct answers *out, const struct options *o, const struct engine *e, const struct train_answering *how,
              struct err *err)
{
    struct answering of = {.how = how,
                           .options = {.response = o->answers.response,
                                       .sequences = o->answers.at_once,
                                       .tokens = how->tokens,
                                       .sampling = o->answers.sampling,
                                       .seed = o->seed,
                                       .progress = show_answers,
                                       .row = how->row != NULL ? read_answer : NULL,
                                       .user = &of},
                           .start_us = clock_us()};
    struct train_prompts p;
    *out = (struct answers){0};
    bool ok = train_prompts_open(&p, o, e->model->tokenizer, SIZE_MAX, err);
    if (ok) {
        const uint64_t most = (uint64_t)p.n * o->answers.response;
        of.wanted = how->tokens > 0 && how->tokens < most ? how->tokens : most;
        ok = answers_write(out, e, p.tokens, p.begin, p.n, &of.options, generation_interruption(), err);
    }
    train_prompts_close(&p);
    if (ok) {
        char text[64];
        snprintf(text, sizeof text, "%" PRIu64 " tokens", out->written);
        train_bar("answers", 1, true, text, of.start_us);
    }
    return ok;
}

/* ---- texts ---- */

static bool
open_texts(struct train_texts *t, size_t n, size_t n_tokens, struct err *err)
{
    t->tokens = malloc((n_tokens + 1) * sizeof *t->tokens);
    t->at = calloc(n + 1, sizeof *t->at);
    return (t->tokens != NULL && t->at != NULL) || err_set(err, ERR_WORK, "train: out of memory for texts");
}

/* Adds a text of n tokens, of which `read` are read, and returns where they belong. */
static token_t *
add_text(struct train_texts *t, size_t n, uint32_t read, uint32_t skip)
{
    struct train_text *at = &t->at[t->n++];
    at->n = read;
    at->skip = skip;
    at[1].begin = at->begin + n;
    t->longest = read > t->longest ? read : t->longest;
    return t->tokens + at->begin;
}

/* Cuts a text into windows, each after the token that begins a sequence. */
static bool
read_windows(struct train_texts *t, const char *path, const struct engine *e, uint32_t given, struct err *err)
{
    const token_t bos = tokenizer_bos(e->model->tokenizer);
    const uint32_t most = e->model->ctx_train > 1 ? e->model->ctx_train - 1 : 512, window = given > 0    ? given
                                                                                            : most < 512 ? most
                                                                                                         : 512;
    char *text;
    token_t *ids;
    size_t len, n;
    if (window > most)
        return err_set(err, ERR_USAGE, "train: --window %" PRIu32 " is more than %s's context of %" PRIu32, window,
                       e->model->name, most + 1);
    if (!file_read(path, &text, &len, err))
        return false;
    bool ok = tokenizer_encode(e->model->tokenizer, text, len, (struct tokenize_options){.bos = true}, &ids, &n, err);
    free(text);
    if (!ok)
        return false;
    const size_t windows = (n + window - 1) / window;
    ok = n >= 2 * (size_t)window || err_set(err, ERR_WORK,
                                            "train: %s has %zu tokens; two windows of %" PRIu32
                                            " are the least: give more text, or a smaller --window",
                                            path, n, window);
    ok = ok && open_texts(t, windows, n + windows, err);
    for (size_t i = 0; i < n && ok; i += window) {
        const uint32_t own = n - i < window ? (uint32_t)(n - i) : window,
                       begin = i > 0 && bos != TOKEN_NONE; /* the text has its own */
        token_t *to = add_text(t, own + begin, own + begin, begin);
        to[0] = bos;
        memcpy(to + begin, ids + i, own * sizeof *ids);
    }
    free(ids);
    return ok;
}

/* The rows that are used predict the answers' tokens, so the last one of each is not read. */
static bool
write_answers(struct train_texts *t, const struct options *o, const struct engine *e, double training_s,
              struct err *err)
{
    const struct train_answering how = {.tokens = o->train.tokens, .training_s = training_s, .seconds = INFINITY};
    struct answers a;
    bool ok = train_answers(&a, o, e, &how, err);
    size_t n = 0;
    for (size_t i = 0; i < a.n && ok; i++)
        n += a.at[i].n;
    ok = ok && open_texts(t, a.n, n, err);
    for (size_t i = 0; i < a.n && ok; i++)
        if (a.at[i].n > 1)
            memcpy(add_text(t, a.at[i].n, a.at[i].n - 1, a.at[i].prompt - 1), a.at[i].text,
                   a.at[i].n * sizeof *t->tokens);
    answers_free(&a);
    return ok && (t->n >= 2 || err_set(err, ERR_WORK, "train: two prompts are the least: one is held out"));
}

bool
train_texts_open(struct train_texts *t, const struct options *o, const struct engine *e, double training_s,
                 struct err *err)
{
    *t = (struct train_texts){0};
    return o->prompts_file != NULL ? write_answers(t, o, e, training_s, err)
                                   : read_windows(t, o->train.text, e, o->train.window, err);
}

void
train_texts_close(struct train_texts *t)
{
    free(t->tokens);
    free(t->at);
    *t = (struct train_texts){0};
}
