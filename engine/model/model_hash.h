/* A number that tells models apart: FNV-1a over what is small, and over a sample of what is large. */
#ifndef ENGINE_MODEL_MODEL_HASH_H
#define ENGINE_MODEL_MODEL_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START 0xcbf29ce484222325u

uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n);
/* A mapped file: all of its header (bytes below data_start), pieces of its data evenly spaced, and its size. */
uint64_t hash_map(uint64_t hash, const unsigned char *map, uint64_t bytes, uint64_t data_start);

#endif
