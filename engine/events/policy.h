/* What a session asks of a policy, and what a policy declares. A policy is one file in policies/ and one line in the
 * registry there; sliders, charts, CSV and help follow from its declarations. */
#ifndef ENGINE_EVENTS_POLICY_H
#define ENGINE_EVENTS_POLICY_H

#include "engine/events/event.h"

struct layer_record;
struct round;
struct sv_profile;
struct tally;

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
    SERIES_MASK, /* 1: the sublayer is skipped. The first LINE that the policy declares is its score */
    SERIES_PHASE,
    /* How a round's drafts are judged, for the judge panel. Values are of the round that they are reported in. */
    SERIES_DRAFTS, /* 1 or 2 × drafts: column i is of candidate i + 1; row 1, where declared, is the limit that row 0's
                    * value is held against, and both are drawn as lines */
    SERIES_MARKS,  /* 1 × drafts: the cell of the GRID declared before it where candidate i + 1 lies */
    SERIES_CHOICE, /* 2 × numbers: row 0 what 0, 1, … drafts verified promise; a 1 in row 1 marks the number chosen */
    SERIES_EDGES, /* rows × 1 or 1 × cols: lower edges of the rows or columns of the GRID declared before it; the title
                    * is the axis's name. They hold until they are reported anew, as the GRID's cells do */
    SERIES_FORMS
};
extern const char *const series_form_names[SERIES_FORMS]; /* "line", … */

struct series {
    char key[24], title[32];
    enum series_form form;
    int rows, cols; /* 1 × 1 for LINE, BAND, BARS and PHASE. A value's index is row * cols + col */
};

/* Models beside the one that generates (the target), by what they do for it. */
enum helper_role { HELPER_DRAFT, HELPER_COMPANION, HELPERS };
#define NEEDS(role) (1u << (role))              /* of a set of them */
extern const char *const helper_names[HELPERS]; /* "draft", "companion": also the names of the options */
#define LAYERS_OF(role) ((enum layer_model)(MODEL_TARGET + 1 + (role))) /* whose layers a helper's are, in events */

#define NEEDS_ACCEPT_HEAD NEEDS(HELPERS)     /* what is trained about them: the draft model's acceptance head */
#define NEEDS_PROFILE     NEEDS(HELPERS + 1) /* what is known of how the three agree: a verification profile */
#define NEEDS_KINDS       (HELPERS + 2)
extern const char *const need_names[NEEDS_KINDS]; /* by bit: "draft", "companion", "accept_head", "profile" */

/* A declaration that outlives the policy: for the screen, the trace and replay. */
struct policy_info {
    char name[16], title[48], paper[96];
    unsigned needs;   /* a set, as policy_ops has it; 0 in older traces */
    unsigned missing; /* of it, what is not there: the policy can't be chosen; 0 in a trace */
    uint32_t n_knobs, n_series;
    struct knob knobs[POLICY_KNOBS];
    struct series series[POLICY_SERIES];
};

struct model_info { /* what a policy needs to know about the model */
    uint32_t layers, width, vocab;
    double rho;                       /* head / layer parameters */
    const struct sv_profile *profile; /* of the model and its helpers (engine/trained/sv_profile.h), or NULL */
};

struct policy {
    const struct policy_ops *ops;
    struct policy_info info;    /* filled in by policy_open() */
    double value[POLICY_KNOBS]; /* the round's snapshot; changes only between rounds */
    void *state;                /* (ops->state_size) the instance's own, NULL for none */
    /* (ops->shared_size) what the instances of a session have in common, and leave to the next one on the same engine with
     * as many sequences at a time; NULL for none. */
    void *shared;
    bool owns_shared; /* the first one does, and outlives the others */
};

/* Whatever is NULL or 0 a policy does without. Those that take a round return false to stop: a round_* or context_*
 * helper said so, or round_fail() did. */
