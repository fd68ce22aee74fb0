/* What a session asks of a policy, and what a policy declares. A policy is one file in policies/ and one line in the
 * registry there; sliders, charts, CSV and help follow from its declarations. */
#ifndef ENGINE_EVENTS_POLICY_H
#define ENGINE_EVENTS_POLICY_H

#include "kernels/backend.h"

struct round;

#define POLICY_KNOBS  16
#define POLICY_SERIES 12

enum knob_kind { KNOB_REAL, KNOB_INTEGER, KNOB_CHOICE };

struct knob {
    char name[16], symbol[8], help[96]; /* "tau", "τ" (UTF-8), one line */
    enum knob_kind kind;
    double min, max, step, def;
    const char *const *choices; /* max + 1 names, for KNOB_CHOICE: the value is the index; constant */
};

enum series_form {
    SERIES_LINE,
    SERIES_BAND,
    SERIES_BARS,
    SERIES_STRIP,
    SERIES_GRID,
    SERIES_MASK,
    SERIES_PHASE,
    SERIES_FORMS
};
extern const char *const series_form_names[SERIES_FORMS]; /* "line", … */

struct series {
    char key[24], title[32];
    enum series_form form;
    int rows, cols; /* of STRIP, GRID, MASK; 1 × 1 otherwise. A value's index is row * cols + col */
};

/* A declaration that outlives the policy: for the screen, the trace and replay. */
struct policy_info {
    char name[16], title[48], paper[96];
    uint32_t n_knobs, n_series;
    struct knob knobs[POLICY_KNOBS];
    struct series series[POLICY_SERIES];
};

struct model_info { /* what a policy needs to know about the model */
    uint32_t layers, width, vocab;
    double rho; /* head / layer parameters */
};

struct policy_args {
    const char *state_dir; /* a folder for what a policy learns about a model, or NULL */
    uint64_t model_hash;   /* names the model there */
    struct sampling sampling;
};

struct policy {
    const struct policy_ops *ops;
    struct policy_info info;    /* filled in by open() */
    double value[POLICY_KNOBS]; /* the round's snapshot; changes only between rounds */
    void *state;                /* the policy's own; freed by close() */
};

struct policy_ops {
    const char *name, *title, *paper;
    bool trained_heads; /* its paper trains heads: it asks them where the model has some, else the lens */
    bool (*open)(struct policy *, const struct model_info *, const struct policy_args *,
                 struct err *); /* fills knobs and series */
    bool (*prefilled)(struct policy *,
                      struct round *);                /* after prefill, and when switched to in mid-run; may be NULL */
    bool (*draft)(struct policy *, struct round *);   /* through round_* helpers only */
    bool (*observe)(struct policy *, struct round *); /* after verification; may be NULL */
    void (*close)(struct policy *);                   /* may be NULL */
};

/* For open(): appends a declaration; values start at the default. False, and nothing is added, when there is no place
 * left or the declaration is not a sound one: an empty, reserved (struct control_event) or repeated name, bounds the
 * wrong way round, a default outside them, a choice without its names, a series of no cells. */
bool policy_knob(struct policy *, const struct knob *);
/* The same in one line, for numbers: an integer when the step is 1 or more. */
bool policy_number(struct policy *, const char *name, const char *symbol, double min, double max, double step,
                   double def, const char *help);
bool policy_series(struct policy *, const char *key, const char *title, enum series_form, int rows, int cols);
/* -1 when the policy has no such knob or series. Names and symbols both match. */
int policy_knob_index(const struct policy_info *, const char *name);
int policy_series_index(const struct policy_info *, const char *key);
/* Why a declaration is not a sound one, in one line; what a trace declares is checked the same way. */
bool knob_valid(const struct knob *, struct err *);
bool series_valid(const struct series *, struct err *);
/* The cells of a series: a value's index is below this; 0: any index (LINE, BAND, BARS, PHASE). */
uint32_t series_cells(const struct series *);
/* Checks a value and rounds it to the knob's grid, min + k * step, as the number that "%.9g" prints: what is written to
 * a trace reads back as the same value. One line on a bad one: not a number, out of bounds, no such choice. */
bool knob_parse(const struct knob *, const char *text, double *out, struct err *);
bool knob_check(const struct knob *, double value, double *out, struct err *);
void knob_format(const struct knob *, double value, char *out, size_t n); /* "0.55", "10", "dynamic" */

#endif
