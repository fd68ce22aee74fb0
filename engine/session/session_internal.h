/* Types and functions that the session's files share. They are in order: each file calls only functions of files above
 * it here. */
#ifndef ENGINE_SESSION_SESSION_INTERNAL_H
#define ENGINE_SESSION_SESSION_INTERNAL_H

#include <pthread.h>
#include <stdlib.h>

#include "base/rng.h"
#include "engine/measure/estimate.h"
#include "engine/measure/metrics.h"
#include "engine/model/model.h"
#include "engine/session/mailbox.h"
#include "engine/session/sequence.h"
#include "engine/session/session.h"

struct left { /* a sequence that has ended and was replaced by another one */
    uint32_t number;
    token_t *tokens; /* (n) that it emitted; owned */
    uint32_t n;
    bool compared;       /* with its autoregressive tokens */
    uint32_t differs_at; /* the first token that differs, from 0; UINT32_MAX: none */
};

struct run {
    uint32_t number;        /* from 1 */
    const char *cause;      /* start, restart, prompt */
    struct prompt *prompts; /* (n_prompts) owned */
    uint32_t n_prompts;
    uint32_t total;    /* sequences in all; sequence i begins with prompts[i], or with the only prompt */
    uint32_t joined;   /* sequences that have begun */
    struct left *left; /* (n_left) in the order of their ends; owned */
    uint32_t n_left;
    uint32_t wanted;   /* tokens of each sequence; UINT32_MAX: no limit */
    bool sampled;      /* the temperature is or was above 0 */
    uint64_t start_us; /* by clock_us(); the zero of events' times */
};

static inline const struct prompt *
run_prompt(const struct run *r, uint32_t sequence)
{
    return &r->prompts[r->n_prompts > 1 ? sequence : 0];
}

static inline void
run_forget_left(struct run *r)
{
    for (uint32_t i = 0; i < r->n_left; i++)
        free(r->left[i].tokens);
    free(r->left);
    r->left = NULL;
    r->n_left = 0;
}

/* Replaces all prompts of the run; takes ownership. */
static inline void
run_take_prompt(struct run *r, struct prompt *p)
{
    for (uint32_t i = 0; i < r->n_prompts; i++)
        prompt_free(&r->prompts[i]);
    r->prompts[0] = *p;
    r->n_prompts = 1;
    *p = (struct prompt){0};
}

/* When a session works and when it waits: pauses, steps, breakpoints, a limit of its speed. */
struct timing {
    bool paused;
    bool step_token;      /* pauses after one more token */
    uint32_t step_rounds; /* rounds until it pauses; 0: it does not step by rounds */
    uint32_t break_at;    /* pauses after this round; 0: none */
    double pace;          /* tokens/s at most; 0: no limit */
    uint64_t next_us;     /* when the next round may begin, by clock_us() */
};

/* The condition of :until, which is checked for each event. */
#define WATCH_PREDICTIONS 2048 /* predictions of a round at most; further ones are ignored */

struct watch {
    struct until until;
    bool met;            /* in a round that has ended, */
    uint32_t seq;        /* by this sequence */
    bool unsure;         /* a draft of this round was below the confidence, */
    uint32_t unsure_seq; /* of this sequence */
    uint32_t n;
    struct watch_prediction { /* (n) predictions of the target's layers in this round */
        uint32_t seq, pos;
        int32_t layer;
        token_t token;
        float confidence;
    } prediction[WATCH_PREDICTIONS];
};

struct asked { /* requests that the engine's thread carries out as soon as it can */
    bool quit, new_run, baseline, extension, costs;
};

struct measured {            /* autoregressive steps */
    struct ratio_sums steps; /* tokens / s, of the newest measurement */
    bool slices;             /* a baseline of this prompt was requested: slices of it follow between rounds */
    uint64_t next_us;        /* when the next slice may begin */
};

/* PROBE_SHARE: when all layers are probed, in at most a share of the time. The first SHARE_FIRST positions are probed
 * in any case, and their time is paid back before others are. Then SHARE_BURST consecutive positions are probed as soon
 * as the time that they will take has been earned, because what-if needs consecutive positions. No function reads a
 * clock. */
#define SHARE_FIRST 72
#define SHARE_BURST 64
struct probe_share {
    double credit_us;   /* earned and not spent; negative: owed */
    double position_us; /* time of a position, smoothed */
    uint64_t since_us;  /* when time was earned last; 0: never */
    uint32_t left;      /* positions left of a burst */
};
/* Earns a share (0 to 1) of the time up to now. Returns true if positions are to be probed now. */
bool probe_share_earn(struct probe_share *, double share, uint64_t now_us);
void probe_share_spend(struct probe_share *, uint32_t positions, double us);

