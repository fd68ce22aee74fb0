/* A name that is near one that is there is a slip of the finger. */
#ifndef ENGINE_MODEL_MODEL_NEAR_H
#define ENGINE_MODEL_MODEL_NEAR_H

#include <stdbool.h>

#include "kernels/base/err.h"

/* Of a path that is not there: false, with what may be meant, where its folder has a name that few letters tell from it; true:
 * nothing is near, and whoever opens it says what is wrong. */
bool model_near(const char *path, struct err *);

#endif
