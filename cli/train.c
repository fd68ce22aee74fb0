/* specscope train heads: per-layer heads for a model, from any text. The model stays as it is; its own final
 * distribution is what the heads learn to guess. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/generation.h"
#include "cli/timing.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/training/blas.h"
#include "engine/training/head_stream.h"
#include "engine/training/head_training.h"
#include "kernels/rng.h"
#include "tui/terminal/text.h"

static const char usage[] =
    "usage: specscope train heads --text FILE --out FILE [options]\n"
    "trains a head for every layer but the last, so that early layers guess better; --heads FILE uses them\n\n"
    "  -m, --model MODEL    a .gguf file or a Hugging Face folder (the bundled model)\n"
    "      --text FILE      plain text to train on, 64 MiB at most; every 16th window is held out\n"
    "      --out FILE       a safetensors file\n"
    "      --kind KIND      affine: h + A h + b before the model's own head; full: a head of its own (affine)\n"
    "      --tokens N       tokens to train on, repeating the text as needed (200000)\n"
    "      --rate R         of the optimizer, falling to nothing (0.0003)\n"
    "      --batch N        tokens in a step (256)\n"
    "      --window N       tokens that the model reads at a time (512, or its context)\n"
    "      --seed N         of the order of windows and tokens (1)\n"
    "  -t, --threads N      CPU threads (all cores)\n"
    "      --backend NAME   auto, cpu, cuda or check (auto)\n"
    "  -h, --help           this\n"
    "\nCtrl-C ends training and keeps the best heads so far.\n";

#define HELD_EVERY  16
#define BLOCK_BYTES (256u << 20) /* hidden states in memory at a time, about */
#define LOOKS       10           /* how often held-out text is looked at */

struct request {
    const char *model, *text, *out, *backend;
    enum head_kind kind;
    uint64_t tokens, seed;
    double rate;
    uint32_t batch, window, threads;
};

/* ---- the command line ---- */

static bool
whole_number(const char *name, const char *text, uint64_t least, uint64_t most, uint64_t *out, struct err *err)
{
    char *end;
    errno = 0;
    const unsigned long long n = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || n < least || n > most)
        return err_set(err, ERR_USAGE, "train: --%s wants a whole number from %" PRIu64 " to %" PRIu64 ", not '%.40s'",
                       name, least, most, text);
    *out = n;
    return true;
}

static bool
set_option(struct request *r, int option, const char *value, struct err *err)
{
    uint64_t n = 0;
    char *end;
    switch (option) {
    case 'm': r->model = value; return true;
    case 'x': r->text = value; return true;
    case 'o': r->out = value; return true;
    case 'b': r->backend = value; return true;
    case 'k':
        return head_kind_from(value, &r->kind) ||
               err_set(err, ERR_USAGE, "train: --kind is affine or full, not '%.40s'", value);
    case 'n': return whole_number("tokens", value, 1, UINT64_C(1) << 40, &r->tokens, err);
    case 's': return whole_number("seed", value, 0, UINT64_MAX, &r->seed, err);
    case 'r':
        r->rate = strtod(value, &end);
        return (end != value && *end == '\0' && r->rate > 0 && r->rate <= 1) ||
               err_set(err, ERR_USAGE, "train: --rate wants a number above 0, at most 1, not '%.40s'", value);
    case 'B':
        if (!whole_number("batch", value, 1, 1 << 16, &n, err))
            return false;
        r->batch = (uint32_t)n;
        return true;
    case 'w':
        if (!whole_number("window", value, 8, 1 << 20, &n, err))
            return false;
        r->window = (uint32_t)n;
        return true;
    default:
        if (!whole_number("threads", value, 1, 256, &n, err))
            return false;
        r->threads = (uint32_t)n;
        return true;
    }
}