struct policy_ops {
    const char *name, *title, *paper;
    bool trained_heads;    /* its paper trains heads: it asks them where the model has some, else the lens */
    uint32_t least_layers; /* of a model that it can work with */
    unsigned needs;        /* a set: NEEDS(HELPER_DRAFT) | … | NEEDS_PROFILE */
    size_t state_size;     /* of policy.state, zeroed; what hangs from it is freed by close() */
    size_t shared_size;    /* of policy.shared, zeroed at first; nothing hangs from it */
    /* Declares knobs and series; the sampling may set defaults. */
    bool (*open)(struct policy *, const struct model_info *, const struct sampling *, struct err *);
    bool (*prefilled)(struct policy *, struct round *); /* after prefill, and when switched to in mid-run */
    /* Drafts for n sequences, an instance and a round of each (engine/session/round.h). The instances' knobs are equal. */
    bool (*draft)(struct policy *const *, struct round *const *, uint32_t n);
    bool (*observe)(struct policy *, struct round *); /* after verification */
    /* What the rounds over a record (engine/events/layer_record.h) would come to with these knob values, begun afresh at its first
     * round, greedily: by the same rules as draft() and observe(). Any thread. False: out of memory. */
    bool (*what_if)(const struct layer_record *, const double *values, struct tally *);
    /* Copies what the policy has learned about the model into one block, which the caller frees, for the next session on
     * the same engine; NULL: nothing. load() takes such a block once the knobs are set, and ignores one that was learned
     * with other knobs; false: out of memory. */
    void *(*save)(const struct policy *);
    bool (*load)(struct policy *, const void *learned);
    void (*close)(struct policy *); /* also after an open() that failed half-way */
};

/* Opens and declares; policy_close() afterwards, also when it failed. False with a line: the model has too few layers,
 * memory ran out, a declaration is not sound. */
bool policy_open(struct policy *, const struct policy_ops *, const struct model_info *, const struct sampling *,
                 struct err *);
/* Another instance beside the first one, which is open, for another sequence. */
bool policy_open_beside(struct policy *, const struct policy *first, const struct model_info *, const struct sampling *,
                        struct err *);
void policy_close(struct policy *);
/* "a draft model: give one with --draft PATH or --draft self:E", of the first need in the set, which isn't empty. */
const char *policy_missing(unsigned needs, char *out, size_t n);

/* For open(): appends a declaration; values start at the default. False, and nothing is added, when there is no place
 * left or the declaration is not a sound one: an empty or repeated name, a control's (event.h: recorded_names), bounds the
 * wrong way round, a default outside them, a choice without its names, a series of no cells. */
bool policy_knob(struct policy *, const struct knob *);
/* The same in one line, for numbers: an integer when the step is 1 or more. */
bool policy_number(struct policy *, const char *name, const char *symbol, double min, double max, double step,
                   double def, const char *help);
/* The same for a choice: names ends with NULL. */
bool policy_choice(struct policy *, const char *name, const char *symbol, const char *const *names, int def,
                   const char *help);
bool policy_series(struct policy *, const char *key, const char *title, enum series_form, int rows, int cols);
/* -1 when the policy has no such knob or series. Names and symbols both match. */
int policy_knob_index(const struct policy_info *, const char *name);
int policy_series_index(const struct policy_info *, const char *key);
/* Why a declaration is not a sound one, in one line; what a trace declares is checked the same way. */
bool knob_valid(const struct knob *, struct err *);
bool series_valid(const struct series *, struct err *);
/* The cells of a series: a value's index is below this; 0: any index (LINE, BAND, BARS, PHASE). */
uint32_t series_cells(const struct series *);
/* Are its values those of one round, gone with the next: DRAFTS, MARKS, CHOICE? */
bool series_of_round(const struct series *);
/* The first series of a form that belongs to a GRID: MARKS, or EDGES of its rows or columns. -1: it has none. */
int series_of_grid(const struct policy_info *, uint32_t grid, enum series_form, bool of_rows);
/* Does a series say how drafts are judged: DRAFTS, MARKS, CHOICE, EDGES, or a GRID with MARKS? Then the judge panel has
 * it, else the series panel (a MASK has a panel of its own). */
bool series_judges(const struct policy_info *, uint32_t index);
/* Checks a value and rounds it to the knob's grid, min + k * step, as the number that "%.9g" prints: what is written to
 * a trace reads back as the same value. One line on a bad one: not a number, out of bounds, no such choice. */
bool knob_parse(const struct knob *, const char *text, double *out, struct err *);
bool knob_check(const struct knob *, double value, double *out, struct err *);
void knob_format(const struct knob *, double value, char *out, size_t n); /* "0.55", "10", "dynamic" */

#endif
