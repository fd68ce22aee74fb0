/* The interface between a session and a policy, and a policy's declarations. A policy is one file in policies/ and one
 * line in the registry there; sliders, charts, CSV and help are built from its declarations. */
#ifndef ENGINE_EVENTS_POLICY_H
#define ENGINE_EVENTS_POLICY_H

#include <string.h>

#include "engine/events/event.h"

struct layer_record;
struct round;
struct sv_profile;
struct tally;

#define POLICY_KNOBS  16
#define POLICY_SERIES 12

enum knob_kind { KNOB_REAL, KNOB_INTEGER, KNOB_CHOICE };

struct knob {
    char name[16], symbol[8], help[96]; /* "tau", "τ" (UTF-8), one line of help */
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
    /* Forms that describe how a round's drafts are judged, for the judge panel. Their values are of the round that
     * reports them. */
    /* 1 or 2 × drafts: column i is of candidate i + 1. Row 1, if declared, is the limit that row 0's value is compared
     * with. Both are drawn as lines */
    SERIES_DRAFTS,
    SERIES_MARKS, /* 1 × drafts: the cell of candidate i + 1 in the GRID declared before */
    /* 2 × numbers: row 0 has the expected result of verifying 0, 1, … drafts; a 1 in row 1 marks the number chosen */
    SERIES_CHOICE,
    /* rows × 1 or 1 × cols: lower edges of the rows or columns of the GRID declared before; the title is the axis's
     * name. They are valid until the next report, as the GRID's cells are */
    SERIES_EDGES,
    SERIES_FORMS
};
extern const char *const series_form_names[SERIES_FORMS]; /* "line", … */

struct series {
    char key[24], title[32];
    enum series_form form;
    int rows, cols; /* 1 × 1 for LINE, BAND, BARS and PHASE. The index of a value is row * cols + col */
};

/* Roles of auxiliary models, which help the target. The last three are feature drafters (docs/design-engine.md): an
 * EAGLE-3 head, a block drafter, and the target's own layer for multi-token prediction. */
enum aux_role { AUX_DRAFT, AUX_COMPANION, AUX_EAGLE, AUX_BLOCK, AUX_MTP, AUX_MODELS };
#define NEEDS(role) (1u << (role))              /* as a member of a set of needs */
extern const char *const aux_names[AUX_MODELS]; /* AUX_ROLES: also names of options */
/* The role of the model that --draft names for a policy with these needs. */
static inline enum aux_role
policy_draft_role(unsigned needs)
{
    return (needs & NEEDS(AUX_EAGLE)) != 0 ? AUX_EAGLE : (needs & NEEDS(AUX_BLOCK)) != 0 ? AUX_BLOCK : AUX_DRAFT;
}
/* the model of an auxiliary model's layers, in events */
#define LAYERS_OF(role) ((enum layer_model)(MODEL_TARGET + 1 + (role)))

#define NEEDS_ACCEPT_HEAD NEEDS(AUX_MODELS)     /* the draft model's acceptance head */
#define NEEDS_PROFILE     NEEDS(AUX_MODELS + 1) /* a verification profile: measured agreement of the three models */
#define NEEDS_MARKOV      NEEDS(AUX_MODELS + 2) /* the block drafter's Markov head */
#define NEEDS_KINDS       (AUX_MODELS + 3)
/* models that draft; a policy needs at most one of them */
#define NEEDS_DRAFTER (NEEDS(AUX_DRAFT) | NEEDS(AUX_EAGLE) | NEEDS(AUX_BLOCK) | NEEDS(AUX_MTP))
extern const char *const need_names[NEEDS_KINDS]; /* by bit: aux_names, "accept_head", "profile", "markov_head" */

/* Declarations of a policy. They outlive the policy, for the screen, the trace and the replay. */
struct policy_info {
    char name[16], title[48], paper[96];
    unsigned needs;   /* a set, as in policy_ops; 0 in older traces */
    unsigned missing; /* the needs that are not met; the policy then cannot be chosen. 0 in a trace */
    uint32_t n_knobs, n_series;
    struct knob knobs[POLICY_KNOBS];
    struct series series[POLICY_SERIES];
};

