/* Synthetic models: the same in a file and in memory. */
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/model/model_open.h"
#include "engine/model/synthetic/synthetic.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "kernels/synthetic.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/synthetic_gguf.h"
#include "tests/rigs/test.h"

#define TOKENS 12

static char folder[256];

static void
path_in_folder(char *out, size_t size, const char *name)
{
    assert_less(snprintf(out, size, "%s/%s", folder, name), (int)size);
}

static struct synthetic_weights *
weights_of(const char *text)
{
    struct synthetic_spec spec;
    struct synthetic_weights *w = NULL;
    struct err err = {0};
    if (!synthetic_read_spec(text, &spec, &err) || !synthetic_weights_make(&w, &spec, &err))
        fail_msg("%s", err.text);
    return w;
}

static struct model *
open_written(const char *text)
{
    char path[300];
    struct synthetic_weights *w = weights_of(text);
    struct model *m = NULL;
    struct err err = {0};
    path_in_folder(path, sizeof path, "model.gguf");
    if (!synthetic_gguf_write(w, path, NULL, NULL, &err) || !model_open(&m, path, &err))
        fail_msg("%s: %s", text, err.text);
    synthetic_weights_free(w);
    unlink(path); /* the mapping keeps the contents */
    return m;
}

static struct model *
open_in_memory(const char *text)
{
    struct model *m;
    struct err err = {0};
    if (!model_open_synthetic(&m, text, &(struct model_options){0}, &err))
        fail_msg("%s: %s", text, err.text);
    return m;
}

/* ---- file and memory ---- */

static void
same_rows(const struct tensor *a, const struct tensor *b)
{
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->cols, b->cols);
    if (b->synthetic == NULL) {
        assert_memory_equal(a->data, b->data, a->cols * sizeof(float));
        return;
    }
    const size_t bytes = synthetic_row_bytes(b->type, b->cols);
    unsigned char *row = malloc(bytes);
    assert_non_null(row);
    for (uint32_t r = 0; r < b->rows; r++) {
        synthetic_row(b, r, row);
        assert_memory_equal((const unsigned char *)a->data + r * bytes, row, bytes);
    }
    free(row);
}

static void
same_layer(const struct model_desc *d, const struct layer_desc *a, const struct layer_desc *b)
{
    for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++) {
        assert_int_equal(tensor_present(&a->all[i]), tensor_present(&b->all[i]));
        if (tensor_present(&b->all[i]))
            same_rows(&a->all[i], &b->all[i]);
    }
    assert_int_equal(a->experts != NULL, b->experts != NULL);
    for (uint32_t e = 0; e < d->form.experts.n; e++)
        for (enum expert_tensor i = 0; i < EXPERT_MATRICES; i++)
            same_rows(&a->experts[e].all[i], &b->experts[e].all[i]);
}

