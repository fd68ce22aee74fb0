/* The event log. A session appends an event for everything that happens. The screen, the trace and the measures are
 * built from events alone, so a live run and a replay differ only in the code that appends.
 *
 * Conventions. `pos` is the position of the token that an event is about; a layer's prediction at `pos` was read from
 * the row at pos - 1. Reals are float, so that "%.9g" preserves them exactly. A real that does not apply is NAN, an
 * integer that does not apply is -1. Layers are 1..L.
 *
 * Order within a round: drafts (TOKEN), with the policy's predictions (LAYER) and values (SERIES) between them; then
 * the verification: a VERDICT for each verified draft, the correction or bonus (TOKEN), predictions of layer L at the
 * judged positions, the scope's probes, routes of committed rows (EXPERTS); last ROUND, the round's commit record.
 * VOCAB precedes the first use of an id. */
#ifndef ENGINE_EVENTS_EVENT_H
#define ENGINE_EVENTS_EVENT_H

#include "kernels/backend.h"

enum event_type {
    EVENT_VOCAB,
    EVENT_TOKEN,
    EVENT_VERDICT, /* in a trace: the draft's accepted and committed columns */
    EVENT_LAYER,
    EVENT_SERIES,
    EVENT_CONTROL,
    EVENT_ROUND,
    EVENT_EXPERTS,
    EVENT_PROGRESS, /* never in a trace */
    EVENT_TYPES
};

enum token_source { SOURCE_PROMPT, SOURCE_PREFILL, SOURCE_DRAFT, SOURCE_CORRECTION, SOURCE_BONUS, TOKEN_SOURCES };
enum probed_by { PROBED_POLICY, PROBED_VERIFY, PROBED_SCOPE, PROBED_BY };

extern const char *const token_source_names[TOKEN_SOURCES]; /* "prompt", "prefill", … as in the trace */
extern const char *const probed_by_names[PROBED_BY];        /* "policy", "verify", "scope" */

/* The model that a layer belongs to. Auxiliary models are numbered by their roles (policy.h: LAYERS_OF). */
#define AUX_ROLES(R) /* names in traces */                                                                             \
    R(DRAFT, "draft") R(COMPANION, "companion") R(EAGLE, "eagle") R(BLOCK, "block") R(MTP, "mtp")
enum layer_model { MODEL_TARGET, MODEL_DRAFT, MODEL_COMPANION, MODEL_EAGLE, MODEL_BLOCK, MODEL_MTP, LAYER_MODELS };
extern const char *const layer_model_names[LAYER_MODELS]; /* "" for the target */

struct token_event {
    uint32_t pos;
    /* node numbers within the round's tree; node 0 is the pending token; -1: not a draft */
    int32_t parent, candidate;
    token_t token;
    enum token_source source;
    /* The layer that predicted the token; L for a token of the target. -1, as is `head`, if a draft model predicted the
     * token (LAYER events have the draft model's layers) or it was copied. */
    int32_t exit_layer;
    float confidence, annealed; /* of the prediction */
    int32_t head;               /* 0: the logit lens, 1: the layer's trained head */
    int8_t accepted, committed; /* 1, 0, or -1 if unknown or not applicable */
};

struct verdict_event {
    int32_t candidate;
    int8_t accepted, committed; /* accepted and not committed: off the path, or cut (in older traces) */
};

struct layer_event {
    uint32_t pos;
    enum layer_model model; /* model of `layer`; kl_final and rank_final compare with this model's last layer */
    /* head: 0 the logit lens, 1 a trained head. Of a block drafter: 0 without the Markov head's bias, 1 with it. */
    int32_t layer, head;
    token_t token;
    float confidence, entropy, kl_final;
    /* the confidence at another temperature, by which a policy decides; NAN: none */
    float annealed, temperature;
    int32_t rank_final;  /* -1: unknown */
    int8_t final_agrees; /* with the prediction of the target's last layer, for all models; -1: unknown */
    /* of the token before `pos`, as predicted by the draft model's acceptance head from the same row; of a block
     * drafter, of the draft at `pos`, by its confidence head; NAN: not asked for */
    float acceptance;
    enum probed_by probed_by;
    uint32_t draft_vocab;        /* the probabilities are over so many tokens (draft_vocab.h); 0: all */
    token_t top[PREDICTION_TOP]; /* TOKEN_NONE after the last */
    float top_p[PREDICTION_TOP];
};

