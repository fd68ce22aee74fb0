#include "engine/synthetic/folder_tokenizer.h"

#include <stdlib.h>

#include "engine/files/hf_folder.h"

struct files {
    char *json, *config, *model, *added; /* NULL: there is none */
    size_t n_json, n_config, n_model, n_added;
};

static bool
read_files(struct files *f, const char *folder, struct err *err)
{
    if (!hf_folder_text(folder, "tokenizer.json", &f->json, &f->n_json, err) ||
        !hf_folder_text(folder, "tokenizer_config.json", &f->config, &f->n_config, err))
        return false;
    return f->json != NULL || (hf_folder_text(folder, "tokenizer.model", &f->model, &f->n_model, err) &&
                               hf_folder_text(folder, "added_tokens.json", &f->added, &f->n_added, err));
}

static bool
open_files(struct tokenizer **t, const struct files *f, const char *folder, struct err *err)
{
    const struct sentencepiece_files pieces = {
        {f->model, f->n_model}, {f->config, f->n_config}, {f->added, f->n_added}};
    if (f->json != NULL)
        return tokenizer_from_json(t, f->json, f->n_json, f->config, f->n_config, folder, err);
    if (f->model != NULL)
        return tokenizer_from_sentencepiece(t, &pieces, folder, err);
    if (hf_folder_has(folder, "tekken.json"))
        return err_set(err, ERR_WORK,
                       "%s: has its tokenizer as tekken.json, which is not read; fetch its tokenizer.json too", folder);
    if (hf_folder_has(folder, "vocab.json") && hf_folder_has(folder, "merges.txt"))
        return err_set(
            err, ERR_WORK,
            "%s: has its tokenizer as vocab.json and merges.txt, which are not read; save it as tokenizer.json with "
            "the transformers package",
            folder);
    return err_set(err, ERR_WORK,
                   "%s: has neither a tokenizer.json nor a tokenizer.model; save the model's tokenizer there with the "
                   "transformers package",
                   folder);
}

bool
folder_tokenizer_open(struct tokenizer **t, const char *folder, struct err *err)
{
    struct files f = {0};
    *t = NULL;
    const bool ok = read_files(&f, folder, err) && open_files(t, &f, folder, err);
    free(f.json);
    free(f.config);
    free(f.model);
    free(f.added);
    return ok;
}
