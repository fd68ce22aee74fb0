/* Files that only paths lead to: lists of prompts, histories, tables of bench, the rest of an interrupted training and where it was, the
 * index of a folder of weights. The first byte says which. Each is refused in one line, or what was read holds. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/files.h"
#include "cli/train/train_partial.h"
#include "cli/train/train_state.h"
#include "engine/files/hf_folder.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/scratch.h"
#include "tui/figures/bench_table.h"
#include "tui/widgets/prompt_editor.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

struct place {
    char folder[64], file[96], index[128], config[96], partial[112], state[112];
};

static struct place place; /* the fuzzer's only entry has no place for it */

static void
remove_place(void)
{
    unlink(place.file);
    unlink(place.index);
    unlink(place.config);
    unlink(place.partial);
    unlink(place.state);
    rmdir(place.folder);
}

static void
make_place(void)
{
    scratch_folder(place.folder, sizeof place.folder, "files");
    snprintf(place.file, sizeof place.file, "%s/file", place.folder);
    snprintf(place.partial, sizeof place.partial, "%s.partial", place.file);
    snprintf(place.state, sizeof place.state, "%s.state", place.file);
    snprintf(place.index, sizeof place.index, "%s/model.safetensors.index.json", place.folder);
    snprintf(place.config, sizeof place.config, "%s/config.json", place.folder);
    scratch_put(place.config, "{\"model_type\": \"llama\"}", 23);
    atexit(remove_place);
}

static void
must_be_a_line(const struct err *err)
{
    MUST(err->kind != ERR_NONE && err->text[0] != '\0' && strpbrk(err->text, "\n\r\033") == NULL);
}

static void
try_prompts(void)
{
    char **prompts;
    size_t n;
    struct err err = {0};
    if (!prompts_read(place.file, &prompts, &n, &err)) {
        must_be_a_line(&err);
        return;
    }
    MUST(n > 0);
    for (size_t i = 0; i < n; i++)
        MUST(prompts[i] != NULL);
    prompts_free(prompts, n);
}

static void
try_history(void)
{
    struct history h;
    struct err err = {0};
    history_open(&h, place.file);
    MUST(h.n >= 0 && h.n <= HISTORY_LINES);
    for (int i = 0; i < h.n; i++)
        MUST(h.line[i] != NULL && h.line[i][0] != '\0');
    history_add(&h, "another\nline \\ with all");
    MUST(history_close(&h, &err));
}

static void
try_table(void)
{
    struct bench_table t;
    struct err err = {0};
    if (!bench_table_open(&t, place.file, &err)) {
        must_be_a_line(&err);
    } else {
        const size_t column = bench_table_column(&t, "tok_per_s");
        for (size_t i = 0; i < t.n_lines; i++) {
            bench_table_value(&t, i, column);
            bench_line_setting(&t.line[i], "tau");
        }
    }
    bench_table_close(&t);
}

static bool
take_record(void *user, const unsigned char *bytes, size_t n, struct err *err)
{
    volatile unsigned char touched = n > 0 ? bytes[n - 1] : 0;
    (void)user, (void)err, (void)touched;
    return true;
}

static void
try_partial(const uint8_t *data, size_t size)
{
    struct train_settings settings = {.n = 0};
    struct train_partial p = {.fd = -1};
    struct err err = {0};
    train_settings_add(&settings, "drafts %d", 5);
    scratch_put(place.partial, data, size);
    if (!train_partial_open(&p, place.file, &settings, take_record, NULL, &err))
        must_be_a_line(&err);
    train_partial_close(&p, true);
}

/* Any bytes; and what a training put, taken in pieces of whatever size. */
static void
try_state(const uint8_t *data, size_t size)
{
    struct train_settings settings = {.n = 0};
    struct train_state s = {.fd = -1};
    struct err err = {0};
    unsigned char taken[64];
    train_settings_add(&settings, "drafts %d", 5);
    scratch_put(place.state, data, size);
    if (!train_state_open(&s, place.file, &settings, &err))
        must_be_a_line(&err);
    train_state_close(&s, true);
    err = (struct err){0};
    MUST(train_state_open(&s, place.file, &settings, &err) && !train_state_there(&s));
    const struct slice pieces[] = {{(const char *)data, size / 2}, {(const char *)data + size / 2, size - size / 2}};
    train_state_put(&s, pieces, 2);
    train_state_close(&s, false);
    MUST(train_state_open(&s, place.file, &settings, &err) && train_state_there(&s));
    size_t at = 0;
    for (size_t n = 1; at < size && train_state_take(&s, taken, n, &err); n = n % sizeof taken + 1) {
        MUST(memcmp(taken, data + at, n) == 0);
        at += n;
    }
    MUST(at <= size && train_state_taken(&s, &err) == (at == size));
    train_state_close(&s, true);
}

static void
try_index(const uint8_t *data, size_t size)
{
    struct hf_folder *f;
    struct err err = {0};
    scratch_put(place.index, data, size);
    if (hf_folder_open(&f, place.folder, true, &err)) /* one that names no file: none is there */
        hf_folder_close(f);
    else
        must_be_a_line(&err);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (place.folder[0] == '\0')
        make_place();
    if (size < 1)
        return 0;
    const uint8_t kind = data[0] % 6;
    if (kind < 3)
        scratch_put(place.file, data + 1, size - 1);
    switch (kind) {
    case 0: try_prompts(); break;
    case 1: try_history(); break;
    case 2: try_table(); break;
    case 3: try_partial(data + 1, size - 1); break;
    case 5: try_state(data + 1, size - 1); break;
    default: try_index(data + 1, size - 1); break;
    }
    return 0;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    if (size < 2 || seed % 8 == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    return 1 + (data[0] % 6 == 4 ? mutate_json : mutate_lines)(data + 1, size - 1, max_size - 1, seed / 8);
}
