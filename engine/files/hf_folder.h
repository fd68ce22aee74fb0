/* A model as Hugging Face keeps it: a folder with config.json, the weights in one or many *.safetensors, and tokenizer
 * files. Everything is read as bytes of a stranger's. */
#ifndef ENGINE_FILES_HF_FOLDER_H
#define ENGINE_FILES_HF_FOLDER_H

#include "engine/files/safetensors.h"

struct hf_folder {
    char *path;
    struct cJSON *config;     /* config.json: an object; of a model with eyes or ears that of its language part */
    char part_of[32];         /* … which is one of this model_type; "": it is all of it */
    struct cJSON *generation; /* generation_config.json, or NULL */
    struct safetensors **files;
    size_t n_files;                    /* 0: no weights, only what surrounds them */
    const struct safetensor **tensors; /* (n_tensors) of all files, sorted by name */
    size_t n_tensors;
};

/* A folder without config.json, or with an index that names a file which is missing, is an error that says so; and so is
 * one without weights, or with weights in another format only, unless `weights` is false. */
bool hf_folder_open(struct hf_folder **, const char *path, bool weights, struct err *);
/* The same from bytes that the caller keeps alive (fuzzing, tests): one safetensors file, which becomes the folder's even
 * when this fails. generation may be NULL. */
bool hf_folder_parse(struct hf_folder **, const char *name, const char *config, size_t n_config, const char *generation,
                     size_t n_generation, struct safetensors *, struct err *);
void hf_folder_close(struct hf_folder *);

/* Where in `tensors` the one of this name stands; NULL: there is none. */
const struct safetensor *const *hf_folder_find(const struct hf_folder *, const char *tensor);

/* A file of the folder as text in memory that the caller frees, a NUL behind the last byte. A file that is not there is
 * no error: *text is NULL. */
bool hf_folder_text(const char *folder, const char *file, char **text, size_t *len, struct err *);

/* Whether a file of this name is in the folder. */
bool hf_folder_has(const char *folder, const char *file);

/* Whether the path leads to a folder. */
bool hf_is_folder(const char *path);

#endif
