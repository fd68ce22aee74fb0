/* A model on a backend, ready to run: what a session, the benchmark and the tests share. */
#ifndef ENGINE_SESSION_ENGINE_H
#define ENGINE_SESSION_ENGINE_H

#include "engine/events/run_info.h"
#include "engine/model/model.h"
#include "engine/trained/accept_head.h"
#include "engine/trained/exit_heads.h"

struct engine_options {
    const char *model_path;        /* or what to plant, see model_open_synthetic() */
    bool synth;                    /* the latter */
    const char *backend;           /* "auto", "cpu", "cuda"; NULL: auto, which nobody asked for */
    const struct backend_ops *ops; /* a test's own backend, opened instead of the one that `backend` names; or NULL */
    struct backend_options backend_options;
    const char *heads; /* a file of trained heads; "none": no heads; NULL: the file beside the model, if there is one */
    /* Models that help this one: a path, "self:E" for its own layers 1..E, "none"; NULL: the file that stands beside the
     * model, where the role is among those `wanted` (a set of NEEDS()). */
    const char *helpers[HELPERS];
    unsigned wanted;         /* among them NEEDS_PROFILE: the file beside the model, where no profile is given */
    const char *accept;      /* a file with the draft model's acceptance head; "none"; NULL: the one beside it */
    const char *profile;     /* a file, "none", or NULL */
    bool quantize;           /* matrices to Q8_0 on load */
    const char *const *lora; /* (n_lora) adapters for the model: "FILE[:SCALE]" */
    size_t n_lora;
    bool reads_apart;   /* self:E has keys and values of its own, as when texts are read (engine/training/reader.h) */
    uint32_t ctx;       /* that will be asked for, for the check that all of it fits into memory; 0: the model's own */
    uint32_t sequences; /* … at a time; 0: one */
    /* Told what a user should know before weights load, in one line: that it may take long. With engine_open()'s `user`;
     * NULL: nobody. The same line is the engine's note afterwards. */
    void (*tell)(void *user, const char *line);
};

struct helper_model { /* who plays a role; all 0: nobody */
    struct model *model;
    struct weights *weights; /* on the engine's backend */
    uint32_t exit_layer;     /* self:E, no model of its own: the target's layers 1..E */
    bool found;              /* beside the model, by its name */
    bool apart;              /* self:E: with keys and values of its own */
};

struct engine {
    struct model *model;
    const struct backend_ops *ops;
    struct backend *backend;
    struct weights *weights;
    uint32_t threads;
    bool exact;
    uint32_t prompt_rows; /* of a prompt's chunk, as kernels/backend.h has it; 0: prompts are rows like others */
    enum head_kind heads; /* the trained heads that the backend has; HEAD_LENS: none */
    char heads_path[512]; /* … their file, */
    uint64_t heads_hash;  /* and its hash */
    struct engine_asked { /* as it was opened */
        char isa[16];     /* "": none was forced */
        int gpu;          /* below 0: none was named */
        uint32_t threads; /* 0: the number was not pinned */
        bool quantize, no_heads;
        char lora[ASKED_LORA]; /* adapters, a line each */
    } asked;
    struct helper_model helpers[HELPERS];
    struct accept_head *accept; /* the draft model's; NULL: none */
    struct sv_profile *profile; /* of the model and its helpers; owned; NULL: none */
    struct engine_kept *kept;   /* what sessions leave to the next ones (engine_internal.h) */
    char profile_refused[400];  /* why the profile beside the model is not used; "": there is none, or it is */
    char note[480];             /* something the user should know ("no usable GPU: …"), or "" */
};

/* An acceptance head beside a draft model DRAFT.gguf is called DRAFT.accept.safetensors; it is passed over like trained heads.
 * A profile beside MODEL.gguf is called MODEL.profile.json; it names its three models by their hashes.
 * Helpers beside a model NAME-TYPE.gguf are called NAME-draft-TYPE.gguf and NAME-companion-TYPE.gguf. What they say must
 * mean the same, so vocabularies are compared. They are passed over like trained heads:
 *
 * Trained heads beside a model MODEL.gguf are called MODEL.heads.safetensors; they are passed over, and `note` says so,
 * when they can't be used. Those asked for by name must be usable.
 * With "auto" CUDA computes where plug-in and GPU are there and the model fits, else the CPU, and `note` says why: always
 * when auto was asked for, otherwise only when there is something that should have worked.
 * progress may be NULL; it is called from this thread while weights load. */
bool engine_open(struct engine **, const struct engine_options *, progress_fn progress, void *user, struct err *);
void engine_close(struct engine *);

/* What loading left for later (backend_ops.settle), of all models: before anything is timed. */
void engine_settle(struct engine *, const atomic_bool *cancel);

bool engine_has(const struct engine *, enum helper_role);
unsigned engine_missing(const struct engine *, unsigned needs); /* of what a policy needs */
/* The model that drafts: of self:E, the target. NULL: none. */
const struct model *engine_draft_model(const struct engine *);
/* "fables-draft", "self:3"; "" for nobody. */
const char *engine_helper_name(const struct engine *, enum helper_role, char *out, size_t n);
uint64_t engine_helper_hash(const struct engine *, enum helper_role); /* of self:E the target's */
/* The path of the file in the model's folder whose name is that of the model, without ".gguf", and the ending; the caller frees it. NULL:
 * there is no such file. */
char *engine_beside(const struct model *, const char *ending);
/* The path of the file that stands beside the model at `path` and by its name plays the role, to be freed; NULL: none. */
char *engine_sibling(const char *path, enum helper_role);

#endif
