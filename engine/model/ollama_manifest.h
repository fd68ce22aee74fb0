/* Ollama's manifests: a list of layers, one of which is the weights, kept by their digest. */
#ifndef ENGINE_MODEL_OLLAMA_MANIFEST_H
#define ENGINE_MODEL_OLLAMA_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>

#define OLLAMA_BLOB_MOST 80

/* What a manifest names, as paths below the folder of models, blobs/sha256-…; "": it names none. */
struct ollama_blobs {
    char weights[OLLAMA_BLOB_MOST], adapter[OLLAMA_BLOB_MOST];
};

/* Reads a manifest of n bytes; what is no manifest names nothing. Hexadecimal digits are all that comes from the text. False: out of
 * memory. */
bool ollama_manifest_blobs(const char *text, size_t n, struct ollama_blobs *);

#endif
