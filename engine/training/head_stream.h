/* Hidden states of a text, a block at a time: what heads are trained on. The text is read in windows, each a context of
 * its own; every row's residual stream after every depth comes out. */
#ifndef ENGINE_TRAINING_HEAD_STREAM_H
#define ENGINE_TRAINING_HEAD_STREAM_H

#include "engine/session/engine.h"

struct head_stream;

/* tokens: borrowed. A window that begins after the first gets BOS in front when `bos` is a token. Full windows only,
 * but for the last. */
bool head_stream_open(struct head_stream **, const struct engine *, const token_t *tokens, size_t n, uint32_t window,
                      token_t bos, const atomic_bool *cancel, struct err *);
void head_stream_close(struct head_stream *);

size_t head_stream_windows(const struct head_stream *);
/* All rows of one window but BOS: hidden (rows, L + 1, width), room for `window` rows; *rows of them. */
bool head_stream_window(struct head_stream *, size_t index, float *hidden, size_t *rows, struct err *);

#endif