static void
same_model(const struct model *file, const struct model *memory)
{
    const struct model_desc *a = &file->desc, *b = &memory->desc;
    assert_int_equal(a->n_layers, b->n_layers);
    assert_int_equal(a->width, b->width);
    assert_int_equal(a->heads, b->heads);
    assert_int_equal(a->kv_heads, b->kv_heads);
    assert_int_equal(a->head_dim, b->head_dim);
    assert_int_equal(a->ffn, b->ffn);
    assert_int_equal(a->vocab, b->vocab);
    assert_int_equal(a->rope_dims, b->rope_dims);
    assert_int_equal(a->rope, b->rope);
    assert_number_equal(a->rope_base, b->rope_base);
    assert_number_equal(a->rope_scale, b->rope_scale);
    assert_number_equal(a->rms_eps, b->rms_eps);
    assert_int_equal(a->window, b->window);
    assert_ptr_equal(a->rope_factors, b->rope_factors);
    assert_int_equal(a->form.experts.n, b->form.experts.n);
    assert_int_equal(a->form.experts.used, b->form.experts.used);
    assert_int_equal(a->form.experts.ffn, b->form.experts.ffn);
    assert_int_equal(a->form.experts.shared_ffn, 0);
    assert_int_equal(a->form.experts.routing, b->form.experts.routing);
    assert_int_equal(a->form.experts.renormalised, b->form.experts.renormalised);
    assert_int_equal(file->parameters, memory->parameters);
    assert_number_equal(file->rho, memory->rho);
    assert_int_equal(file->tied, memory->tied);
    assert_int_equal(file->ctx_train, memory->ctx_train);
    assert_memory_equal(file->parameters_of, memory->parameters_of, sizeof file->parameters_of);
    assert_memory_equal(file->tensors_of, memory->tensors_of, sizeof file->tensors_of);
    assert_string_equal(file->types, memory->types);
    assert_string_equal(file->name, memory->name);
    assert_string_equal(file->arch, memory->arch);
    same_rows(&a->embedding, &b->embedding);
    same_rows(&a->head, &b->head);
    same_rows(&a->final_norm, &b->final_norm);
    for (uint32_t l = 0; l < a->n_layers; l++)
        same_layer(b, &a->layers[l], &b->layers[l]);
    assert_int_equal(tokenizer_size(file->tokenizer), tokenizer_size(memory->tokenizer));
    for (uint32_t id = 0; id < a->vocab; id++) {
        const struct slice x = tokenizer_bytes(file->tokenizer, (token_t)id, true),
                           y = tokenizer_bytes(memory->tokenizer, (token_t)id, true);
        assert_int_equal(x.len, y.len);
        assert_memory_equal(x.data, y.data, x.len);
        assert_int_equal(tokenizer_kind(file->tokenizer, (token_t)id), tokenizer_kind(memory->tokenizer, (token_t)id));
    }
    static const char text[] = "babe zuzu, <s> \xc3\xa9 two  words";
    token_t *x, *y;
    size_t n, m;
    struct err err;
    assert_true(tokenizer_encode(file->tokenizer, text, sizeof text - 1, (struct tokenize_options){.bos = true}, &x, &n,
                                 &err) &&
                tokenizer_encode(memory->tokenizer, text, sizeof text - 1, (struct tokenize_options){.bos = true}, &y,
                                 &m, &err));
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n * sizeof *x);
    free(x);
    free(y);
}

/* Final logits of the last of TOKENS rows: (vocab). */
static float *
logits_on(const struct backend_ops *ops, const struct model *m, bool exact)
{
    struct err err = {0};
    struct backend *b;
    struct weights *w;
    struct kv_cache *s;
    const struct backend_options o = {.threads = 2, .exact = exact, .gpu = -1};
    const struct kv_cache_desc d = {.slots = 64, .ring = 64, .seqs = 1, .trunk = 64, .max_rows = 64, .max_probes = 1};
    float *logits = malloc(m->desc.vocab * sizeof *logits);
    assert_non_null(logits);
    if (!ops->open(&b, &o, &err) || !ops->load(b, &m->desc, NULL, NULL, &w, &err) || !ops->kv_cache(w, &d, &s, &err))
        fail_msg("%s", err.text);
    struct row rows[TOKENS];
    slot_t tails[TOKENS];
    for (uint32_t i = 0; i < TOKENS; i++) {
        tails[i] = i;
        rows[i] = (struct row){.token = (token_t)(i * 37 % m->desc.vocab), .slot = i, .ring = i, .n_tail = i + 1};
    }
    const struct forward_pass forward = {
        .rows = rows, .n = TOKENS, .tails = tails, .n_tails = TOKENS, .to = m->desc.n_layers};
    assert_true(ops->embed(s, rows, TOKENS) && ops->step(s, &forward) &&
                ops->read_logits(s, TOKENS - 1, m->desc.n_layers, logits));
    assert_ok(ops->wait(s, &err), err);
    ops->drop(s);
    ops->unload(w);
    ops->close(b);
    return logits;
}

static float *
logits_of(const struct model *m, bool exact)
{
    return logits_on(&cpu_backend, m, exact);
}

