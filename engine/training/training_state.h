/* What a training changes as it goes: whoever keeps all of it, and puts it back, goes on with the same numbers. */
#ifndef ENGINE_TRAINING_TRAINING_STATE_H
#define ENGINE_TRAINING_TRAINING_STATE_H

#include <stddef.h>

#define TRAINING_PARTS 4

struct training_part { /* the training's own memory */
    void *data;
    size_t bytes;
};

#endif
