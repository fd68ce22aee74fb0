/* A fixture for tests of the session: an engine on a tiny model, which the tests of a program share, and functions that
 * run sessions on it. Functions fail the running cmocka test themselves. */
#pragma once

#include "tests/golden/tinymodel.h"
#include "tests/rigs/session_rig.h"

struct fixture {
    struct engine *engine; /* its model has six layers; those after the second change little */
};

/* Opens an engine on a tiny model; leaves no file on disk. If it fails, prints the error to stderr and returns
 * false. */
bool session_fixture_engine(struct engine **, const struct tinymodel *);
/* Opens it with this draft model; NULL: the target's layers before `calm_after`, or its first layer. */
bool session_fixture_pair(struct engine **, const struct tinymodel *, const struct tinymodel *draft,
                          const char *backend, uint32_t threads);
/* Set-up and tear-down of a group: *state is a struct fixture. */
int session_fixture_open(void **state);
int session_fixture_close(void **state);

struct session_options session_usual(void); /* specbound, greedy, 60 tokens in a context of 256 */
enum { SESSION_BATCH = 7 };
/* Returns options for the first SESSION_BATCH of session_prompts, at_a_time of them at a time. */
struct session_options session_batch(uint32_t at_a_time);
/* Runs a session to the end of its run; also fails if its events break a guarantee of event.h. */
void session_run(struct engine *, const struct session_options *, session_rig_hook, void *user,
                 struct session_rig_result *);
void session_control(struct live *, enum control_kind, const char *name, const char *text, uint32_t n);
/* Returns whether e is the control event `name` with this new text (NULL: any). */
bool event_is_control(const struct event *e, const char *name, const char *new_text);
