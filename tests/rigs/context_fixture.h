/* A fixture for tests of the context: a context on the symbolic backend, with an empty sequence. Functions fail the
 * running cmocka test themselves. */
#pragma once

#include "engine/context/context.h"
#include "tests/rigs/symbolic_backend.h"

enum { L = 6, VOCAB = 32 };

struct fixture {
    struct model_desc desc;
    struct backend *backend;
    struct weights *weights;
    struct context *c;
    atomic_bool cancel;
    seq_t s; /* an empty sequence */
};

void open_with(struct fixture *, struct context_options);
void close_fixture(struct fixture *);

/* Asserts that the context's error is of this kind and that its text contains `part`. */
void assert_error(const struct context *, enum err_kind, const char *part);
/* Asserts exactly what was loaded since *since was stored, and updates *since. */
void assert_loads(struct fixture *, struct loads *since, double layers, double heads);
/* Appends tokens first, first + 1, … as a chain under parent. */
void append_chain(struct fixture *, slot_t parent, token_t first, slot_t *slots, size_t n);
void prefill(struct fixture *, size_t n); /* appends n tokens, at most 64 */
/* Asserts that the row's hidden state was computed from exactly this path of tokens. */
void assert_saw(struct fixture *, slot_t, const token_t *tokens, size_t n);