/* Returns by how much the logit of a layer's best token exceeds that of its second: ln(p1 / p2); NAN: unknown. */
/* SpecBound's spurious confidence: a layer's first choice is not the last layer's, `final`, and its confidence (at
 * temperature 1) is at least the policy's threshold, or 0.5 if that is NAN. false: final is TOKEN_NONE. */
bool event_spurious(token_t, float confidence, token_t final, float threshold);
double event_margin(const float top_p[PREDICTION_TOP]);

#define EXPERTS_REPORTED 16 /* routes of a row in an event: those of largest weight */

/* Experts that the row was routed to from which the layer's prediction at `pos` was read. */
struct experts_event {
    uint32_t pos;
    int32_t layer;                     /* of the target */
    uint32_t n;                        /* number of routes, at most EXPERTS_REPORTED, by descending weight */
    uint16_t expert[EXPERTS_REPORTED]; /* from 0 */
    float weight[EXPERTS_REPORTED];    /* factor of the expert's output */
};

struct series_event {
    char key[24];
    int32_t index;
    float value;
};

/* Kinds of control events. "New" is the event's new_text. */
enum recorded {
    RECORDED_KNOB,   /* a change of a knob, of the policy or of sampling (new: its value) */
    RECORDED_RUN,    /* a run begins (new: start, restart, prompt); the event's `run` is the new one */
    RECORDED_PROMPT, /* the prompt of the run (new: its text; old: in a chat the messages before it, as JSON; else "") */
    RECORDED_VERSUS, /* the run has two settings: sequence 0 keeps its own, and 1 begins with this one (new: "layerskip
                           * exit_layer=4"; its other knobs are those of sequence 0). Knobs, policies and heads then have a `seq` */
    RECORDED_POLICY, /* a change of the policy (new: its name) */
    RECORDED_STATE,  /* the run pauses or resumes (new: running, paused) */
    RECORDED_PROBE,  /* which layers the scope probes (new: off, policy, all) */
    RECORDED_HEAD,   /* the head that layers are read with (new: lens, trained); absent if the lens is the only one */
    RECORDED_BREAK,  /* a breakpoint was reached (new: the round) */
    RECORDED_UNTIL,  /* the condition of :until was met in this round of sequence `seq` (new: the condition) */
    RECORDED_JOINED, /* sequence `seq` of a batch begins (new: its prompt's text) */
    RECORDED_LEFT,   /* sequence `seq` ends (new: eos, tokens, context) */
    RECORDED_BACK,   /* sequence `seq` resumes to generate more tokens */
    RECORDED_END,    /* the run is over (new: eos, tokens, context, batch, or "error: …") */
    RECORDED_PACE,   /* a speed limit (new: tokens/s; 0: none); absent if a run begins without one */
    RECORDED_BASELINE_SE,    /* standard error of the baseline that follows (new: the number) */
    RECORDED_BASELINE,       /* measured autoregressive tokens/s of the same prompt (new: the number) */
    RECORDED_BASELINE_SLICE, /* tokens/s of a few autoregressive steps since the last round (new: the number) */
    RECORDED_LOSSLESS, /* the comparison with autoregressive tokens (new: "yes", "yes: 7 sequences" if not all were compared,
                           * "no: token 17", "sampled") */
    RECORDED_RACE,   /* a race of many settings over many prompts (new: begins, ends); its runs follow */
    RECORDED_NOTE,   /* a bookmark (new: the position, then the text; no text removes it) */
    RECORDED_DEVICE, /* where the device's time was spent since the last such event (new: text) */
    RECORDED_COST,   /* the measured costs of steps (new: JSON, engine/events/cost_model.h) */
    RECORDED_CHOICE, /* why a session chose its policy itself, or kept it (new: a sentence); RECORDED_POLICY follows */
    RECORDED_SERVER, /* a server's own counters (new: JSON, engine/remote/remote.h) */
    RECORDED_KINDS
};
extern const char
    *const recorded_names[RECORDED_KINDS]; /* their names in a trace, which no knob may have. RECORDED_KNOB: "" */

struct control_event {
    enum recorded kind;
    char knob[24];                   /* RECORDED_KNOB: its name; else "" */
    const char *old_text, *new_text; /* owned by the log; NUL-terminated; "" for none */
    uint32_t applied_round;          /* the first round that ran with it; the event's round is the one of the request */
};

/* Writes or reads the name of a control in a trace. Reading sets kind and knob, and cuts a name that is longer than a
 * knob's. */
