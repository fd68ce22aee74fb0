/* What the session's files share; nobody else includes it. Each file calls only those that stand above it here. */
#ifndef ENGINE_SESSION_SESSION_INTERNAL_H
#define ENGINE_SESSION_SESSION_INTERNAL_H

#include <pthread.h>
#include <stdlib.h>

#include "engine/events/estimate.h"
#include "engine/events/metrics.h"
#include "engine/model/final_norm.h"
#include "engine/session/mailbox.h"
#include "engine/session/sequence.h"
#include "engine/session/session.h"
#include "kernels/rng.h"

struct left { /* a sequence whose sequence another one took */
    uint32_t number;
    token_t *tokens;     /* (n) that it emitted; owned */
    uint32_t n;          /* */
    bool compared;       /* with its autoregressive tokens, */
    uint32_t differs_at; /* of which that one is another, from 0; UINT32_MAX: none */
};

struct run {
    uint32_t number;        /* from 1 */
    const char *cause;      /* start, restart, prompt */
    struct prompt *prompts; /* (n_prompts) owned */
    uint32_t n_prompts;
    uint32_t total;  /* sequences in all: sequence i begins with prompts[i], or where there is one prompt, with that */
    uint32_t joined; /* of them, those that have begun */
    struct left *left; /* (n_left) in the order in which they did; owned */
    uint32_t n_left;
    uint32_t wanted;   /* tokens that each emits; UINT32_MAX: no bound */
    bool sampled;      /* with a temperature, now or before */
    uint64_t start_us; /* by clock_us(); events count from it */
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

/* The prompt is the run's now, in place of all others. */
static inline void
run_take_prompt(struct run *r, struct prompt *p)
{
    for (uint32_t i = 0; i < r->n_prompts; i++)
        prompt_free(&r->prompts[i]);
    r->prompts[0] = *p;
    r->n_prompts = 1;
    *p = (struct prompt){0};
}

/* When a session works and when it waits: paused, in steps, up to a breakpoint, slowed down for people who watch. */
struct timing {
    bool paused;
    bool step_token;      /* one more token, then a pause */
    uint32_t step_rounds; /* so many more rounds, then a pause; 0: not stepping by rounds */
    uint32_t break_at;    /* a pause after this round; 0: none */
    double pace;          /* tokens/s at most; 0: as fast as it goes */
    uint64_t next_us;     /* the next round may begin, by clock_us() */
};

/* The condition of :until, which is checked for each event. */
#define WATCH_GUESSES 2048 /* of a round that are remembered; further ones are not looked at */

struct watch {
    struct until until;  /* UNTIL_NOTHING: for nothing */
    bool met;            /* in a round that is over, */
    uint32_t seq;        /* by that sequence */
    bool unsure;         /* a draft of this round was, */
    uint32_t unsure_seq; /* of that sequence */
    uint32_t n;          /* of the round's guesses: of the target's layers, the last one's among them */
    struct watch_guess {
        uint32_t seq, pos;
        int32_t layer;
        token_t token;
        float confidence;
    } guess[WATCH_GUESSES];
};

struct asked { /* for the engine's thread to do as soon as it can */
    bool quit, new_run, baseline, extension;
    uint32_t slices; /* of a baseline, one before each round */
};

struct measured { /* autoregressive steps of this prompt, all of one state of the machine: slowed down, or not */
    struct ratio_sums steps; /* tokens / s */
    bool paced;
};

struct probing { /* the scope's own probes, and room for those of a policy that doesn't care */
    struct context_probe *probes;
    struct guess *guesses;
    size_t n; /* of each */
};

struct acceptance {         /* what the acceptance head works with; empty where there is none */
    struct final_norm norm; /* the draft model's */
    struct accept_predictor *predictor;
    float *x;           /* (width) a row */
    double load, heads; /* what a call counts, and all calls so far: units of the target's head */
};

struct session {
    /* The same from opening to closing. */
    struct engine *engine; /* borrowed */
    struct run_info info;
    struct model_info model;
    bool ignore_eos, stay;
    bool batch; /* of sequences that share their rounds */
    struct prompt_format format;
    struct event_log *log;
    struct context *ctx;
    struct helper_context helpers[HELPERS];
    struct acceptance acceptance;
    struct dist_pool *dists;      /* of all models, for verification goes by those that others made */
    token_t unknown;              /* what drafts are called that the target has no token for */
    struct policy_memory *memory; /* borrowed; or NULL */
    pthread_t thread;
    bool started;

    /* Shared with other threads, each under a lock of its own. */
    struct mailbox mailbox;
    struct mail *_Atomic spare; /* for asking it to quit when there is no memory for mail; owned */
    pthread_mutex_t failure_lock;
    struct err failure; /* kind ERR_NONE: none. Only the engine's thread writes it, so it reads without the lock */

