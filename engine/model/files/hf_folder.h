/* Reads a model in Hugging Face's format: a folder that contains config.json, the weights in one or more *.safetensors
 * files, and tokenizer files. All of it is untrusted input. */
#pragma once

#include "engine/model/files/safetensors.h"

struct hf_folder {
    char *path;
    struct cJSON *config; /* config.json, an object; for a multimodal model the configuration of its language part */
    char part_of[32];     /* model_type of the multimodal model; "" if `config` is the whole config.json */
    struct cJSON *generation; /* generation_config.json, or NULL */
    struct safetensors **files;
    size_t n_files;                    /* 0: the folder contains no weights */
    const struct safetensor **tensors; /* (n_tensors) tensors of all files, sorted by name */
    size_t n_tensors;
};

/* Opens a folder. Fails if config.json or a file that the index names is missing. If `weights` is true, it also fails
 * if the folder contains no weights, or only weights in another format. */
bool hf_folder_open(struct hf_folder **, const char *path, bool weights, struct err *);
/* Builds a folder from texts in memory and one safetensors file. For fuzzing and tests. `generation` may be NULL. Takes
 * ownership of the safetensors file, even on failure; the bytes it was parsed from stay the caller's. */
bool hf_folder_parse(struct hf_folder **, const char *name, const char *config, size_t n_config, const char *generation,
                     size_t n_generation, struct safetensors *, struct err *);
void hf_folder_close(struct hf_folder *);

/* Returns the entry of `tensors` with this name; NULL if there is none. */
const struct safetensor *const *hf_folder_find(const struct hf_folder *, const char *tensor);

/* Reads a file of the folder into memory that the caller frees, with a NUL after the last byte. If the file does not
 * exist, it sets *text to NULL and succeeds. */
bool hf_folder_text(const char *folder, const char *file, char **text, size_t *len, struct err *);

/* Returns true if the path is a folder. */
bool hf_is_folder(const char *path);