TEST(a_file_and_memory_are_the_same_model_to_the_bit)
{
    static const char *const texts[] = {"tiny:f32,2,0.75",  "tiny:f16,2,0.75",         "tiny:bf16,2,0.75",
                                        "tiny:q8_0,2,0.75", "tiny-mixture:f16,2,0.75", "tiny-mixture:q8_0,2,0.75"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct model *file = open_written(texts[i]), *memory = open_in_memory(texts[i]);
        same_model(file, memory);
        for (int exact = 0; exact < 2; exact++) {
            float *a = logits_of(file, exact), *b = logits_of(memory, exact);
            assert_memory_equal(a, b, file->desc.vocab * sizeof *a);
            double size = 0;
            for (uint32_t v = 0; v < file->desc.vocab; v++)
                size += (double)a[v] * (double)a[v];
            assert_true(isfinite(size));
            assert_greater(size / file->desc.vocab, 1);
            free(a);
            free(b);
        }
        model_close(file);
        model_close(memory);
    }
}

TEST(f16_and_q8_0_compute_the_same_when_exact)
{
    struct model *half = open_in_memory("tiny:f16,2,0.75"), *quant = open_in_memory("tiny:q8_0,2,0.75");
    float *a = logits_of(half, true), *b = logits_of(quant, true);
    assert_memory_equal(a, b, half->desc.vocab * sizeof *a);
    free(a);
    free(b);
    model_close(half);
    model_close(quant);
}

/* Weights that a GPU generates and weights packed from a file give the same logits bit for bit, and those of the CPU
 * when exact. */
TEST(a_gpu_makes_the_weights_of_the_file)
{
    NEEDS_CUDA;
    static const char *const texts[] = {"tiny-mixture:q8_0,2,0.75", "tiny-mixture:f16,2,0.75"};
    for (int exact = 0; exact < 2; exact++) {
        struct model *file = open_written(texts[exact]), *memory = open_in_memory(texts[exact]);
        float *a = logits_on(cuda, file, exact), *b = logits_on(cuda, memory, exact), *c = logits_of(file, exact);
        double apart = 0, size = 0;
        assert_memory_equal(a, b, file->desc.vocab * sizeof *a);
        for (uint32_t v = 0; v < file->desc.vocab; v++) {
            apart += pow((double)a[v] - (double)c[v], 2);
            size += pow((double)c[v], 2);
        }
        if (!(sqrt(apart / size) < (exact ? 1e-4 : 0.2)))
            fail_msg("%s: %g apart from the CPU", texts[exact], sqrt(apart / size));
        free(a);
        free(b);
        free(c);
        model_close(file);
        model_close(memory);
    }
}

TEST(every_shape_has_its_parameters)
{
    static const struct {
        const char *text;
        double billions; /* from the models' cards */
        double kv_mib;   /* a token's keys and values */
    } shapes[] = {{"SmolLM-135M,8,0.75", 0.1345, 30 * 2 * 3 * 64 * 2 / 1048576.0},
                  {"TinyLlama-1.1B,5,0.75", 1.1000, 22 * 2 * 4 * 64 * 2 / 1048576.0},
                  {"Qwen2.5-0.5B,8,0.75", 0.4940, 24 * 2 * 2 * 64 * 2 / 1048576.0},
                  {"Qwen2.5-7B,8,0.75", 7.6155, 28 * 2 * 4 * 128 * 2 / 1048576.0},
                  {"Gemma-2-2B,8,0.75", 2.6142, 26 * 2 * 4 * 256 * 2 / 1048576.0},
                  {"Gemma-2-9B,8,0.75", 9.2414, 42 * 2 * 8 * 256 * 2 / 1048576.0},
                  {"Gemma-3-4B,8,0.75", 3.8799, 34 * 2 * 4 * 256 * 2 / 1048576.0},
                  {"Llama-2-7B,8,0.75", 6.7384, 32 * 2 * 4096 * 2 / 1048576.0},
                  {"Llama-3-8B,8,0.75", 8.0303, 32 * 2 * 1024 * 2 / 1048576.0},
                  {"Llama-2-13B,8,0.75", 13.0159, 40 * 2 * 5120 * 2 / 1048576.0},
                  {"CodeLlama-34B,8,0.75", 33.7440, 48 * 2 * 1024 * 2 / 1048576.0},
                  {"OLMoE-1B-7B,8,0.75", 6.9191, 16 * 2 * 2048 * 2 / 1048576.0}, /* without norms of queries and keys */
                  {"Qwen3-30B-A3B,8,0.75", 30.5321, 48 * 2 * 512 * 2 / 1048576.0},
                  {"Mixtral-8x7B,8,0.75", 46.7028, 32 * 2 * 1024 * 2 / 1048576.0}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct model *m = open_in_memory(shapes[i].text);
        assert_near((double)m->parameters / 1e9, shapes[i].billions, 0.0001);
        assert_near((double)model_kv_bytes(m, 1, false) / 1048576, shapes[i].kv_mib, 1e-9);
        model_close(m);
    }
}

