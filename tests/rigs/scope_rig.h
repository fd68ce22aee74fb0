/* Fixture of the scope's tests: a scope and the stream of events that it reads. */
#pragma once

#include <math.h>

#include "tests/rigs/scope_events.h"
#include "tests/rigs/test.h"

struct fixture {
    struct run_info info;
    struct scope *scope;
    struct stream stream;
    size_t fed;
};

/* Set-up of a test with a fixture in *state: a run has begun, with a prompt of three tokens and the first token after
 * it. */
int scope_set_up(void **state);
int scope_tear_down(void **state);
#define SCOPE_TEST(name) TEST_WITH(name, scope_set_up, scope_tear_down)

const struct scope *seen(struct fixture *); /* returns the scope after it has read the whole stream */
