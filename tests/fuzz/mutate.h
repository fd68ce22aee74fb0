/* Mutations that know the form: what they make is framed as it should be, and says something else. Found by libFuzzer, and by
 * the plain driver, as LLVMFuzzerCustomMutator(), which a target defines with one of these. Bytes are mutated as well, for what
 * is framed wrongly must be refused, too. */
#ifndef TESTS_FUZZ_MUTATE_H
#define TESTS_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's own, or the driver's: some bytes become others. Returns the new size, at most max_size. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* A value of a JSON text becomes another one, goes, is doubled, or changes places; a text that is none, or now and then,
 * bytes do. */
size_t mutate_json(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
/* The same of the part that begins behind `skip` bytes and ends before a byte 0xff, where there is one; what is behind is
 * mutated as bytes. */
size_t mutate_json_part(uint8_t *data, size_t size, size_t max_size, unsigned int seed, size_t skip);
/* A GGUF file: a number of its header, a value of its metadata, a tensor's shape, type or place; lengths of texts and lists
 * follow. */
size_t mutate_gguf(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
/* Lines of a text: gone, doubled, changed places, or a word of one of them another one's. */
size_t mutate_lines(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

#endif
