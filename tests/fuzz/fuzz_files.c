/* Files that are read by path: lists of prompts, histories, tables of bench, the index of a folder of weights. The
 * first byte selects one. Each is refused in one line or read completely. */

#include "cli/options/files.h"
#include "engine/model/files/hf_folder.h"
#include "tests/fuzz/fuzz.h"
#include "tui/app/line.h"
#include "tui/figures/bench_table.h"

struct place {
    char folder[64], file[96], index[128], config[96];
};

static struct place place; /* static, because the fuzzer's entry has no parameter for it */

static void
make_place(void)
{
    scratch_folder(place.folder, sizeof place.folder, "files");
    snprintf(place.file, sizeof place.file, "%s/file", place.folder);
    snprintf(place.index, sizeof place.index, "%s/model.safetensors.index.json", place.folder);
    snprintf(place.config, sizeof place.config, "%s/config.json", place.folder);
    scratch_put(place.config, "{\"model_type\": \"llama\"}", 23);
}

static void
try_prompts(void)
{
    struct prompt_list prompts;
    struct err err = {0};
    if (!prompts_read(place.file, &prompts, &err)) {
        must_refuse(&err);
        return;
    }
    MUST(prompts.n > 0);
    for (size_t i = 0; i < prompts.n; i++)
        MUST(prompts.texts[i] != NULL && prompts.categories[i] != NULL);
    prompts_free(&prompts);
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
        must_refuse(&err);
    } else {
        const size_t column = bench_table_column(&t, "tok_per_s");
        for (size_t i = 0; i < t.n_lines; i++) {
            bench_table_value(&t, i, column);
            bench_line_setting(&t.line[i], "tau");
        }
    }
    bench_table_close(&t);
}

static void
try_index(const uint8_t *data, size_t size)
{
    struct hf_folder *f;
    struct err err = {0};
    scratch_put(place.index, data, size);
    if (hf_folder_open(&f, place.folder, true, &err)) /* only an index that names no file opens, since there is none */
        hf_folder_close(f);
    else
        must_refuse(&err);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (place.folder[0] == '\0')
        make_place();
    if (size < 1)
        return 0;
    const uint8_t kind = data[0] % 4;
    if (kind < 3)
        scratch_put(place.file, data + 1, size - 1);
    switch (kind) {
    case 0: try_prompts(); break;
    case 1: try_history(); break;
    case 2: try_table(); break;
    default: try_index(data + 1, size - 1); break;
    }
    return 0;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    if (size < 2 || seed % 8 == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    return 1 + (data[0] % 4 == 3 ? mutate_json : mutate_lines)(data + 1, size - 1, max_size - 1, seed / 8);
}
