/* Ollama's manifests: a list of layers, one of which is the weights, kept by their digest. */
#ifndef ENGINE_MODEL_OLLAMA_MANIFEST_H
#define ENGINE_MODEL_OLLAMA_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>

#define OLLAMA_BLOB_MOST 80

/* The weights that a manifest of n bytes names, as a path below the folder of models, blobs/sha256-…; "": it names none, or is
 * no manifest. Hexadecimal digits are all that comes from the text. False: out of memory. */
bool ollama_manifest_blob(const char *text, size_t n, char out[OLLAMA_BLOB_MOST]);

#endif