/* False and *status: there is nothing more to do. */
static bool
read_command_line(struct request *r, int argc, char **argv, int *status)
{
    static const struct option names[] = {
        {"model", required_argument, NULL, 'm'},
        {"text", required_argument, NULL, 'x'},
        {"out", required_argument, NULL, 'o'},
        {"kind", required_argument, NULL, 'k'},
        {"tokens", required_argument, NULL, 'n'},
        {"rate", required_argument, NULL, 'r'},
        {"batch", required_argument, NULL, 'B'},
        {"window", required_argument, NULL, 'w'},
        {"seed", required_argument, NULL, 's'},
        {"threads", required_argument, NULL, 't'},
        {"backend", required_argument, NULL, 'b'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct err err = {0};
    *r = (struct request){.kind = HEAD_AFFINE, .tokens = 200000, .rate = 3e-4, .batch = 256, .seed = 1};
    bool ok = true;
    opterr = 0;
    optind = 1;
    for (int c; ok && (c = getopt_long(argc, argv, "m:t:h", names, NULL)) != -1;) {
        if (c == 'h') {
            fputs(usage, stdout);
            *status = 0;
            return false;
        }
        ok = c != '?' ? set_option(r, c, optarg, &err)
                      : err_set(&err, ERR_USAGE,
                                "train heads: '%.60s' is not an option, or lacks its value; see specscope train --help",
                                argv[optind - 1]);
    }
    if (ok && optind < argc)
        ok = err_set(&err, ERR_USAGE, "train heads: '%.60s' is one argument too many; the model goes after --model",
                     argv[optind]);
    if (ok && (r->text == NULL || r->out == NULL))
        ok = err_set(&err, ERR_USAGE, "train heads: %s is missing: what to %s",
                     r->text == NULL ? "--text FILE" : "--out FILE", r->text == NULL ? "train on" : "write");
    *status = ok ? 0 : command_failed(&err);
    return ok;
}

/* ---- training ---- */

struct job {
    const struct request *request;
    struct engine *engine;
    struct lens lens;
    struct exit_heads *heads;
    struct head_training *training;
    struct head_stream *stream;
    token_t *tokens;
    size_t n_tokens;
    uint32_t window, layers;
    size_t row;                  /* values of a row: (L + 1) * width */
    float *block, *batch, *held; /* (block_rows, row), (batch, row), (held_rows, row) */
    size_t block_rows, held_rows;
    size_t *order;  /* (block_rows) a shuffle */
    uint32_t *turn; /* (windows) the order of training windows */
    size_t n_turns;
    struct head_score *lens_score, *score, *best_score; /* (L + 1) of held-out text: sums over rows */
    float *best;                                        /* values of every layer's best head so far */
    bool looked;
    double best_loss, first_loss;
    uint64_t random;
    double start_us;
};

static double
seconds(const struct job *j)
{
    return (now_us() - j->start_us) * 1e-6;
}

static bool
prepare_text(struct job *j, struct err *err)
{
    const struct request *r = j->request;
    char *text;
    size_t len;
    if (!file_read(r->text, &text, &len, err))
        return false;
    const bool ok = tokenizer_encode(j->engine->model->tokenizer, text, len, (struct tokenize_options){.bos = true},
                                     &j->tokens, &j->n_tokens, err);
    free(text);
    if (!ok)
        return false;
    const uint32_t most = j->engine->model->ctx_train > 1 ? j->engine->model->ctx_train - 1 : 512;
    j->window = r->window > 0 ? r->window : most < 512 ? most : 512;
    if (j->window > most)
        return err_set(err, ERR_USAGE, "train: --window %" PRIu32 " is more than %s's context of %" PRIu32, j->window,
                       j->engine->model->name, most + 1);
    if (j->n_tokens < 2 * (size_t)j->window)
        return err_set(err, ERR_WORK,
                       "train: %s has %zu tokens; two windows of %" PRIu32
                       " are the least: give more text, or a smaller --window",
                       r->text, j->n_tokens, j->window);
    return true;
}

/* Every HELD_EVERY-th window is held out, as many as memory takes; the others are for training. */
static bool
prepare_memory(struct job *j, struct err *err)
{
    const size_t windows = head_stream_windows(j->stream), bytes = j->row * sizeof(float);
    size_t most = BLOCK_BYTES / bytes / j->window;
    most = most > 0 ? most : 1;
    size_t n_held = (windows + HELD_EVERY - 1) / HELD_EVERY;
    n_held = n_held < most ? n_held : most;
    const size_t per_block = most < windows ? most : windows;
    j->block_rows = per_block * j->window;
    j->block = malloc(j->block_rows * bytes);
    j->batch = malloc(j->request->batch * bytes);
    j->held = malloc(n_held * j->window * bytes);
    j->order = malloc(j->block_rows * sizeof *j->order);
    j->turn = malloc(windows * sizeof *j->turn);
    j->lens_score = calloc((size_t)j->layers + 1, sizeof *j->lens_score);
    j->score = calloc((size_t)j->layers + 1, sizeof *j->score);
    j->best_score = calloc((size_t)j->layers + 1, sizeof *j->best_score);
    j->best = malloc(j->heads->n_values * sizeof *j->best);
    if (j->block == NULL || j->batch == NULL || j->held == NULL || j->order == NULL || j->turn == NULL ||
        j->lens_score == NULL || j->score == NULL || j->best_score == NULL || j->best == NULL)
        return err_set(err, ERR_WORK, "train: out of memory for hidden states; use a smaller --window or --batch");
    for (size_t w = 0; w < windows; w++) {
        size_t rows;
        if (w % HELD_EVERY == 0 && w / HELD_EVERY < n_held) {
            if (generation_interrupted())
                return err_set(err, ERR_CANCELLED, "interrupted before training began");
            if (!head_stream_window(j->stream, w, j->held + j->held_rows * j->row, &rows, err))
                return false;
            j->held_rows += rows;
        } else if (w % HELD_EVERY != 0) {
            j->turn[j->n_turns++] = (uint32_t)w;
        }
    }
    return true;
}

static void
mean_scores(const struct job *j, const struct head_score *sums, double *loss, double *agreement)
{
    *loss = *agreement = 0;
    for (uint32_t l = 1; l < j->layers; l++) {
        *loss += sums[l].loss / (double)j->held_rows / (j->layers - 1);
        *agreement += sums[l].agreement / (double)j->held_rows / (j->layers - 1);
    }
}

/* Looks at held-out text, and keeps of every layer the head that was best there; the first are no better than the lens,
 * so none is worse. Written out when one is better than before. The figures are the kept ones'. */
static bool
look(struct job *j, double *loss, double *agreement, struct err *err)
{
    const size_t n = j->heads->per_layer;
    bool better = false;
    memset(j->score, 0, ((size_t)j->layers + 1) * sizeof *j->score);
    head_training_score(j->training, false, j->held, j->held_rows, j->score);
    for (uint32_t l = 1; l < j->layers; l++) {
        if (j->looked && !(j->score[l].loss < j->best_score[l].loss))
            continue;
        better = true;
        j->best_score[l] = j->score[l];
        memcpy(j->best + (l - 1) * n, j->heads->values + (l - 1) * n, n * sizeof *j->best);
    }
    j->looked = true;
    mean_scores(j, j->best_score, loss, agreement);
    j->best_loss = *loss;
    struct exit_heads kept = *j->heads;
    kept.values = j->best;
    return !better || exit_heads_write(&kept, j->request->out, err);
}

/* "training  [#####.....]  52%  KL 0.412 (was 0.731)  agreement 71.2% (was 60.3%)  18 s" */
static void
show(const struct job *j, double done, double loss, double agreement, bool line)
{
    const bool terminal = isatty(STDERR_FILENO) != 0;
    if (!terminal && !line)
        return;
    char bar[31];
    for (int i = 0; i < 30; i++)
        bar[i] = i < (int)(done * 30) ? '#' : '.';
    bar[30] = '\0';
    double was_loss, was_agreement;
    mean_scores(j, j->lens_score, &was_loss, &was_agreement);
    fprintf(stderr, "%straining [%s] %3.0f%%  held out: KL %.3f (lens %.3f)  agreement %.1f%% (lens %.1f%%)  %.0f s%s",
            terminal ? "\r" : "", bar, done * 100, loss, was_loss, agreement * 100, was_agreement * 100, seconds(j),
            terminal ? " \x1b[K" : "\n");
    fflush(stderr);
}

/* Reads the next windows into the block and shuffles their rows. */
static bool
fill_block(struct job *j, size_t *next, size_t *rows, struct err *err)
{
    *rows = 0;
    for (size_t w = 0; w < j->block_rows / j->window; w++) {
        if (*next % j->n_turns == 0)
            for (size_t i = j->n_turns - 1; i > 0; i--) { /* a new pass over the text: another order */
                const size_t k = splitmix64(&j->random) % (i + 1);
                const uint32_t was = j->turn[i];
                j->turn[i] = j->turn[k];
                j->turn[k] = was;
            }
        size_t n;
        if (generation_interrupted())
            break;
        if (!head_stream_window(j->stream, j->turn[(*next)++ % j->n_turns], j->block + *rows * j->row, &n, err))
            return false;
        *rows += n;
    }
    for (size_t i = 0; i < *rows; i++)
        j->order[i] = i;
    for (size_t i = *rows; i-- > 1;) {
        const size_t k = splitmix64(&j->random) % (i + 1), was = j->order[i];
        j->order[i] = j->order[k];
        j->order[k] = was;
    }
    return true;
}

static bool
train(struct job *j, struct err *err)
{
    const struct request *r = j->request;
    const uint64_t warm_up = r->tokens / 50 + 1, look_every = r->tokens / LOOKS + 1;
    struct head_score *each = calloc((size_t)j->layers + 1, sizeof *each);
    if (each == NULL)
        return err_set(err, ERR_WORK, "train: out of memory");
    head_training_score(j->training, true, j->held, j->held_rows, j->lens_score);
    double loss, agreement;
    bool ok = look(j, &loss, &agreement, err);
    j->first_loss = j->best_loss;
    uint64_t done = 0, looked = 0;
    for (size_t next = 0; ok && done < r->tokens && !generation_interrupted();) {
        size_t rows;
        ok = fill_block(j, &next, &rows, err);
        for (size_t at = 0; ok && at < rows && done < r->tokens && !generation_interrupted();) {
            size_t n = rows - at < r->batch ? rows - at : r->batch;
            for (size_t i = 0; i < n; i++)
                memcpy(j->batch + i * j->row, j->block + j->order[at + i] * j->row, j->row * sizeof *j->batch);
            const double rate =
                r->rate * fmin((double)(done + n) / (double)warm_up, 1 - (double)done / (double)r->tokens);
            head_training_step(j->training, j->batch, n, (float)rate, each);
            at += n;
            done += n;
            const bool looks = done - looked >= look_every || done >= r->tokens;
            if (looks) {
                looked = done;
                ok = look(j, &loss, &agreement, err);
            }
            show(j, fmin(1, (double)done / (double)r->tokens), loss, agreement, looks);
        }
    }
    free(each);
    if (isatty(STDERR_FILENO))
        fputc('\n', stderr);
    return ok;
}

/* The best heads against the lens, layer by layer, on held-out text. */
static void
report(struct job *j)
{
    printf("held out: %zu tokens          lens             %s\nlayer         agreement     KL  agreement     KL\n",
           j->held_rows, head_kind_name(j->heads->kind));
    const double n = (double)j->held_rows;
    for (uint32_t l = 1; l < j->layers; l++)
        printf("%5" PRIu32 "            %5.1f%%  %6.3f     %5.1f%%  %6.3f\n", l, j->lens_score[l].agreement / n * 100,
               j->lens_score[l].loss / n, j->best_score[l].agreement / n * 100, j->best_score[l].loss / n);
    printf("%s heads of %s: %s, %.0f s\n", head_kind_name(j->heads->kind), j->engine->model->name, j->request->out,
           seconds(j));
}

static bool
run(struct job *j, struct err *err)
{
    const struct request *r = j->request;
    const struct model *m = j->engine->model;
    j->layers = m->desc.n_layers;
    j->row = ((size_t)j->layers + 1) * m->desc.width;
    j->best_loss = INFINITY;
    j->random = r->seed;
    const struct head_training_options options = {
        .threads = j->engine->threads, .batch = r->batch, .rate = (float)r->rate, .decay = 0.01f};
    if (blas_callers(options.threads) < options.threads)
        fprintf(stderr,
                "specscope: only one thread trains, for OpenBLAS's sequential build cannot be called by several; "
                "its OpenMP build is faster (libopenblas-openmp-dev)\n");
    fprintf(stderr, "%s heads for %s: training takes about %.1f MB besides the model\n", head_kind_name(r->kind),
            m->name, (double)head_training_bytes(r->kind, j->layers, m->desc.width, m->desc.vocab, &options) * 1e-6);
    return prepare_text(j, err) && lens_open(&j->lens, &m->desc, err) && exit_heads_new(&j->heads, r->kind, m, err) &&
           head_training_open(&j->training, j->heads, &j->lens, &options, err) &&
           head_stream_open(&j->stream, j->engine, j->tokens, j->n_tokens, j->window, tokenizer_bos(m->tokenizer), NULL,
                            err) &&
           prepare_memory(j, err) && train(j, err);
}

static void
job_free(struct job *j)
{
    head_training_close(j->training);
    head_stream_close(j->stream);
    exit_heads_free(j->heads);
    lens_free(&j->lens);
    engine_close(j->engine);
    free(j->tokens);
    free(j->block);
    free(j->batch);
    free(j->held);
    free(j->order);
    free(j->turn);
    free(j->lens_score);
    free(j->score);
    free(j->best_score);
    free(j->best);
}

int
train_main(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        return 0;
    }
    struct err err = {0};
    if (argc < 2 || strcmp(argv[1], "heads") != 0) {
        err_set(&err, ERR_USAGE,
                "train what? `specscope train heads --text FILE --out FILE`; see specscope train --help");
        return command_failed(&err);
    }
    struct request request;
    int status;
    if (!read_command_line(&request, argc - 1, argv + 1, &status))
        return status;
    generation_catch_signals();
    struct job j = {.request = &request};
    j.start_us = now_us();
    const struct engine_options engine = {.model_path = request.model != NULL ? request.model : bundled_model_path(),
                                          .backend = request.backend,
                                          .backend_options = {.threads = request.threads, .gpu = -1}};
    const bool ok = engine_open(&j.engine, &engine, NULL, NULL, &err) && run(&j, &err);
    if (ok)
        report(&j);
    else
        status = command_failed(&err);
    if (ok && generation_interrupted())
        fputs("specscope: interrupted; the best heads so far are kept\n", stderr);
    job_free(&j);
    return status;
}
