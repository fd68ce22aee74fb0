#include "cli/train/train_prompts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/files.h"

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
    char **lines;
    size_t all;
    if (!prompts_read(path, &lines, NULL, &all, err))
        return false;
    const size_t n = all < most ? all : most;
    p->line = calloc(n + 1, sizeof *p->line);
    bool ok = p->line != NULL || err_set(err, ERR_WORK, "train: out of memory for prompts");
    for (size_t i = 0; i < n && ok; i++)
        ok = add_line(p, lines[i], t, err);
    prompts_free(lines, all);
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
