/* The pieces of a packed weight, by name. */
#include <string.h>

#include "engine/arch/packed_internal.h"
#include "engine/base/printable.h"
#include "kernels/tensor.h"

#define NAME_SIZE 256

bool
packed_refuse(const struct packed_job *j, const char *why)
{
    char shown[96];
    return err_set(j->err, ERR_WORK, "%s: '%s' %s; fetch the folder again", j->folder->path,
                   printable_line(shown, sizeof shown, j->stem, (size_t)j->stem_len), why);
}

const struct safetensor *
packed_piece(const struct packed_job *j, const char *ending)
{
    char name[NAME_SIZE];
    const int n = snprintf(name, sizeof name, "%.*s%s%s", j->stem_len, j->stem, ending[0] == '_' ? "" : ".", ending);
    const struct safetensor *const *at = n < 0 || n >= (int)sizeof name ? NULL : hf_folder_find(j->folder, name);
    return at == NULL ? NULL : *at;
}

void
packed_reals(const struct safetensor *t, size_t first, size_t n, float *out)
{
    tensor_blocks(t->type, t->data + first * tensor_block_bytes(t->type), n, out);
}
