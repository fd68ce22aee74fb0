#include "cli/train/train.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/program.h"
#include "base/rng.h"
#include "cli/options/commands.h"
#include "cli/options/files.h"
#include "cli/options/option_table.h"

bool
train_main(struct options *o, int *status, struct err *err)
{
    (void)o, (void)status;
    return err_set(err, ERR_USAGE, "train what? %s train heads, accept or profile; each has --help", program_name());
}

bool
train_can_begin(const struct options *o, const char *command, const char *text, const struct file_kind *kind,
                struct err *err)
{
    const char *out = o->train.out;
    if (o->train.text == NULL && o->prompts_file == NULL)
        return err_set(err, ERR_USAGE, "train %s: --text FILE is missing: %s", command, text);
    if (out == NULL)
        return err_set(err, ERR_USAGE, "train %s: --out FILE is missing: what to write", command);
    return file_replaceable(AT_FDCWD, out, kind, err) && file_replace_possible(AT_FDCWD, out, err);
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
    if (!blas_open(&b, e, &why))
        fprintf(stderr, "specscope: training multiplies on the CPU: %s\n", why.text);
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

static const struct tokenize_options with_bos = {.bos = true};

static bool
read_text(struct train_prompts *p, const char *path, const struct tokenizer *t, size_t n, struct err *err)
{
    char *text;
    size_t len;
    if (!file_read(path, &text, &len, err))
        return false;
    const bool ok = tokenizer_encode(t, text, len, with_bos, &p->tokens, &p->n_tokens, err);
    free(text);
    if (!ok)
        return false;
    p->bos = p->n_tokens > 0 && p->tokens[0] == tokenizer_bos(t);
    p->n = n;
    return p->n_tokens >= 2 * (size_t)p->length || err_set(err, ERR_WORK,
                                                           "train: %s has %zu tokens; two prompts of %" PRIu32
                                                           " are the least: give more text, or fewer --prompt-tokens",
                                                           path, p->n_tokens, p->length);
}

static bool
add_line(struct train_prompts *p, const char *text, const struct tokenizer *t, struct err *err)
{
    token_t *ids, *all;
    size_t n;
    if (!tokenizer_encode(t, text, strlen(text), with_bos, &ids, &n, err))
        return false;
    n = n < p->length ? n : p->length; /* its beginning */
    all = n > 0 ? realloc(p->tokens, (p->n_tokens + n) * sizeof *all) : NULL;
    if (all != NULL) {
        memcpy(all + p->n_tokens, ids, n * sizeof *ids);
        p->tokens = all;
        p->n_tokens += n;
        p->line[++p->n] = p->n_tokens;
    }
    free(ids);
    return all != NULL || n == 0 || err_set(err, ERR_WORK, "train: out of memory for prompts");
}

static bool
read_lines(struct train_prompts *p, const char *path, const struct tokenizer *t, size_t most, struct err *err)
{
    struct prompt_list lines;
    if (!prompts_read(path, &lines, err))
        return false;
    const size_t n = lines.n < most ? lines.n : most;
    p->line = calloc(n + 1, sizeof *p->line);
    bool ok = p->line != NULL || err_set(err, ERR_WORK, "train: out of memory for prompts");
    for (size_t i = 0; i < n && ok; i++)
        ok = add_line(p, lines.texts[i], t, err);
    prompts_free(&lines);
    return ok && (p->n > 0 || err_set(err, ERR_WORK, "train: %s has no prompts", path));
}

bool
train_prompts_open(struct train_prompts *p, const struct options *o, const struct tokenizer *t, size_t n,
                   struct err *err)
{
    *p = (struct train_prompts){.length = o->answers.prompt};
    return o->prompts_file != NULL ? read_lines(p, o->prompts_file, t, n, err) : read_text(p, o->train.text, t, n, err);
}

void
train_prompts_close(struct train_prompts *p)
{
    free(p->tokens);
    free(p->line);
    *p = (struct train_prompts){0};
}

size_t
train_prompts_copy(const struct train_prompts *p, size_t i, token_t *to)
{
    if (p->line != NULL) {
        const size_t n = p->line[i + 1] - p->line[i];
        memcpy(to, p->tokens + p->line[i], n * sizeof *to);
        return n;
    }
    const size_t n = p->length - p->bos;
    if (p->bos)
        to[0] = p->tokens[0];
    memcpy(to + p->bos, p->tokens + p->bos + (p->n_tokens - p->bos - n) * i / p->n, n * sizeof *to);
    return p->length;
}
