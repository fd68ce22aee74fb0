/* A model on a backend, ready to run. Sessions, the benchmark and tests use it. */
#pragma once

#include <limits.h>

#include "engine/events/cost_model.h"
#include "engine/events/draft_vocab.h"
#include "engine/events/run_info.h"
#include "engine/model/model.h"
#include "engine/model/trained/accept_head.h"
#include "engine/model/trained/exit_heads.h"

struct engine_options {
    const char *model_path;        /* or the synthetic model, see model_open_synthetic() */
    bool synth;                    /* the model is synthetic */
    const char *backend;           /* "auto", "cpu", "cuda"; NULL: auto by default */
    const struct backend_ops *ops; /* a test's own backend, opened instead of the one that `backend` names; or NULL */
    struct backend_options backend_options;
    const char *heads; /* a file of trained heads; "none": no heads; NULL: the file beside the model, if there is one */
    /* Auxiliary models: a path, "self:E" for the model's own layers 1..E, "none"; NULL: the file beside the model, if
     * the role is in `wanted` (a set of NEEDS()). */
    const char *aux[AUX_COMPANION + 1]; /* an EAGLE-3 head is given as the draft model */
    unsigned wanted;                    /* NEEDS_PROFILE: the file beside the model, if no profile is given */
    const char *accept;       /* a file with the draft model's acceptance head; "none"; NULL: the one beside it */
    const char *profile;      /* a file, "none", or NULL */
    const char *vocab_counts; /* a file of token counts (engine/model/token_rank.h); NULL: the vocabulary's order is by
                                 id */
    bool quantize;            /* matrices to Q8_0 on load */
    const char *const *lora;  /* (n_lora) adapters for the model: "FILE[:SCALE]" */
    size_t n_lora;
    bool reads_apart;   /* self:E has a KV cache of its own, as in engine/training/reader.h */
    uint32_t ctx;       /* for the check that all fits into memory; 0: the model's own */
    uint32_t sequences; /* at a time; 0: one */
    /* Called with engine_open()'s `user` and a line for the user before weights load, if loading may take long; or
     * NULL. The line is also the engine's note. */
    void (*notice)(void *user, const char *line);
};

struct aux_model { /* an auxiliary model; zeros: there is none */
    struct model *model;
    struct weights *weights; /* on the engine's backend */
    uint32_t exit_layer;     /* self:E: the target's layers 1..E */
    bool found;              /* it was found beside the model */
    bool apart;              /* self:E with a KV cache of its own */
};

struct engine {
    struct model *model;
    const struct backend_ops *ops;
    struct backend *backend;
    struct weights *weights;
    uint32_t threads;
    bool exact;
    uint32_t positions;   /* of the target's contexts, in all */
    enum head_kind heads; /* the trained heads that the backend has; HEAD_LENS: none */
    char heads_path[512]; /* the file of the heads, */
    uint64_t heads_hash;  /* and its hash */
    struct engine_asked { /* options that it was opened with */
        char isa[16];     /* "": not given */
        int gpu;          /* below 0: not given */
        uint32_t threads; /* 0: not given */
        bool quantize, no_heads;
        char lora[ASKED_LORA]; /* adapters, a line each */
    } asked;
    struct aux_model aux[AUX_MODELS];
    struct accept_head *accept; /* the draft model's; NULL: none */
    struct draft_rank rank;     /* the order of the target's vocabulary for draft vocabularies, */
    struct trained_info counts; /* and the file of counts that it is from; path "": by id */
    struct sv_profile *profile; /* of the model and its auxiliary models; owned; NULL: none */
    struct cost_model costs;    /* measured by engine_costs(); cost_known(): it was */
    struct engine_kept *kept;   /* state for later sessions (engine_internal.h) */
    char profile_refused[400];  /* why the profile beside the model is not used, or "" */
    char note[480];             /* something the user should know ("no usable GPU: …"), or "" */
};

/* Files beside a model are found by their names: MODEL.heads.safetensors                              trained heads of
 * MODEL.gguf NAME-draft-TYPE.gguf, NAME-companion-TYPE.gguf       auxiliary models of NAME-TYPE.gguf; their
 * vocabularies must agree DRAFT.accept.safetensors                             the acceptance head of DRAFT.gguf
 * MODEL.profile.json                                   the verification profile, which names its three models by their
 * hashes A file that was found but cannot be used is ignored, and `note` contains the reason, unless memory ran out,
 * which is an error. A file that was given must be usable.
 *
 * With "auto" the GPU computes if plug-in and GPU are there and the model fits, else the CPU. `note` then contains the
 * reason, if "auto" was given or the GPU should have worked. progress may be NULL; it is called from this thread while
 * weights load. */
bool engine_open(struct engine **, const struct engine_options *, progress_fn progress, void *user, struct err *);
void engine_close(struct engine *);

/* Completes the loading of all models (backend_ops.repack), before anything is timed. */
void engine_repack(struct engine *, const atomic_bool *cancel);

/* Measures the costs of steps (engine/events/cost_model.h), once, if that takes at most about allowed_us; rows and
 * contexts of sessions are not touched. Call engine_repack() before. Returns false, and leaves them unknown, if it
 * would take longer: *need_us is then the time, else 0; or if memory runs out or *cancel is set. */
bool engine_costs(struct engine *, double allowed_us, const atomic_bool *cancel, double *need_us);

/* Writes these costs with a drafter in the place of the draft model, also with one that reads the target's features.
 * Returns false, with none of the drafter, if engine_costs() did not measure, memory runs out, or *cancel is set. */
bool engine_drafter_costs(struct engine *, const struct aux_model *, const atomic_bool *cancel, struct cost_model *out);

bool engine_has(const struct engine *, enum aux_role);
unsigned engine_missing(const struct engine *,
                        unsigned needs); /* the needs of a policy that the engine does not meet */
/* A draft model in reserve, with the acceptance head beside it and the costs of the engine's steps with it: it can take
 * the place of the engine's own. Zeros: none. */
struct engine_draft {
    struct aux_model model;
    struct accept_head *accept; /* NULL: none */
    struct cost_model costs;    /* zeros: not measured */
};
/* Opens the draft model at `path` beside the engine's models. `reserved`: bytes that the weights of other reserves
 * take. Fails with one line if its vocabulary does not match the target's, if it does not fit into memory, or if it
 * cannot be read. */
bool engine_draft_open(struct engine *, const char *path, uint64_t reserved, struct engine_draft *, struct err *);
/* Exchanges the engine's draft model, acceptance head and costs with those of the reserve. No session of the engine may
 * be running; one that is open keeps the models that it was opened with. A verification profile stays that of the
 * engine's own draft model. */
void engine_draft_swap(struct engine *, struct engine_draft *);
void engine_draft_close(struct engine *, struct engine_draft *); /* of a reserve, before engine_close() */
/* The draft model; for self:E the target; NULL: none. */
const struct model *engine_draft_model(const struct engine *);
/* The facts about the engine's models that policies use. */
struct model_info engine_model_info(const struct engine *);
/* "fables-draft", "self:3"; "": there is none. */
const char *engine_aux_name(const struct engine *, enum aux_role, char *out, size_t n);
uint64_t engine_aux_hash(const struct engine *, enum aux_role); /* for self:E the target's */
/* Writes the path of the file in the model's folder whose name is that of the model, without ".gguf", and the ending.
 * False: there is no such file. */
bool engine_beside(const struct model *, const char *ending, char out[PATH_MAX]);
/* Writes the path of the role's model beside the model at `path`. False: there is none. */
bool engine_sibling(const char *path, enum aux_role, char out[PATH_MAX]);