struct probing {                    /* buffers for probes */
    struct context_probe *probes;   /* (n) */
    struct prediction *predictions; /* (n) */
    size_t n;
    bool now; /* all layers of the new rows are probed in this round */
    struct probe_share share;
    uint32_t calls; /* in PROBE_SHARE */
};

struct acceptance {         /* the acceptance head; zeros: there is none */
    struct final_norm norm; /* the draft model's */
    struct accept_predictor *predictor;
    float *x;           /* (width) a row */
    double load, heads; /* loads of a call, and of all calls so far, in units of the target's head */
};

struct confidence {         /* a block drafter's confidence head; zeros: there is none */
    struct final_norm norm; /* the drafter's */
    float *x;               /* (width + rank of the Markov head) what the head reads */
    double load, heads;     /* as in struct acceptance */
};

struct session {
    struct live live;

    /* Constant from opening to closing. */
    struct engine *engine; /* borrowed */
    struct run_info info;
    struct model_info model;
    bool ignore_eos, stay, chooses; /* chooses: it was opened with POLICY_AUTO */
    bool batch;                     /* sequences share their rounds */
    struct prompt_format format;
    struct event_log *log;
    struct context *ctx;
    struct aux_context aux[AUX_MODELS];
    uint32_t features[3 * MODEL_FEATURES], n_features; /* layers whose outputs the target keeps for feature drafters */
    uint32_t
        features_window; /* unread rows of a sequence, after which a feature drafter reads along; UINT32_MAX: never */
    struct acceptance acceptance;
    struct confidence confidence;
    struct dist_pool *dists;      /* of all models: verification uses distributions of auxiliary models */
    token_t unknown;              /* replaces, in events, a draft's token that the target lacks */
    struct policy_memory *memory; /* borrowed; or NULL */
    pthread_t thread;
    bool started;

    /* Shared with other threads, each under a lock of its own. */
    struct mailbox mailbox;
    struct mail *_Atomic spare; /* for a request to quit when memory is short; owned */
    pthread_mutex_t failure_lock;
    struct err failure; /* kind ERR_NONE: none. Only the engine's thread writes it, so it reads without the lock */

    /* For the engine's thread only. */
    struct mail *changes; /* changes of settings that are not applied yet, in the order of their posting */
    struct timing timing;
    struct watch watch;
    struct asked asked;
    struct measured measured;
    struct run run;
    uint32_t round;        /* number of the latest round */
    struct spent spent;    /* in it, by all sequences together */
    uint64_t recording_ns; /* for emitting the last round's ROUND events; counts towards the next round */
    bool costs_emitted;
    uint64_t costs_us;          /* asked.costs waits until then, by clock_us() */
    uint32_t choice_at;         /* tokens of the run after which it chooses the policy; 0: never */
    bool choice_layers;         /* policies that draft with layers may still be chosen in this run */
    uint64_t device_emitted_us; /* time of the last RECORDED_DEVICE */
    enum account learning_from; /* the account that a learning pass interrupted */
    uint64_t *emitted_ids;      /* bit set of token ids whose VOCAB event was emitted */
    struct probing probing;
    struct sequence *sequences; /* (open_sequences) */
    uint32_t n_sequences;       /* those in use */
    uint32_t open_sequences;
    atomic_uint ctx_sequences; /* that the contexts have room for; grows between runs; any thread reads it */
    uint32_t n_settings;       /* 1: all sequences have the same; else each has its own, and they take turns */
    uint32_t last_run;         /* the sequence that ran last */
};

static inline struct session *
session_from(const struct live *live) /* of a source that session_open() made */
{
    return (struct session *)live;
}

static inline bool
session_alternates(const struct session *s)
{
    return s->n_settings > 1;
}

static inline bool
session_has_several(const struct session *s) /* May there be several sequences? They emit when they join and leave. */
{
    return s->batch || session_alternates(s);
}

static inline uint64_t
seq_seed(const struct session *s, uint32_t sequence) /* Sequences that take turns draw the same random numbers. */
{
    const uint64_t seed = s->sequences[0].current.seed;
    return session_alternates(s) ? seed : rng_sequence_seed(seed, sequence);
}

/* ---- emit.c: events of this run and round ---- */
void watch_for(struct watch *, const struct until *); /* from now on */
void seq_emit(struct sequence *, struct event *);     /* adds run, sequence, round and time */
void session_emit_vocab(struct session *, token_t);   /* once for each token */
/* A committed token of the prompt or of the target; its prediction, or NULL. */
void seq_emit_token(struct sequence *, uint32_t pos, token_t, enum token_source, const struct prediction *);
void seq_emit_prediction(struct sequence *, uint32_t pos, uint32_t layer, uint32_t head, const struct prediction *,
                         enum probed_by, token_t final);
