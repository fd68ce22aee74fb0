/* Writes a synthetic model as a GGUF file, so that other programs and the readers of files get the same weights. */
#pragma once

#include "engine/model/synthetic/synthetic.h"

/* Writes header and tensors to a new file in the folder of `path`, which replaces `path` when it is complete. After a
 * failure (such as a full disk) the new file is removed and `path` is unchanged. progress may be NULL; if it returns
 * false, writing stops. */
bool synthetic_gguf_write(const struct synthetic_weights *, const char *path, progress_fn progress, void *user,
                          struct err *);