struct model_info { /* facts about the model that policies use */
    uint32_t layers, width, vocab;
    uint32_t block; /* drafts of a block drafter's block; 0: there is none */
    double rho;     /* head / layer parameters */
    const struct sv_profile
        *profile; /* of the model and its auxiliary models (engine/model/trained/sv_profile.h), or NULL */
};

struct policy {
    const struct policy_ops *ops;
    struct policy_info info;    /* set by policy_open() */
    double value[POLICY_KNOBS]; /* the knobs of the round; they change only between rounds */
    void *state;                /* (ops->state_size) state of the instance, NULL for none */
    /* (ops->shared_size) state that the instances of a session share, and leave to the next session on the same engine
     * with the same number of sequences; NULL for none. */
    void *shared;
    bool owns_shared; /* true in the first instance, which outlives the others */
};

/* Engines whose commands `specscope tune` prints. */
enum other_engine { ENGINE_LLAMA_CPP, ENGINE_VLLM, ENGINE_SGLANG, ENGINE_TRANSFORMERS, ENGINES };

/* Functions and properties of a policy. NULL or 0: not used. Functions that have a round as argument return false to
 * stop, if a round_* or context_* helper or round_fail() returned false. */
struct policy_ops {
    const char *name, *title, *paper;
    /* the paper trains heads: the policy uses trained heads if the model has them, else the lens */
    bool trained_heads;
    uint32_t least_layers; /* minimum number of layers of the model */
    unsigned needs;        /* a set: NEEDS(AUX_DRAFT) | … | NEEDS_PROFILE */
    /* The policy drafts with heads that may know fewer tokens (draft_vocab.h): the index of the knob draft_vocab, which
     * policy_open() declares after the policy's own knobs. 0: it has none. */
    uint32_t draft_vocab;
    size_t state_size;  /* size of policy.state, zeroed at first; close() frees what it points to */
    size_t shared_size; /* size of policy.shared, zeroed at first; it must not own memory */
    /* Declares knobs and series; defaults may depend on the sampling. */
    bool (*open)(struct policy *, const struct model_info *, const struct sampling *, struct err *);
    /* after the prefill, and after a change to this policy during a run */
    bool (*prefilled)(struct policy *, struct round *);
    /* Drafts for n sequences, with an instance and a round for each (engine/session/round.h). The instances' knobs are
     * equal. */
    bool (*draft)(struct policy *const *, struct round *const *, uint32_t n);
    bool (*observe)(struct policy *, struct round *); /* after verification */
    /* Simulates greedy rounds over a record (engine/measure/layer_record.h) with these knob values, from the state of a
     * first round, by the same rules as draft() and observe(), and adds up their tally. Any thread may call it.
     * Returns false if memory runs out, or the policy cannot be simulated with these values. */
    bool (*what_if)(const struct layer_record *, const double *values, struct tally *);
    bool estimates; /* its simulated rounds are estimates, because they depend on more than a record contains exactly */
    /* Why runs have no what-if: "SUBJECT VERB …", at most 60 characters; NULL: they have one. With what_if, records of
     * finished texts have one (engine/scoring/reading.h). */
    const char *no_what_if;
    /* Knobs whose values a race tries if it has no forecasts: the draft length, the nodes that a tree expands a step, 1
     * for a chain, and the least confidence of drafts. */
    const char *length, *breadth, *confidence;
    /* Returns a block with everything that the policy has learned about the model, for the next session on the same
     * engine, or NULL; the caller frees it. load() reads such a block after the knobs are set, and ignores one that
     * was learned with other knobs. load() returns false if memory runs out. */
    void *(*save)(const struct policy *);
    bool (*load)(struct policy *, const void *learned);
    void (*close)(struct policy *); /* also after a failed open() */
    /* Commands with which other engines do the same (engine/tune/engine_flags.c has the placeholders); NULL: the engine
     * has no such policy, for the reason no_command: "it has no companion model" */
    const char *command[ENGINES], *no_command;
};

