/* Where models are on this machine: the caches of other programs, by the names that people know them by. Nothing is ever
 * fetched. What the environment says is asked anew at each call. */
#ifndef ENGINE_MODEL_MODEL_PLACES_H
#define ENGINE_MODEL_MODEL_PLACES_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"

/* The name of the model that comes with the program, which its caller knows the path of. */
#define MODEL_BUNDLED "bundled"

/* The path of what `name` means (size bytes of room):
 *   hf:ORG/NAME[@REVISION][:PART]  in the Hugging Face cache: a folder with config.json, or of GGUF files the only one, or
 *                                  the one whose name has PART in it, in either case ("Q4_K_M")
 *   ollama:NAME[:TAG]              the weights of an Ollama model; TAG latest
 * and of anything else itself. Not there: ERR_WORK, with the command that would fetch it, or near names. */
bool model_find(const char *name, char *path, size_t size, struct err *);

/* Every model in the Hugging Face cache, Ollama's, LM Studio's and llama.cpp's folders, by the name that model_find() takes, or
 * a path. False from `seen` ends it. False: there may be more, for a folder or a manifest could not be read (ERR_WORK). */
typedef bool (*model_seen_fn)(void *user, const char *name, const char *path);
bool model_places_list(model_seen_fn seen, void *user, struct err *);

#endif
