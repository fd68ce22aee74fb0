/* Where models are on this machine: the caches of other programs, by the names that people know them by. Nothing is ever
 * fetched. Environment variables are read at each call. */
#ifndef ENGINE_MODEL_MODEL_LOCATIONS_H
#define ENGINE_MODEL_MODEL_LOCATIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/base/err.h"

/* The name of the model that comes with the program; the caller has its path. */
#define MODEL_BUNDLED "bundled"

/* The path of what `name` means (size bytes of room):
 *   hf:ORG/NAME[@REVISION][:PART]  in the Hugging Face cache: a folder with config.json, or of GGUF files, those in subfolders
 *                                  among them, the only one, or the one whose path contains PART in either case ("Q4_K_M").
 *                                  REVISION is a branch, a tag, or a commit or its first digits.
 *   ollama:[[REGISTRY/]OWNER/]NAME[:TAG]  the weights of an Ollama model; TAG latest. A model with an adapter is refused, with the
 *                                  paths of both.
 * and of anything else itself. Not there: ERR_WORK, with the command that would fetch it, or near names. */
bool model_find(const char *name, char *path, size_t size, struct err *);

/* Every model in the Hugging Face cache, Ollama's, LM Studio's and llama.cpp's folders, by the name that model_find() takes, or
 * a path; of an Ollama model with an adapter the path is the adapter's. False from `seen` ends it. False: there may be more, for a folder or a manifest could not be read (ERR_WORK). */
typedef bool (*model_seen_fn)(void *user, const char *name, const char *path);
bool model_locations_list(model_seen_fn seen, void *user, struct err *);

/* A name that is near one that is there is a slip of the finger. */

/* Ollama's manifests: a list of layers, one of which is the weights, kept by their digest. */

#define OLLAMA_BLOB_MOST 80

/* What a manifest names, as paths below the folder of models, blobs/sha256-…; "": it names none. */
struct ollama_blobs {
    char weights[OLLAMA_BLOB_MOST], adapter[OLLAMA_BLOB_MOST];
};

/* Reads a manifest of n bytes; what is no manifest names nothing. Hexadecimal digits are all that comes from the text. False: out of
 * memory. */
bool ollama_manifest_blobs(const char *text, size_t n, struct ollama_blobs *);

#endif