/* The policy that drafts nothing. All speedups are relative to it. */
#define POLICY_BASELINE "ar"
static inline bool
policy_is_baseline(const char *name)
{
    return strcmp(name, POLICY_BASELINE) == 0;
}
/* In place of a name: the session chooses the policy (engine/session/choice.c). */
#define POLICY_AUTO "auto"
/* Returns the policy of this name in a list that ends with NULL, or NULL. */
const struct policy_ops *policy_named(const struct policy_ops *const *registry, const char *name);

/* Opens a policy and lets it declare. Call policy_close() afterwards, also after a failure. Fails with a message if
 * the model has too few layers, memory runs out, or a declaration is invalid. */
bool policy_open(struct policy *, const struct policy_ops *, const struct model_info *, const struct sampling *,
                 struct err *);
/* Opens another instance for another sequence; `first` is open. */
bool policy_open_beside(struct policy *, const struct policy *first, const struct model_info *, const struct sampling *,
                        struct err *);
void policy_close(struct policy *);
#define POLICY_MISSING 256 /* room for policy_missing() */
/* Writes a message about the first need in the set, which must not be empty: "a draft model: give one with --draft
 * PATH or --draft self:E". Returns out. */
const char *policy_missing(unsigned needs, char out[POLICY_MISSING]);

/* For open(): appends a declaration; the value is the default. Returns false and adds nothing if there is no room or
 * the declaration is invalid: an empty or repeated name, the name of a control (event.h: recorded_names), min above
 * max, a default out of bounds, a choice without names, a series without cells. */
bool policy_knob(struct policy *, const struct knob *);
/* Appends a number as a knob: an integer if the step is 1 or more. */
bool policy_number(struct policy *, const char *name, const char *symbol, double min, double max, double step,
                   double def, const char *help);
/* Appends a choice as a knob: names ends with NULL. */
bool policy_choice(struct policy *, const char *name, const char *symbol, const char *const *names, int def,
                   const char *help);
bool policy_series(struct policy *, const char *key, const char *title, enum series_form, int rows, int cols);
/* Returns the index, or -1 if the policy has no such knob or series. Names and symbols both match. */
int policy_knob_index(const struct policy_info *, const char *name);
int policy_series_index(const struct policy_info *, const char *key);
int policy_series_of_form(const struct policy_info *, enum series_form); /* the first; -1: none */
/* Checks a declaration, of a policy or of a trace. If it is invalid, sets a message of one line. */
bool knob_valid(const struct knob *, struct err *);
bool series_valid(const struct series *, struct err *);
/* Returns the number of cells of a series: the index of a value is below it. 0: any index (LINE, BAND, BARS, PHASE). */
uint32_t series_cells(const struct series *);
/* Are the values those of one round only (DRAFTS, MARKS, CHOICE)? */
bool series_of_round(const struct series *);
/* Returns the first series of a form that belongs to a GRID: MARKS, or EDGES of its rows or columns. -1: none. */
int series_of_grid(const struct policy_info *, uint32_t grid, enum series_form, bool of_rows);
/* Does a series describe how drafts are judged (DRAFTS, MARKS, CHOICE, EDGES, or a GRID with MARKS)? If so, the judge
 * panel shows it, else the series panel (a MASK has a panel of its own). */
bool series_judges(const struct policy_info *, uint32_t index);
/* Checks a value and rounds it to the knob's grid, min + k * step, as the number that "%.9g" prints: a value in a
 * trace reads back as the same value. Fails with one line: not a number, out of bounds, no such choice. */
bool knob_parse(const struct knob *, const char *text, double *out, struct err *);
bool knob_check(const struct knob *, double value, double *out, struct err *);
void knob_format(const struct knob *, double value, char *out, size_t n); /* "0.55", "10", "dynamic" */

#endif
