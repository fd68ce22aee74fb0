/* Shared code of fuzz targets: the entry that each defines, checks, mutators, and files for the code under test. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "engine/model/tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- checks: a target that finds an error aborts ---- */

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

/* Checks that the error of refused input has one line without control characters. */
static inline void
must_refuse(const struct err *err)
{
    MUST(err->kind != ERR_NONE && err->text[0] != '\0' && strpbrk(err->text, "\n\r\033") == NULL);
}

/* Encodes the text with and without special tokens. Checks that the ids are the tokenizer's own and can be decoded.
 * Returns false if the tokenizer refused the text. */
bool use_tokenizer(const struct tokenizer *, const char *text, size_t len);

/* ---- mutations that preserve the form of the input: its framing remains valid, its contents change ---- */

/* libFuzzer's own or the driver's: changes bytes. Returns the new size, at most max_size. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* Changes, removes, doubles or moves a value of a JSON text. Changes bytes if the text is not JSON, and sometimes
 * otherwise. */
size_t mutate_json(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
/* Does the same to the part after `skip` bytes and before the first byte 0xff. Bytes from there on do not change. */
size_t mutate_json_part(uint8_t *data, size_t size, size_t max_size, unsigned int seed, size_t skip);
/* Changes a number in the header of a GGUF file, a value of its metadata, or a tensor's shape, type or offset. Lengths
 * of texts and lists are adjusted. */
size_t mutate_gguf(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
/* Removes, doubles or swaps lines of a text, or replaces a word by another of its words. */
size_t mutate_lines(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* Defines the target's mutator: an expression of data, size, max_size and seed. */
#define MUTATOR(expression)                                                                                            \
    size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)                     \
    {                                                                                                                  \
        return expression;                                                                                             \
    }                                                                                                                  \
    _Static_assert(true, "a semicolon follows")

/* ---- temporary files ---- */

/* Makes a folder for the target, in memory if the machine has such a file system, and writes its path of `size` bytes.
 * The folder is removed at exit. */
void scratch_folder(char *out, size_t size, const char *target);
void scratch_put(const char *path, const void *bytes, size_t n);
void scratch_remove(const char *folder); /* with its contents */

/* Tries bytes as a safetensors file twice: unchanged, and as a header of the right length before n_data bytes of
 * data. */
void try_as_safetensors(const uint8_t *data, size_t size, size_t n_data,
                        void (*use_file)(const unsigned char *, size_t));
