/* specscope tokenize MODEL: text on standard input to ids, one a line; --decode the other way. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli/options/commands.h"
#include "cli/options/files.h"
#include "cli/options/option_table.h"
#include "engine/model/files/gguf.h"
#include "engine/model/files/hf_folder.h"
#include "engine/model/model_open.h"

static bool
encode(const struct tokenizer *t, const struct options *o, const char *text, size_t len, struct err *err)
{
    token_t *ids;
    size_t n;
    const struct tokenize_options options = {
        .bos = !o->tokenize.no_bos, .special = !o->tokenize.no_special, .eos = !o->tokenize.no_eos};
    if (!tokenizer_encode(t, text, len, options, &ids, &n, err))
        return false;
    for (size_t i = 0; i < n; i++) {
        printf("%" PRId32, ids[i]);
        if (o->tokenize.pieces) {
            char shown[128];
            const struct slice piece = tokenizer_bytes(t, ids[i], true);
            printf("\t%s", printable_line(shown, sizeof shown, piece.data, piece.len));
        }
        putchar('\n');
    }
    free(ids);
    return true;
}

/* Ids with white space between them. Memory is the caller's. */
static bool
parse_ids(const struct tokenizer *t, const char *text, size_t len, token_t **ids, size_t *n, struct err *err)
{
    *n = 0;
    *ids = malloc((len / 2 + 1) * sizeof **ids);
    if (*ids == NULL)
        return err_set(err, ERR_WORK, "tokenize: out of memory");
    unsigned line = 1;
    for (size_t at = 0; at < len;) {
        if (isspace((unsigned char)text[at])) {
            line += text[at++] == '\n';
            continue;
        }
        char *end;
        errno = 0;
        long id = strtol(text + at, &end, 10); /* a NUL follows the text */
        const char after = *end;
        if (errno != 0 || end == text + at || (after != '\0' && !isspace((unsigned char)after)) || id < 0 ||
            id >= (long)tokenizer_size(t) || (after == '\0' && end != text + len)) {
            int n_word = 0;
            while (n_word < 20 && at + (size_t)n_word < len && !isspace((unsigned char)text[at + (size_t)n_word]))
                n_word++;
            char word[48];
            return err_set(err, ERR_WORK,
                           "tokenize: line %u of standard input: '%s' is no token id of this model (0 to %" PRIu32 ")",
                           line, printable_line(word, sizeof word, text + at, (size_t)n_word), tokenizer_size(t) - 1);
        }
        (*ids)[(*n)++] = (token_t)id;
        at = (size_t)(end - text);
    }
    return true;
}

/* Writes the bytes unchanged to a pipe or a file. For a terminal, control characters are escaped. */
static bool
print_decoded(const char *text, size_t len, struct err *err)
{
    if (!isatty(STDOUT_FILENO)) {
        fwrite(text, 1, len, stdout);
        return true;
    }
    char *shown = malloc(4 * len + 1);
    if (shown == NULL)
        return err_set(err, ERR_WORK, "tokenize: out of memory");
    for (size_t at = 0; at < len;) {
        const char *newline = memchr(text + at, '\n', len - at);
        const size_t n = newline == NULL ? len - at : (size_t)(newline - (text + at));
        fputs(printable_line(shown, 4 * n + 1, text + at, n), stdout);
        putchar('\n');
        at += n + 1;
    }
    free(shown);
    return true;
}

static bool
decode(const struct tokenizer *t, const char *input, size_t input_len, struct err *err)
{
    token_t *ids;
    char *text = NULL;
    size_t n, len;
    bool ok = parse_ids(t, input, input_len, &ids, &n, err) && tokenizer_decode(t, ids, n, &text, &len, err) &&
              print_decoded(text, len, err);
    free(ids);
    free(text);
    return ok;
}

/* ---- the tokenizer ---- */

static bool
ends_with(const char *text, const char *ending)
{
    const size_t n = strlen(text), n_ending = strlen(ending);
    return n >= n_ending && strcmp(text + n - n_ending, ending) == 0;
}

/* A tokenizer.json or tokenizer.model means its folder; another *.json or *.model means the file itself. */
static bool
open_file(struct tokenizer **t, const char *path, bool json, struct err *err)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    char *text = NULL;
    size_t len;
    bool ok;
    if (strcmp(name, "tokenizer.json") == 0 || strcmp(name, "tokenizer.model") == 0) {
        char *folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
        ok = folder != NULL ? folder_tokenizer_open(t, folder, err) : err_set(err, ERR_WORK, "tokenize: out of memory");
        free(folder);
        return ok;
    }
    ok = file_read(path, &text, &len, err);
    const struct tokenizer_files files = {.model = {text, len}};
    ok = ok && (json ? tokenizer_from_json(t, &files, path, err) : tokenizer_from_sentencepiece(t, &files, path, err));
    free(text);
    return ok;
}

/* *file is the GGUF file of the tokenizer, or NULL; the caller closes both. */
static bool
open_tokenizer(struct tokenizer **t, struct gguf **file, const char *path, struct err *err)
{
    *file = NULL;
    if (hf_is_folder(path))
        return folder_tokenizer_open(t, path, err);
    if (ends_with(path, ".json") || ends_with(path, ".model"))
        return open_file(t, path, ends_with(path, ".json"), err);
    return gguf_open(file, path, err) && tokenizer_open(t, *file, err);
}

bool
tokenize_main(struct options *o, int *status, struct err *err)
{
    (void)status;
    const char *path = o->model != NULL ? o->model : bundled_model_path();
    struct gguf *file = NULL;
    struct tokenizer *t = NULL;
    char *input = NULL;
    size_t len = 0;
    bool ok = open_tokenizer(&t, &file, path, err);
    if (ok && tokenizer_note(t)[0] != '\0')
        fprintf(stderr, "specscope: %s: %s\n", path, tokenizer_note(t));
    ok = ok && file_read("-", &input, &len, err) &&
         (o->tokenize.decode ? decode(t, input, len, err) : encode(t, o, input, len, err)) &&
         stream_close(stdout, "stdout", err);
    free(input);
    tokenizer_close(t);
    gguf_close(file);
    return ok;
}