    /* The engine thread's own. */
    struct mail *changes; /* of settings, not applied yet, in the order in which they were posted */
    struct timing timing;
    struct watch watch;
    struct asked asked;
    struct measured measured;
    struct run run;
    uint32_t round;             /* the number of the latest, which all live sequences take part in */
    struct spent spent;         /* by all of them together */
    uint64_t recording_ns;      /* emitting the last round's own events: it is added to the next round */
    uint64_t device_emitted_us; /* when it was last said where the device's time goes */
    enum account aside_from;    /* what a pass aside interrupted */
    uint64_t *emitted_ids;      /* bit set of token ids whose VOCAB event was emitted */
    struct probing probing;
    struct sequence *sequences; /* (open_sequences) */
    uint32_t n_sequences;       /* of them, those that are used */
    uint32_t open_sequences;
    atomic_uint ctx_sequences; /* that the contexts have room for; grows between runs, looked at by any thread */
    uint32_t n_settings;       /* 1: all sequences have the same; else each has its own, and they run in turns: */
    uint32_t turn;             /* this one ran last */
};

static inline bool
session_in_turns(const struct session *s)
{
    return s->n_settings > 1;
}

static inline bool
session_has_several(const struct session *s) /* sequences, which join and leave */
{
    return s->batch || session_in_turns(s);
}

static inline uint64_t
seq_seed(const struct session *s, uint32_t sequence) /* sequences in turns draw the same random numbers */
{
    const uint64_t seed = s->sequences[0].current.seed;
    return session_in_turns(s) ? seed : rng_sequence_seed(seed, sequence);
}

/* emit.c: events of this run and round. */
void watch_for(struct watch *, const struct until *); /* from now on */
void seq_emit(struct sequence *, struct event *);     /* stamps and appends */
void session_emit_vocab(struct session *, token_t);
/* A committed token, the prompt's or the target's own; the guess that it came from, or NULL. */
void seq_emit_token(struct sequence *, uint32_t pos, token_t, enum token_source, const struct guess *);
void seq_emit_guess(struct sequence *, uint32_t pos, uint32_t layer, uint32_t head, const struct guess *,
                    enum probed_by, token_t final);
/* The same of a layer of a model that helps; final is the target's word here, too. */
void seq_emit_helper_guess(struct sequence *, enum helper_role, uint32_t pos, uint32_t layer, const struct guess *,
                           enum probed_by, token_t final);
void seq_emit_experts(struct sequence *, slot_t row); /* where a row of the target's went, as far as that is known */
struct change {                                       /* of a setting or of the run's state */
    enum recorded kind;
    const char *knob; /* RECORDED_KNOB: its name */
    const char *before, *after;
    uint32_t asked, applied; /* rounds: in which it was requested, and the first one that runs with it */
};
void session_emit_change(struct session *, uint32_t seq, const struct change *);
/* Without a text before, in this round. */
void session_emit_control(struct session *, uint32_t seq, enum recorded, const char *text);
void session_emit_state(struct session *, enum recorded, const char *before, const char *after); /* of sequence 0 */
void session_emit_device(struct session *); /* where its time goes, now and then, if the backend measures that */
void session_emit_progress(struct session *, const char *what, double done);
/* A progress_fn that emits the progress of a prompt that takes long; the end is emitted only after a beginning. */
struct prefill_watch {
    struct session *session;
    uint64_t since_us; /* by clock_us() */
    bool emitted;
};
bool session_emit_prefill(void *watch, double done);
bool session_has_failed(const struct session *);                         /* for the engine's thread */
bool session_fail(struct session *, const char *where, const char *why); /* ends the run, and says so once; false */

/* probing.c: heads at layers. */
/* The head that a layer's guesses come from, as events name it: 0 the lens, 1 a trained one. */
uint32_t seq_head_at(const struct sequence *, uint32_t layer);
/* With --probe all: the rows that a round committed, or the latest ones again, with the head that is in use now; and
 * whatever rows have come to the models that help. In as few head calls for all of them as they fit in. */
bool session_probe_round(struct session *, struct sequence *const *, uint32_t n);
bool session_probe_recent(struct session *, struct sequence *const *, uint32_t n);

/* acceptance.c: the draft model's acceptance head. */
bool session_open_acceptance(struct session *, struct err *);
void session_close_acceptance(struct session *);
/* p̂ of the token of a row that has run up to the draft's last layer. False: stopped; session_error(). */
bool session_acceptance(struct session *, struct context *, slot_t row, uint32_t layer, double *p);

/* contexts.c: those of all models. */
bool session_open_contexts(struct session *, struct err *);
void session_close_contexts(struct session *);
bool session_contexts_fit(const struct session *, uint32_t sequences,
                          struct err *);                 /* any thread; on a GPU opening says so */
struct loads session_loads(const struct session *);      /* of all of them, in units of the target's */
const struct err *session_error(const struct session *); /* what the last call of one of them said; ERR_NONE: nothing */

/* helpers.c: rows of those that help. */
void seq_helpers_forget(struct sequence *); /* a new sequence */
void seq_helpers_begin(struct sequence *);  /* a round */
/* The role's rows of these sequences read what they have not read of the tokens, the pending ones too, in as few sweeps as
 * they fit in. False: stopped; session_error(). */
bool session_helpers_follow(struct sequence *const *, uint32_t n, enum helper_role);
/* The same, but of the last few tokens there are rows alone, for who asks first to run: with those of drafts behind them. */
bool session_helpers_append(struct sequence *const *, uint32_t n, enum helper_role);
/* The row of a round's node; SLOT_NONE: stopped. */
slot_t seq_helper_row(struct sequence *, struct helper *, int32_t node);
/* A row of the first token that the trunk has not, behind it, for who runs and discards it; SLOT_NONE: stopped. */
slot_t seq_helper_next(const struct sequence *, const struct helper *);
/* Keeps the rows of the first n nodes of the verdict's path, as far as there are any; others go. */
bool seq_helpers_keep(struct sequence *, const struct verdict *, uint32_t n);

/* gate.c: where controls arrive, and where the work waits while it is paused. What it was asked to do next is the
 * caller's to do. */
enum control_point {
    POINT_TOKEN /* within a round */,
    POINT_ROUND /* between rounds */,
    POINT_END /* the run is over */
};
enum next {
    NEXT_STOP,     /* a new run, or quitting: unwind */
    NEXT_SETTINGS, /* session_apply_settings(), and come again; not within a round */
    NEXT_BASELINE, /* session_baseline(), and come again; not within a round */
    NEXT_ROUND     /* go on */
};
enum next session_control_point(struct session *, enum control_point);
/* All sequences have the settings of the first; changes of others that were not applied are dropped. */
void session_share_settings(struct session *);
void session_token_done(struct session *); /* a token was drafted or emitted */
void session_round_done(struct session *, uint32_t emitted);
/* Work ended before it was done: by a control, or by a failure of context or policy, which is told. False. */
bool session_stop(struct session *, const char *where);

/* settings.c. */
bool session_make_room(struct session *); /* with a run: for as many sequences as it takes. False: failed */
bool session_takes_part(const struct session *, const struct sequence *); /* in the next round */

void seq_take_settings(struct sequence *);     /* what policies and rounds read of them */
void session_begin_settings(struct session *); /* as a run begins: emits those of the run before; */
void session_take_settings(struct session *);  /* then: applies what was requested since */
bool session_apply_settings(struct session *); /* between rounds. False: stopped */
/* Another policy has not seen the rows yet, another head has not been seen at them. In a batch a sequence that is over is left
 * as it is: its policy sees the rows when it goes on. What is said of them is told as the next round's: this one is
 * closed. False: stopped. */
bool session_look_back(struct session *);

/* round.c: its LAYER event. */
void round_emit_guess(const struct round *, slot_t, uint32_t layer, const struct guess *);

/* rounds_model() of rounds that have drafts, after session_helpers_append(). */
bool session_rounds_append(struct round *const *, uint32_t n, enum helper_role, struct round **out);

/* seq_steps.c: of one round. */
bool seq_is_end(const struct sequence *, token_t);
void seq_begin_round(struct sequence *);
uint32_t seq_rows(const struct sequence *, slot_t *rows); /* of its nodes; returns how many */
void seq_emit_verdict(struct sequence *);                 /* of the sequence that was committed: the verdict's events */
bool seq_commit(struct sequence *);                       /* what the verdict says. False: stopped */
/* Its line: its own, and its share of what so many sequences spent together. */
void seq_end_round(struct sequence *, const struct spent *together, uint32_t sequences);

/* round_steps.c. */
/* A step of a policy for one of the sequences that are in the round together: its costs are this one's. */
bool seq_alone(struct sequence *, struct policy *, uint32_t together, bool (*step)(struct policy *, struct round *));
/* One round, and what all sequences emitted in it. False: stopped. */
bool session_round(struct session *, uint32_t *emitted);

/* baseline.c: between rounds. False: stopped. */
bool session_baseline(struct session *);
/* A further one, of what was measured already, is done in short slices between rounds and ends with session_baseline(). */
#define BASELINE_SLICES 12
static inline bool
session_baseline_refines(const struct session *s)
{
    return s->measured.steps.n > 0 && s->measured.paced == (s->timing.pace > 0);
}
bool session_baseline_slice(struct session *); /* one of asked.slices */

/* run.c: a run, and after its end what is asked for until the next one. */
void session_generate(struct session *);

/* control.c: controls as values. Any thread; nothing of the engine's thread is looked at. */
bool session_read_control(const struct session *, const struct control *, const struct settings *requested,
                          struct mail *, struct err *);
bool session_find_policy(const struct session *, const char *name, uint32_t *index, struct err *);
bool session_read_knob(const struct session *, uint32_t policy, const char *name, const char *text, uint32_t *knob,
                       double *value, struct err *);
bool session_check_head(const struct session *, enum head_mode, struct err *);
/* "POLICY KNOB=VALUE …", a second setting made from the first one, or "off". */
bool session_read_versus(const struct session *, const char *text, const struct settings *first, struct mail *,
                         struct err *);

/* sequences.c */
bool session_open_sequences(struct session *, const struct policy_ops *const *registry, struct err *);
void session_close_sequences(struct session *);

/* session_open.c */
bool session_open_parts(struct session *, const struct session_options *, struct err *);

#endif