/* A prediction of an auxiliary model's layer; head: as in events; final is the target's token. */
void seq_emit_aux_prediction(struct sequence *, enum aux_role, uint32_t pos, uint32_t layer, uint32_t head,
                             const struct prediction *, enum probed_by, token_t final, float acceptance);
void seq_emit_experts(struct sequence *, slot_t row); /* the experts of a row, if the context has recorded them */

struct change { /* of a setting or of the run's state */
    enum recorded kind;
    const char *knob; /* RECORDED_KNOB: its name */
    const char *before, *after;
    uint32_t asked, applied; /* rounds: in which it was requested, and the first one that runs with it */
};
void session_emit_change(struct session *, uint32_t seq, const struct change *);
/* A control of this round that has no text before. */
void session_emit_control(struct session *, uint32_t seq, enum recorded, const char *text);
void session_emit_state(struct session *, enum recorded, const char *before, const char *after); /* of sequence 0 */
void session_emit_device(struct session *); /* at most twice a second, if the backend measures its device's time */
void session_emit_progress(struct session *, const char *what, double done);
/* A progress_fn that emits the progress of a prompt that takes long; the end is emitted only after a beginning. */
struct prefill_watch {
    struct session *session;
    uint64_t since_us; /* by clock_us() */
    bool emitted;
};
bool session_emit_prefill(void *watch, double done);
bool session_has_failed(const struct session *);                         /* for the engine's thread */
bool session_fail(struct session *, const char *where, const char *why); /* ends the run; returns false */

/* ---- probing.c: heads at layers ---- */
/* The head that predicts at a layer, as in events: 0 the lens, 1 a trained head. */
uint32_t seq_head_at(const struct sequence *, uint32_t layer);
/* Sets the tokens that the sequence's heads for drafts compute, by its settings and text. False: stopped. */
bool seq_draft_vocab(struct sequence *);
/* With --probe all: probes the rows that a round committed, or the latest rows again with the present head; and the new
 * rows of auxiliary models. In as few head calls as possible. With a share of the time, some of these rows. */
bool session_probe_round(struct session *, struct sequence *const *, uint32_t n);
bool session_probe_recent(struct session *, struct sequence *const *, uint32_t n);
/* The same at the beginning of a text. */
bool session_probe_prompt(struct session *, struct sequence *);
/* With a share of the time: were some of the latest rows not probed? Probes these rows, while the engine waits. */
bool session_probes_missing(const struct session *);
bool session_probe_missing(struct session *);

/* ---- contexts.c: the contexts of all models ---- */
bool session_open_contexts(struct session *, struct err *);
void session_close_contexts(struct session *);
/* Any thread. A GPU's memory is not checked here; opening fails if it is too small. */
bool session_contexts_fit(const struct session *, uint32_t sequences, struct err *);
struct loads session_loads(const struct session *);      /* of all models, in units of the target's */
const struct err *session_error(const struct session *); /* of the last call of a context; ERR_NONE: none */

/* ---- aux_models.c: rows of auxiliary models ---- */
void seq_aux_forget(struct sequence *); /* at the beginning of a sequence */
/* Lets feature drafters read the target's rows if many are unread, also those that the policy does not use: so the
 * target keeps the features of few rows only. Returns false if the run was stopped. */
bool seq_aux_read_along(struct sequence *);
void seq_aux_begin(struct sequence *); /* at the beginning of a round */
/* The role's model reads the tokens of these sequences that it has not read, with the pending ones, in as few forward
 * passes as possible. False: stopped; session_error(). */
bool session_aux_follow(struct sequence *const *, uint32_t n, enum aux_role);
/* Does the same, but only appends the rows of the last few tokens: they run together with the drafts. */
bool session_aux_append(struct sequence *const *, uint32_t n, enum aux_role);
/* The row of a round's node; SLOT_NONE: stopped. */
slot_t seq_aux_row(struct sequence *, struct aux_sequence *, int32_t node);
/* A row of the first token after the trunk, which the caller runs and discards; SLOT_NONE: stopped. */
slot_t seq_aux_next(const struct sequence *, const struct aux_sequence *);
/* Keeps the rows of the first n nodes of the verdict's path, if there are any; discards all others. */
bool seq_aux_keep(struct sequence *, const struct verdict *, uint32_t n);

