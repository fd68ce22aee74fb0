/* A synthetic model as a GGUF file: its header in memory, its tensors streamed. */
#ifndef ENGINE_SYNTHETIC_SYNTHETIC_GGUF_H
#define ENGINE_SYNTHETIC_SYNTHETIC_GGUF_H

#include <stddef.h>

#include "engine/synthetic/synthetic.h"

/* Magic, metadata and vocabulary: <unk>, <s>, the 256 bytes, ▁, and words of syllables up to the shape's size. No token
 * ends a text. With `tensors` also their entries and the padding after them, else a file without tensors, which is
 * whole. Bytes are the caller's; NULL: out of memory. */
unsigned char *synthetic_gguf_header(const struct synthetic_weights *, bool tensors, size_t *len);

/* Header and tensors, in a new file beside `path` that takes its place when it is complete. Whatever fails (a full
 * disk) leaves nothing behind, and `path` as it was. progress may be NULL; false from it cancels. */
bool synthetic_gguf_write(const struct synthetic_weights *, const char *path, progress_fn progress, void *user,
                          struct err *);

#endif
