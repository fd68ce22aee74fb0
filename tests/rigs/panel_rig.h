/* Fixture of the panels' tests: a panel that is drawn into a grid, and a host that records the panel's commands. */
#pragma once

#include <stdio.h>

#include <math.h>

#include "engine/events/sampling_knobs.h"
#include "engine/events/settings.h"
#include "tests/rigs/scope_events.h"
#include "tests/rigs/test.h"
#include "tui/panels/panel.h"

struct fixture {
    struct run_info info;
    struct scope *scope;
    struct stream stream;
    size_t fed;
    struct panel_host host;
    char command[200], said[400]; /* the panel's last command and message */
    bool refuse;                  /* commands fail */
    struct settings requested;    /* by `set` commands that were not refused */
    struct selection selection;
    struct view view;
    struct grid grid;
    const struct panel_ops *ops; /* the panel under test */
    void *panel;
    char line[4096];
    bool passed;
};

void open_panels(struct fixture *, uint32_t layers);
void close_panels(struct fixture *);
void request(struct fixture *, const char *knob, const char *text); /* stores a requested knob value */
void see(struct fixture *);                                         /* feeds new events of the stream to the scope */
/* Adds events to the stream: tokens 0 to n - 1 as the prompt, and a round after a prompt of two tokens. */
void prompt(struct fixture *, const char *const *words, uint32_t n);
void emit_a_round(struct fixture *);
const struct panel_ops *panel_named(const char *name);
void use(struct fixture *, const char *name);    /* opens a panel */
void draw(struct fixture *, int rows, int cols); /* the panel, into rows × cols cells */
const char *line(struct fixture *, int y);       /* a row's text */
/* Appends the panel, drawn in so many cells, with its note to the text of a golden file. */
void picture(struct fixture *, FILE *, const char *what, int rows, int cols);
int row_with(struct fixture *, const char *text); /* the row that contains the text, or -1 */
void press(struct fixture *, int key);

/* A test with a fixture in *state whose run has started. If the test fails, the last grid that it drew is printed. */
int panel_set_up(void **state);
int panel_tear_down(void **state);
void panel_passed(struct fixture *);
#define PANEL_TEST(name)                                                                                               \
    static void panel_##name(void **state);                                                                            \
    TEST_WITH(name, panel_set_up, panel_tear_down)                                                                     \
    {                                                                                                                  \
        panel_##name(state);                                                                                           \
        panel_passed(*state);                                                                                          \
    }                                                                                                                  \
    static void panel_##name(__attribute__((unused)) void **state)
