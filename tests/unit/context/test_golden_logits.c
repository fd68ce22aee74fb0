/* Logits compared with other implementations: the bundled model's with numpy (make_logits_golden.py), those of tiny
 * models of every architecture with PyTorch's transformers (make_models_golden.py). Each tiny model is read as GGUF
 * file and as Hugging Face folder. Run from the repository's root. */
#include "cli/options/commands.h"
#include "kernels/cpu/isa.h"
#include "tests/rigs/golden_logits.h"
#include "tests/rigs/test.h"

#define FOLDER "tests/golden/models/"

static struct golden golden;

static struct model *
open_model(const char *path, bool quantize)
{
    struct model *m;
    struct err err = {.kind = ERR_NONE};
    assert_ok(model_open_with(&m, path, &(struct model_options){.quantize = quantize}, &err), err);
    return m;
}

static void
assert_golden(const char *path, const char *text)
{
    struct model *m = open_model(path, false);
    golden_read(&golden, text);
    assert_int_equal(m->desc.vocab, golden.vocab);
    for (size_t i = 0; cpu_isas[i] != NULL; i++) {
        if (!cpu_isas[i]->usable())
            continue;
        const double exact = golden_error(m, &golden, cpu_isas[i]->name, true);
        const double fast = golden_error(m, &golden, cpu_isas[i]->name, false);
        print_message("%s: %s: exact %.2g, fast %.2g\n", path, cpu_isas[i]->name, exact, fast);
        assert_less(exact, 1e-4);
        assert_less(fast, 5e-2);
        const struct backend_options o = {.threads = 1, .isa = cpu_isas[i]->name, .exact = true};
        if (golden.n_said > 0) /* the file of the bundled model contains no tokens */
            assert_int_equal(golden_strays(&cpu_backend, m, &golden, &o), 0);
    }
    model_close(m);
}

TEST(the_bundled_models_logits_are_the_golden_ones)
{
    assert_golden(bundled_model_path(), "tests/golden/logits_fables.txt");
}

static const char *const architectures[] = {"llama", "llama3", "mistral", "qwen2", "qwen3"};

static void
assert_every_architecture(const char *ending)
{
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
        char model[64], expected[64];
        snprintf(model, sizeof model, FOLDER "%s%s", architectures[i], ending);
        snprintf(expected, sizeof expected, FOLDER "%s.txt", architectures[i]);
        assert_golden(model, expected);
    }
}

TEST(gguf_files_of_every_architecture_give_the_logits_of_transformers)
{
    assert_every_architecture(".gguf");
}

TEST(hugging_face_folders_give_the_same_logits)
{
    assert_every_architecture("");
}

TEST(a_file_of_every_type_gives_the_logits_of_its_dequantised_weights)
{
    assert_golden(FOLDER "types.gguf", FOLDER "types.txt");
    assert_golden(FOLDER "tables.gguf", FOLDER "tables.txt");
}

TEST(no_golden_file_of_models_lacks_a_test)
{
    static const char *const names[] = {"llama", "llama3", "mistral", "qwen2", "qwen3", "types", "tables"};
    golden_assert_listed(FOLDER, "/config.json", architectures, sizeof architectures / sizeof *architectures);
    golden_assert_listed(FOLDER, ".txt", names, sizeof names / sizeof *names);
}

static void
assert_same_bytes(const struct tensor *a, const struct tensor *b)
{
    assert_int_equal(a->type, WEIGHT_Q8_0);
    assert_int_equal(b->type, WEIGHT_Q8_0);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->cols, b->cols);
    assert_memory_equal(a->data, b->data, (size_t)a->rows * (a->cols / 32) * 34);
}

TEST(quantising_on_load_makes_the_bytes_of_the_gguf_package)
{
    struct model *ours = open_model(FOLDER "llama.gguf", true), *theirs = open_model(FOLDER "llama-q8_0.gguf", false);
    assert_true(ours->quantized && !theirs->quantized);
    assert_int_not_equal(ours->hash, theirs->hash);
    assert_string_equal(ours->types, theirs->types);
    assert_int_equal(ours->tensors_of[WEIGHT_Q8_0], 3 * 7 + 2);
    assert_memory_equal(ours->parameters_of, theirs->parameters_of, sizeof ours->parameters_of);
    assert_same_bytes(&ours->desc.embedding, &theirs->desc.embedding);
    assert_same_bytes(&ours->desc.head, &theirs->desc.head);
    for (uint32_t l = 0; l < ours->desc.n_layers; l++) {
        for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++)
            if (layer_tensors[i].kind == LAYER_MATRIX && tensor_present(&ours->desc.layers[l].all[i]))
                assert_same_bytes(&ours->desc.layers[l].all[i], &theirs->desc.layers[l].all[i]);
    }
    model_close(ours);
    model_close(theirs);
}
