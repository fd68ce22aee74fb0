/* Finds models in the caches of other programs: Hugging Face, Ollama, LM Studio, llama.cpp. Nothing is ever downloaded.
 * Environment variables are read at each call. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* The name of the model that comes with the program; the caller has its path. */
#define MODEL_BUNDLED "bundled"

/* Writes the path of a model, at most size bytes, for
 *   hf:ORG/NAME[@REVISION][:PART]         in the Hugging Face cache: a folder with config.json, else the only GGUF file, or
 *                                         the only one whose path contains PART ("Q4_K_M", in either case). REVISION is a
 *                                         branch, a tag, or a commit or its first digits.
 *   ollama:[[REGISTRY/]OWNER/]NAME[:TAG]  the weights of an Ollama model; TAG latest. A model with an adapter is refused,
 *                                         with the paths of both.
 * Copies any other name. Fails with ERR_WORK if the model does not exist; the message has the command to download
 * it. */
bool model_find(const char *name, char *path, size_t size, struct err *);

/* Calls seen() for every model in these caches, with the name that model_find() accepts, or a path. For an Ollama model
 * with an adapter the path is the adapter's. Ends when seen() returns false. Returns false with ERR_WORK if a folder or
 * a manifest could not be read, so that models may be missing. */
typedef bool (*model_seen_fn)(void *user, const char *name, const char *path);
bool model_locations_list(model_seen_fn seen, void *user, struct err *);
/* Lists one place: "hf" (the Hugging Face cache), "ollama", or a folder, with the GGUF files and the folders with a
 * config.json below it. Fails with ERR_USAGE if there is no such place. */
bool model_place_list(const char *place, model_seen_fn seen, void *user, struct err *);

#define OLLAMA_BLOB_MOST 80

/* The blobs of an Ollama manifest, as paths below the folder of models, blobs/sha256-…; "": it has none. */
struct ollama_blobs {
    char weights[OLLAMA_BLOB_MOST], adapter[OLLAMA_BLOB_MOST];
};

/* Reads a manifest of n bytes; anything else yields no blobs. Paths contain only hexadecimal digits of the text.
 * Returns false if out of memory. */
bool ollama_manifest_blobs(const char *text, size_t n, struct ollama_blobs *);