bool session_open_acceptance(struct session *, struct err *);
void session_close_acceptance(struct session *);
/* p̂ of the token of a row that has run up to the draft's last layer. False: stopped; session_error(). */
bool session_acceptance(struct session *, struct context *, slot_t row, uint32_t layer, double *p);

bool session_open_confidence(struct session *, struct err *);
void session_close_confidence(struct session *);
/* The confidence head's value for the draft that a row of a block predicts, after the token before it; NAN: there is no
 * such head. `again`: the row is the last call's. False: stopped; session_error(). */
bool session_confidence(struct session *, slot_t row, token_t before, bool again, float *);

/* ---- control_point.c: where controls arrive, and where the thread waits ---- */
enum control_point {
    POINT_TOKEN, /* within a round */
    POINT_ROUND, /* between rounds */
    POINT_END    /* after the end of the run */
};
enum next {                /* the caller's next action */
            NEXT_STOP,     /* returns, because a new run or quitting was requested */
            NEXT_SETTINGS, /* session_apply_settings(), then the control point again; not within a round */
            NEXT_BASELINE, /* session_baseline(), then the control point again; not within a round */
            NEXT_COSTS,    /* session_costs(), likewise */
            NEXT_PROBES,   /* session_probe_missing(), likewise */
            NEXT_ROUND     /* continues */
};
enum next session_control_point(struct session *, enum control_point);
void session_token_done(struct session *); /* after a token was drafted or emitted */
void session_round_done(struct session *, uint32_t emitted);
/* Ends work that a control interrupted, or that failed in a context or policy; emits the failure. Returns false. */
bool session_stop(struct session *, const char *where);

/* ---- control_point.c: settings ---- */
/* Opens contexts for the sequences of a run. False: failed. */
bool session_make_room(struct session *);
bool session_takes_part(const struct session *, const struct sequence *); /* in the next round */
void seq_take_settings(struct sequence *); /* copies the settings to policies and round */
/* The head that results from these settings: "lens" or "trained"; "" if the model has no trained heads. */
const char *session_head(const struct session *, const struct settings *);
void session_begin_settings(struct session *); /* at the beginning of a run: emits probe and head */
void session_take_settings(struct session *);  /* then: applies the requested changes */
bool session_apply_settings(struct session *); /* between rounds. False: stopped */
/* Shows a new policy the rows, and probes the latest rows with a new head. In a batch this excludes sequences that have
 * ended. The events belong to the next round, because this one is complete. False: stopped. */
bool session_look_back(struct session *);

/* ---- round.c ---- */
/* A policy's step for one of `together` sequences of a round: its costs are those of this sequence. */
bool seq_alone(struct sequence *, struct policy *, uint32_t together, bool (*step)(struct policy *, struct round *));

/* ---- round_steps.c ---- */
bool seq_is_end(const struct sequence *, token_t);
/* Runs one round; *emitted: tokens of all sequences. False: stopped. */
bool session_round(struct session *, uint32_t *emitted);

/* ---- baseline.c: between rounds ---- */
bool session_baseline(struct session *); /* false: stopped */
/* After a baseline, measures a few steps of it anew before a round, if that takes only a small part of the run's
 * time. */
bool session_baseline_slice(struct session *);

/* ---- costs.c: between rounds ---- */
/* Measures the costs of steps and emits them; postpones that if it takes too much of the run's time. */
void session_costs(struct session *);

/* ---- choice.c: the policy of a session that chooses it itself ---- */
const char *session_first_policy(const struct session *, const struct policy_ops *const *registry);
void session_choice_begin(struct session *); /* at the beginning of a run */
bool session_choose(struct session *);       /* between rounds; posts the policy when it is time. False: stopped */

/* ---- run.c: a run, and requests after its end ---- */
void session_generate(struct session *);

/* ---- mailbox.c: reading controls; any thread, reads constant members only ---- */
/* Fails if the control is refused (an unknown knob, a bad value, a prompt that is too long). */
bool session_post(struct session *, const struct control *, struct err *);
bool session_find_policy(const struct session *, const char *name, uint32_t *index, struct err *);
bool session_read_knob(const struct session *, uint32_t policy, const char *name, const char *text, uint32_t *knob,
                       double *value, struct err *);
bool session_check_head(const struct session *, enum head_mode, struct err *);
/* "POLICY KNOB=VALUE …", a second setting made from the first one, or "off". */
bool session_read_versus(const struct session *, const char *text, const struct settings *first, struct mail *,
                         struct err *);

/* ---- session_open.c ---- */
void session_close_sequences(struct session *);
bool session_open_parts(struct session *, const struct session_options *, struct err *);

#endif
