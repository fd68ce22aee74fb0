/* What the scope's tests share: a scope and the stream of events that it is fed with. */
#ifndef TESTS_RIGS_SCOPE_RIG_H
#define TESTS_RIGS_SCOPE_RIG_H

#include <math.h>

#include "tests/rigs/scope_events.h"
#include "tests/rigs/test.h"

struct fixture {
    struct run_info info;
    struct scope *scope;
    struct stream stream;
    size_t fed;
};

/* A test with a fixture in *state: a run that has begun, with a prompt of three tokens and the first one after it. */
int scope_set_up(void **state);
int scope_tear_down(void **state);
#define SCOPE_TEST(name) TEST_WITH(name, scope_set_up, scope_tear_down)

const struct scope *seen(struct fixture *); /* the scope, once it has seen all of the stream */

#endif