const char *control_event_name(const struct control_event *);
void control_event_set_name(struct control_event *, const char *name);

struct vocab_event {
    token_t token;
    const char *bytes;
    uint32_t n_bytes; /* bytes are owned by the log */
};

struct round_event {
    char policy[16];
    uint32_t draft_us, verify_us, probe_us; /* probe_us: the scope's own probes, not part of the round's work */
    uint32_t drafted, verified, accepted, emitted;
    /* Drafts after the last committed token: an accepted draft ended the text. They have no verdict, and the numbers
     * above do not contain them. */
    uint32_t cut;
    int32_t exit_layer;                /* the policy's current exit layer; -1: none */
    float threshold;                   /* NAN: none */
    int32_t d_max, w_max;              /* -1: none */
    float layers_loaded, heads_loaded; /* the round's work, without the scope's probes */
    char stop_reason[16];              /* reason why drafting stopped: w_max, difficult, threshold, length, eos, … */
    float heads_us;                    /* the part of draft_us in head calls; NAN: unknown */
    float wait_us; /* time paused or stepping at a control point, not part of the times above; NAN: unknown */
    /* time of the policy's learning passes (round_learning_begin()), not part of the times above; NAN: unknown */
    float learning_us;
    /* With a mixture of experts: experts of a layer that the verifying forward pass used, averaged over its layers of
     * experts. A batch has one forward pass for all sequences. NAN or 0: unknown, or no experts. */
    float verify_experts;
    /* At the first rejection: the rank of the target's token among the drafter's predictions, 1: its first choice; 0:
     * it is not one of the listed ones; -1: no draft was rejected, or the drafter has no list. When sampling, the
     * target's token is the correction. */
    int32_t reject_rank;
};

struct progress_event {
    char what[16];
    float done; /* [0, 1] */
};

struct event {
    uint64_t number; /* from 1, ascending; set by the log */
    uint64_t t_us;   /* since the run's start */
    uint32_t run, seq, round;
    enum event_type type;
    union {
        struct vocab_event vocab;
        struct token_event token;
        struct verdict_event verdict;
        struct layer_event layer;
        struct experts_event experts;
        struct series_event series;
        struct control_event control;
        struct round_event round_end;
        struct progress_event progress;
    };
};

/* Follows the generated tokens of one sequence. Drafts are committed by verdicts, which name them by their node. */
struct committed {
    token_t drafts[VERIFY_NODES]; /* of the round */
};
/* Returns whether the event, of this sequence, commits a generated token; writes the token and its source. */
bool committed_token(struct committed *, const struct event *, token_t *, enum token_source *);

/* ---- the log: one thread appends, several readers with a cursor each ---- */

struct event_log;
struct event_reader;

/* Opens a log. cap_bytes: the most that it stores for the slowest reader; 0: 256 MiB. Without readers it stores only
 * the newest chunk: open a reader before the first event that the reader needs. */
bool event_log_open(struct event_log **, size_t cap_bytes, struct err *);
void event_log_close(struct event_log *); /* close the readers first */
/* Makes room for at least n events and text_bytes of text (without terminators), so that appending them does not
 * allocate. Call it between rounds, from the appender's thread. If the log is larger than its cap, the slowest readers
 * lose their oldest events. */
bool event_log_reserve(struct event_log *, size_t n, size_t text_bytes, struct err *);
/* Copies the event and its text, and numbers it if e->number is 0. Returns the number. Returns 0 if memory runs out:
 * every reader counts the event as lost. */
uint64_t event_log_append(struct event_log *, const struct event *);
uint64_t event_log_last(struct event_log *); /* number of the newest event, 0: none; any thread may call it */
void event_log_finish(struct event_log *);   /* marks the end of the log; wakes waiting readers */
bool event_log_finished(struct event_log *);

/* begins at the oldest event stored; NULL: out of memory */
struct event_reader *event_reader_open(struct event_log *);
void event_reader_close(struct event_reader *);
const struct event *event_reader_next(struct event_reader *); /* NULL: no new event; valid until the next call */
/* Waits until there is an event or the log is finished. Returns false on timeout. Only rounds and controls wake a
 * reader: on a busy machine a reader that wakes takes the processor from the appender. */
bool event_reader_wait(struct event_reader *, int timeout_ms);
/* events dropped before they were read, up to the cursor */
uint64_t event_reader_lost(const struct event_reader *);

#endif
