#include "engine/model/token_rank.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_read.h"
#include "base/program.h"
#include "engine/model/tokenizer/tokenizer.h"

#define FORMAT     "specscope token counts 1"
#define MOST_BYTES (64u << 20)

const struct file_kind token_counts_file = {.what = "token counts of specscope", .begins = FORMAT};

bool
token_ranks_last(const struct tokenizer *t, token_t token)
{
    if (t == NULL)
        return false;
    if (token < 0 || (uint32_t)token >= tokenizer_size(t))
        return true;
    const enum token_kind kind = tokenizer_kind(t, token);
    return kind == TOKEN_CONTROL || kind == TOKEN_UNUSED || kind == TOKEN_UNKNOWN;
}

struct counted {
    uint64_t count;
    token_t id;
    bool last;
};

static int
by_rank(const void *a, const void *b)
{
    const struct counted *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    if (x->last != y->last)
        return x->last ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

bool
token_rank(const struct tokenizer *t, uint32_t vocab, const uint64_t *counts, token_t *ids, struct err *err)
{
    if (counts == NULL) { /* by id, without a sort: every model that is opened comes here */
        uint32_t n = 0;
        for (int last = 0; last < 2; last++)
            for (uint32_t i = 0; i < vocab; i++)
                if (token_ranks_last(t, (token_t)i) == (last != 0))
                    ids[n++] = (token_t)i;
        return true;
    }
    struct counted *all = malloc(vocab * sizeof *all);
    if (all == NULL)
        return err_set(err, ERR_WORK, "out of memory ordering %" PRIu32 " tokens", vocab);
    for (uint32_t i = 0; i < vocab; i++) {
        const token_t id = (token_t)i;
        all[i] = (struct counted){counts[i], id, token_ranks_last(t, id)};
    }
    qsort(all, vocab, sizeof *all, by_rank);
    for (uint32_t i = 0; i < vocab; i++)
        ids[i] = all[i].id;
    free(all);
    return true;
}

/* ---- the file ---- */

bool
token_counts_write(const char *path, const uint64_t *counts, uint32_t vocab, struct err *err)
{
    token_t *ids = malloc(vocab * sizeof *ids);
    struct output out;
    if (ids == NULL)
        return err_set(err, ERR_WORK, "out of memory writing %s", path);
    bool ok = token_rank(NULL, vocab, counts, ids, err) && output_open(&out, path, &token_counts_file, err);
    if (ok) {
        fprintf(out.f, FORMAT "\nvocabulary %" PRIu32 "\n", vocab);
        for (uint32_t i = 0; i < vocab && counts[ids[i]] > 0; i++)
            fprintf(out.f, "%" PRId32 " %" PRIu64 "\n", ids[i], counts[ids[i]]);
        ok = output_close(&out, true, err);
    }
    free(ids);
    return ok;
}

static bool
wrong(struct err *err, const char *path, size_t line, const char *what)
{
    return err_set(err, ERR_WORK, "%s:%zu: not a file of token counts: %s; `%s train heads` writes one", path, line,
                   what, program_name());
}

/* Reads a decimal number without sign and moves *at past it. */
static bool
read_number(const char **at, uint64_t *value)
{
    const char *begin = *at;
    *value = 0;
    for (; **at >= '0' && **at <= '9'; ++*at)
        if (__builtin_mul_overflow(*value, 10u, value) || __builtin_add_overflow(*value, (uint64_t)(**at - '0'), value))
            return false;
    return *at > begin;
}

/* Moves *at past `text` if the input has it there. */
static bool
skip(const char **at, const char *text)
{
    const size_t n = strlen(text);
    if (strncmp(*at, text, n) != 0)
        return false;
    *at += n;
    return true;
}

bool
token_counts_parse(const char *path, const char *text, size_t n, uint64_t *counts, uint32_t vocab, struct err *err)
{
    const char *at = text;
    uint64_t size;
    size_t line = 3;
    memset(counts, 0, vocab * sizeof *counts);
    if (!skip(&at, FORMAT "\n"))
        return wrong(err, path, 1, "the first line is not '" FORMAT "'");
    if (!skip(&at, "vocabulary ") || !read_number(&at, &size) || !skip(&at, "\n"))
        return wrong(err, path, 2, "the second line is not 'vocabulary N'");
    if (size != vocab)
        return err_set(err, ERR_USAGE,
                       "%s: counts for a vocabulary of %" PRIu64 " tokens, not of %" PRIu32
                       ": they are of another model",
                       path, size, vocab);
    for (; at < text + n; line++) {
        uint64_t id, count;
        if (!read_number(&at, &id) || !skip(&at, " ") || !read_number(&at, &count) || !skip(&at, "\n"))
            return wrong(err, path, line, "the line is not 'ID COUNT'");
        if (id >= vocab)
            return wrong(err, path, line, "the vocabulary has no token with this id");
        if (counts[id] > 0)
            return wrong(err, path, line, "the token is listed twice");
        counts[id] = count;
    }
    return true;
}

bool
token_counts_read(const char *path, uint64_t *counts, uint32_t vocab, struct err *err)
{
    char *text;
    size_t n;
    if (!file_text(path, MOST_BYTES, &text, &n, err))
        return false;
    const bool ok = token_counts_parse(path, text, n, counts, vocab, err);
    free(text);
    return ok;
}
