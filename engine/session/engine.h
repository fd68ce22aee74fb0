/* A model on a backend, ready to run: what a session, the benchmark and the tests share. */
#ifndef ENGINE_SESSION_ENGINE_H
#define ENGINE_SESSION_ENGINE_H

#include "engine/model/exit_heads.h"
#include "engine/model/model.h"

struct engine_options {
    const char *model_path; /* or what to plant, see model_open_planted() */
    bool synth;             /* the latter */
    const char *backend;    /* "auto", "cpu", "check", "cuda"; NULL: auto, which nobody asked for */
    struct backend_options backend_options;
    const char *heads; /* a file of trained heads; "none": no heads; NULL: the file beside the model, if there is one */
    bool quantize;     /* matrices to Q8_0 on load */
    uint32_t ctx;      /* that will be asked for, for the check that all of it fits into memory; 0: the model's own */
};

struct engine {
    struct model *model;
    const struct backend_ops *ops;
    struct backend *backend;
    struct weights *weights;
    uint32_t threads;
    bool exact;
    enum head_kind heads; /* the trained heads that the backend has; HEAD_LENS: none */
    char note[200];       /* something the user should know ("no usable GPU: …"), or "" */
};

/* Trained heads beside a model MODEL.gguf are called MODEL.heads.safetensors; they are passed over, and `note` says so,
 * when they can't be used. Those asked for by name must be usable.
 * With "auto" CUDA computes where plug-in and GPU are there and the model fits, else the CPU, and `note` says why: always
 * when auto was asked for, otherwise only when there is something that should have worked.
 * progress may be NULL; it is called from this thread while weights load. */
bool engine_open(struct engine **, const struct engine_options *, progress_fn progress, void *user, struct err *);
void engine_close(struct engine *);

#endif