TEST(a_prompt_becomes_bytes_and_comes_back)
{
    static const char text[] = "Once upon a time, \xc3\xa9t\xc3\xa9\n";
    struct model *m = open_in_memory("tiny,2,0.75");
    struct err err = {0};
    token_t *ids;
    size_t n, len;
    char *back;
    assert_true(
        tokenizer_encode(m->tokenizer, text, sizeof text - 1, (struct tokenize_options){.bos = true}, &ids, &n, &err));
    assert_greater(n, 10);
    assert_int_equal(ids[0], tokenizer_bos(m->tokenizer));
    assert_ok(tokenizer_decode(m->tokenizer, ids, n, &back, &len, &err), err);
    assert_int_equal(len, sizeof text - 1);
    assert_memory_equal(back, text, len);
    for (uint32_t id = 0; id < m->desc.vocab; id++)
        assert_false(tokenizer_is_end(m->tokenizer, (token_t)id));
    free(ids);
    free(back);
    model_close(m);
}

/* ---- failures ---- */

static unsigned
files_in_folder(void)
{
    DIR *d = opendir(folder);
    unsigned n = 0;
    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n - 2;
}

TEST(a_file_that_cannot_be_finished_leaves_nothing)
{
    char path[300], before[4] = "";
    struct synthetic_weights *w = weights_of("tiny,2,0.75");
    struct err err = {0};
    struct rlimit limit, small;
    path_in_folder(path, sizeof path, "model.gguf");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_at_least(fputs("old", f), 0);
    assert_int_equal(fclose(f), 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    for (rlim_t room = 0; room < 1000000; room = room * 3 + 5000) {
        small = (struct rlimit){.rlim_cur = room, .rlim_max = limit.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        const bool done = synthetic_gguf_write(w, path, NULL, NULL, &err);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        assert_false(done);
        assert_int_equal(err.kind, ERR_WORK);
        assert_contains(err.text, "cannot be written");
        assert_int_equal(files_in_folder(), 1);
    }
    f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(before, sizeof before, f));
    assert_int_equal(fclose(f), 0);
    assert_string_equal(before, "old");
    unlink(path);
    path_in_folder(path, sizeof path, "nowhere/model.gguf");
    assert_false(synthetic_gguf_write(w, path, NULL, NULL, &err));
    assert_contains(err.text, "cannot be created");
    synthetic_weights_free(w);
}

static bool
never(void *user, double done)
{
    (void)user;
    return done < 0.5;
}

TEST(writing_can_be_cancelled)
{
    char path[300];
    struct synthetic_weights *w = weights_of("tiny,2,0.75");
    struct err err = {0};
    path_in_folder(path, sizeof path, "model.gguf");
    assert_false(synthetic_gguf_write(w, path, never, NULL, &err));
    assert_int_equal(err.kind, ERR_CANCELLED);
    assert_int_equal(files_in_folder(), 0);
    synthetic_weights_free(w);
}

TEST(a_shape_that_does_not_fit_is_refused_with_the_numbers)
{
    struct model *m;
    struct err err = {0};
    const struct model_options o = {.available = (uint64_t)1 << 30};
    assert_false(model_open_synthetic(&m, "Llama-2-7B:f16,8,0.75", &o, &err));
    assert_null(m);
    assert_int_equal(err.kind, ERR_WORK);
    assert_contains(err.text, "needs 12.6 GiB for its weights and 2.0 GiB for a context of 4096");
    assert_contains(err.text, "1.0 GiB of memory are available");
    assert_false(model_open_synthetic(&m, "tiny:f16,2,0.75", &(struct model_options){.quantize = true}, &err));
    assert_int_equal(err.kind, ERR_USAGE);
}

int
main(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.200s/synthetic-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(folder) == NULL)
        return 1;
    const int failed = run_listed_tests();
    rmdir(folder);
    return failed;
}
