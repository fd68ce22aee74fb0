/* A tiny model as the bytes of a file in memory, which tests can damage and open. An error in these functions fails the
 * test. */
#pragma once

#include "engine/model/model.h"
#include "tests/golden/tinymodel.h"

struct built { /* bytes are the caller's */
    unsigned char *bytes;
    size_t len;
};

struct built build(const struct tinymodel *);
bool read_bytes(struct model **, const struct built *, struct err *);
/* Calls build() and read_bytes(), which must succeed. The bytes must outlive the model. */
struct model *open_tiny_model(struct built *, const struct tinymodel *);
/* Opens a file of the repository. */
struct model *open_golden_model(const char *path);
