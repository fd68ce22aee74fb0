/* What the session's files share: session.c (threads, controls), generate.c (a run and its rounds), round.c (the
 * policy's helpers), baseline.c. Nobody else includes it. */
#ifndef ENGINE_SESSION_SESSION_INTERNAL_H
#define ENGINE_SESSION_SESSION_INTERNAL_H

#include <pthread.h>

#include "engine/base/clock.h"
#include "engine/base/condition.h"
#include "engine/session/round.h"
#include "engine/session/session.h"
#include "engine/tokenizer/chat.h"
#include "engine/tokenizer/tokenizer.h"

struct mail { /* a control on its way to the engine's thread */
    struct mail *next;
    struct control control;
    char *text; /* owned copy of control.text, or NULL */
    uint32_t asked_round;
};

enum mood { /* what a gate tells the work that came to it */
            MOOD_GO,
            MOOD_STOP /* a new run, quitting, or a failure: unwind */
};

/* Everything of a round that policies don't see. */
struct round_state {
    struct session *session;
    struct verify_row node[VERIFY_NODES];
    uint32_t pos[VERIFY_NODES];
    uint32_t n;     /* nodes, node 0 counted */
    uint32_t steps; /* depth of the tree: drafts on its longest path */
    char stop_reason[16];
    int exit_layer, d_max, w_max;
    uint64_t aside_since, aside_us; /* passes that are not the draft's */
    struct loads aside_from, aside;
    uint64_t aside_heads_ns; /* heads_ns when the pass began */
    double threshold;
    uint64_t heads_ns, wait_ns; /* the policy's head calls; at gates */
    bool heads_unknown;         /* the backend could not tell what a call's probes took */
    bool annealed;              /* temperature[] below is this round's */
    float *temperature;         /* (L + 1) of the last exit rule */
};

struct session {
    struct engine *engine;
    struct run_info info;
    struct event_log *log;
    struct context *ctx;
    struct policy *policies; /* (info.n_policies) */
    struct policy_memory *memory;
    struct model_info model;
    struct sampling sampling;
    bool ignore_eos, stay;
    seq_t seq;

    /* Shared with posting threads, under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct mail *first, *last;
    uint32_t interrupts;      /* prompts, restarts and quits in the queue */
    uint32_t asked_policy;    /* the policy that is asked for last: knob names are checked against it */
    atomic_bool cancel;       /* = interrupts > 0; looked at before every layer */
    atomic_uint round_number; /* for stamping what is asked */

    /* The engine thread's own. */
    pthread_t thread;
    bool started;
    uint32_t policy;
    enum probe_mode probe;
    enum head_mode head_mode;
    enum head_choice head; /* that looks at a layer: what the mode, the policy and the engine come to */
    bool paused, want_baseline;
    uint32_t step_rounds; /* left before pausing again; 0: not stepping */
    bool step_token;
    uint32_t break_at;
    double pace;                  /* tokens/s; 0: no bound */
    uint64_t next_us;             /* the next round may begin */
    struct mail *pending;         /* knobs, policies, probes: wait for the next round */
    bool in_round, quit, new_run; /* new_run: a prompt or restart was taken from the queue */
    const char *run_cause;
    char *prompt; /* of the next run */
    size_t prompt_len;
    struct chat chat;                         /* how prompts are written; CHAT_NONE: as they are */
    char *system;                             /* NULL: the template's own */
    token_t *tokens;                          /* (ctx + 2) prompt and emitted */
    uint32_t n_tokens, prompt_tokens, wanted; /* wanted: tokens to generate, UINT32_MAX: no bound */
    uint32_t run;
    uint64_t run_start_us;
    uint64_t *seen; /* bit set of token ids whose VOCAB event is out */
    struct round round;
    struct round_state state;
    struct guess *guesses;        /* (VERIFY_NODES * L) for the scope's probes, or one per layer */
    struct context_probe *probes; /* (n_probes) as many */
    size_t n_probes;
    struct err failure; /* kind ERR_NONE: none */
    atomic_bool failed;
};

/* A prompt's tokens, written as a turn where that is wanted. Any thread. */
bool session_encode(const struct session *, const char *prompt, size_t len, token_t **ids, size_t *n, struct err *);
bool pace_parse(const char *text, double *tokens_per_s); /* a number from 0 */
/* Stamps and appends. */
void session_emit(struct session *, struct event *);
void session_vocab(struct session *, token_t);
void session_control_event(struct session *, const char *name, const char *old_text, const char *new_text,
                           uint32_t asked, uint32_t applied);
void session_layer_event(struct session *, uint32_t pos, uint32_t layer, uint32_t head, const struct guess *,
                         enum probed_by, token_t final);
/* The head that a layer's guesses come from, as events name it: 0 the lens, 1 a trained one. */
uint32_t session_head_at(const struct session *, uint32_t layer);
/* Sets the head by mode, policy and engine; tells when it changed, or always. True: it changed. */
bool session_choose_head(struct session *, bool always, uint32_t asked, uint32_t applied);
/* Handles controls; blocks while paused. at_round: between rounds, where knobs and policies take effect. */
enum mood session_gate(struct session *, bool at_round);
/* Blocks until something arrives that gives work: at the end of a run. */
enum mood session_idle(struct session *);
/* After one drafted or emitted token: stepping by token pauses here. */
void session_token_done(struct session *);
void session_round_done(struct session *);
/* Context or policy said no: cancelled, or a failure to report. Always MOOD_STOP. */
enum mood session_stop(struct session *, const char *where);
bool session_fail(struct session *, const char *where, const char *why); /* false */

/* generate.c: one run from prefill to its end; false when interrupted or failed. */
bool session_probe_recent(struct session *); /* the latest rows again, with the head that is in use now */
void session_generate(struct session *);
void session_end(struct session *, const char *why); /* the run is over: an `end` control */
void session_continue(struct session *);             /* goes on with rounds after an extension */
/* baseline.c: between rounds. False when interrupted or failed. */
bool session_baseline(struct session *);

#endif
