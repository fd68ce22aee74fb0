/* The view model: everything that the screen shows, built from events alone. It has a bounded size and drops the oldest
 * positions and rounds; the trace keeps them. Positions are absolute positions in the sequence. Its functions are for
 * one thread. */
#pragma once

#include "engine/events/event.h"
#include "engine/events/run_info.h"
#include "engine/events/settings.h"
#include "engine/events/until.h"
#include "engine/measure/estimate.h"
#include "engine/measure/layer_record.h"
#include "engine/measure/metrics.h"
#include "engine/measure/segments.h"

#define SCOPE_POSITIONS 32768 /* positions in memory with their tokens */
#define SCOPE_COLUMNS   1024  /* of these, the newest positions have their layers' predictions */
#define SCOPE_ROUNDS    1024  /* rounds in memory */
#define SCOPE_SERIES    2048  /* values of a series in memory */
#define SCOPE_BARS      256   /* least number of cells of a series, for forms without a declared size */

struct scope_cell { /* a layer's prediction at a position */
    bool known;
    bool compared, agreed; /* with the last layer, for scope_agreement() */
    uint8_t probed_by;     /* enum probed_by: its first source */
    token_t token;
    float confidence, annealed, temperature, entropy, kl_final, acceptance; /* as in struct layer_event */
    int32_t rank_final;
    token_t top[PREDICTION_TOP];
    float top_p[PREDICTION_TOP];
    /* The prediction over a draft vocabulary of so many tokens; 0: there is none. */
    uint32_t draft_vocab;
    token_t draft_token;
    float draft_confidence;
    bool over_draft_vocab; /* all of the above is over it: the whole head was not computed */
};

enum fate {
    FATE_NONE, /* layers have predictions, there is no token yet */
    FATE_PROMPT,
    FATE_PREFILL, /* the first token after the prompt */
    FATE_GHOST,   /* drafted, not yet verified */
    FATE_ACCEPTED,
    FATE_REJECTED, /* until a correction takes its place, or the next round begins */
    FATE_CORRECTION,
    FATE_BONUS
};

struct scope_column { /* a position */
    uint32_t pos, round;
    token_t token; /* the committed token; while drafting the main line's draft; TOKEN_NONE: none yet */
    enum fate fate;
    int32_t exit_layer; /* of the draft; L: the target's own token; -1: unknown */
    float confidence;   /* of the prediction that it came from; NAN: unknown */
    token_t rejected;   /* the main line's draft that was rejected here, TOKEN_NONE */
    int32_t rejected_exit;
    token_t final;     /* the last layer's prediction; TOKEN_NONE: unknown */
    float threshold;   /* the policy's in that round; NAN: none */
    uint32_t siblings; /* further candidates at this position */
};

struct scope_draft { /* a candidate of a round's tree */
    uint32_t pos;
    token_t token;
    int32_t parent, candidate, exit_layer;
    float confidence;
    float probability;          /* the drafter's, of the token after its parent; NAN: unknown */
    float path;                 /* product of the probabilities of the path to it; NAN: one is unknown */
    int8_t accepted, committed; /* -1: not yet verified */
    bool main_line;             /* the first child of the first child …; else a sibling */
};

#define SCOPE_DRAFTS (VERIFY_NODES - 1)
#define SCOPE_BLOCK  32 /* positions of a block in memory; further ones are dropped */

struct scope_block { /* of a block drafter, in one round: its predictions, from the first draft's position on */
    uint32_t first, n;
    struct scope_block_row {
        struct {
            bool known;
            token_t top[PREDICTION_TOP]; /* TOKEN_NONE after the last */
            float top_p[PREDICTION_TOP];
        } head[2];        /* without and with the Markov head's bias */
        float confidence; /* forecast of the confidence head; NAN: none */
    } row[SCOPE_BLOCK];
};

#define ROUND_OPEN (-1) /* scope_round.last: the target has emitted no token of its own yet */

struct scope_round {        /* one line of the rounds panel */
    struct round_event end; /* zeros until the round is complete */
    uint32_t number, run;
    uint32_t first_pos; /* of its first draft or emitted token */
    uint32_t n_drafts;
    struct scope_draft drafts[SCOPE_DRAFTS];
    int8_t last; /* SOURCE_CORRECTION, SOURCE_BONUS or ROUND_OPEN */
    bool whole;  /* its ROUND event came */
};

struct scope_value {
    uint32_t round;
    float value, value2; /* index 0 and 1: a BAND's two edges, a PHASE's number and its progress; NAN: not reported */
};

struct scope_series { /* of the current policy, one per declared series */
    const struct series *declared;
    uint64_t count;           /* values ever; the ring holds the last SCOPE_SERIES */
    struct scope_value *ring; /* value number i is ring[i % SCOPE_SERIES] */
    uint32_t cells;           /* of latest[]: rows * cols, SCOPE_BARS at least */
    uint32_t used;            /* 1 + the highest index reported */
    uint32_t reported;        /* the round of the last report */
    float *latest;            /* the latest value of each index, NAN at first. A MASK's 1 is a skipped sublayer */
};

#define SCOPE_NOTES 64

struct scope_note { /* the user's note about a position of this run */
    uint32_t seq, pos;
    uint64_t t_us;  /* when */
    char text[256]; /* printable */
};

/* The rounds that all numbers on the screen are computed from. */
enum scope_window {
    WINDOW_SEGMENT, /* the rounds since the last change of settings */
    WINDOW_LATEST,  /* the last METRICS_WINDOW rounds of the run */
    WINDOW_RUN,
    WINDOWS
};
extern const char *const window_names[WINDOWS]; /* "segment", "last", "run", as in :window */

struct scope_now {       /* the present state */
    uint64_t version;    /* changes with every event that can change the picture */
    uint64_t lost;       /* events that the log dropped */
    bool starved;        /* memory ran out for an event, which is not shown */
    uint32_t epoch;      /* changes when committed text becomes invalid: a reset, a new run */
    uint32_t run, round; /* round: the last complete one */
    bool running;
    char end[200];               /* "", "eos", "tokens", "context", "error: …" */
    char probe[PROBE_TEXT_MOST]; /* "off", "policy", "all" or a share such as "10%"; "": unknown */
    char device[160];            /* where the device's time is spent; "": not measured */
    char server[1024];           /* a server's own counters, as JSON; "": none */
    uint32_t draft_vocab;        /* tokens of the latest prediction over a draft vocabulary; 0: over all tokens */
    uint32_t length;             /* positions, including drafts, predictions and drafts just rejected */
    uint32_t committed;          /* of these, those with committed tokens */
    struct metrics metrics;
    /* Tokens of all rounds of all runs, and those of them with a prediction of the last layer. */
    uint64_t emitted, outputs;
    const struct segments *segments;       /* of all sequences */
    const struct progress_event *progress; /* of a long step; NULL: none */
    const struct scope_versus *versus;     /* NULL: the run is of one setting */
    enum scope_window window;              /* chosen by scope_show_window() */
    struct cost_model costs;               /* of steps, as measured, uncorrected; cost_known() */
    struct scope_note notes[SCOPE_NOTES];  /* (n_notes) sorted by sequence and position */
    uint32_t n_notes;
};

struct scope;

bool scope_open(struct scope **, const struct run_info *, struct err *); /* info is borrowed */
void scope_close(struct scope *);
void scope_reset(struct scope *); /* as if just opened */
void scope_event(struct scope *, const struct event *);
void scope_lost(struct scope *, uint64_t events); /* the log dropped events before they were read */

/* ---- reading ---- */
const struct scope_now *scope_now(const struct scope *);
const struct run_info *scope_info(const struct scope *);      /* of two saved runs: the one in focus */
const struct policy_info *scope_policy(const struct scope *); /* the current one; never NULL */
double scope_knob(const struct scope *, uint32_t index);      /* the current value of the current policy's knob */
const struct sampling *scope_sampling(const struct scope *, uint64_t *seed); /* the current one; seed may be NULL */
const char *scope_head(const struct scope *); /* of the layers: "lens", "trained"; "": the model has only the lens */
const struct scope_note *scope_note_at(const struct scope *, uint32_t seq, uint32_t pos); /* NULL: none */

uint32_t scope_first(const struct scope *);                                  /* first position that may be in memory */
const struct scope_column *scope_column(const struct scope *, uint32_t pos); /* NULL: not in memory */
/* Predictions by the current head: (L + 1), indexed by layer, [0] unused; NULL: not in memory. */
const struct scope_cell *scope_cells(const struct scope *, uint32_t pos);
uint32_t scope_first_cells(const struct scope *); /* first position whose layers may be in memory */
/* A byte for each layer, for all positions in memory: (L) bytes as in sequence_cells.h, layer l at l - 1. False:
 * unknown. */
bool scope_glimpse(const struct scope *, uint32_t pos, uint8_t *out);
/* The share of this run's positions where a layer's first choice was the last layer's, by the lens or its trained head,
 * among the positions where both were probed. NAN: none was. */
double scope_agreement(const struct scope *, uint32_t layer, bool trained);
void scope_show_head(struct scope *,
                     bool trained); /* for replays: selects the head of scope_cells(), until a control does */
token_t scope_final(const struct scope *, const struct scope_column *); /* the last layer's; TOKEN_NONE: unknown */
/* event_spurious() of the layer's prediction. */
bool scope_spurious(const struct scope *, uint32_t pos, uint32_t layer);

/* The origin of the current policy's drafts, from its declaration (a draft model, a mask of sublayers, nothing) and the
 * run's drafts. */
enum draft_origin { DRAFTS_NONE, DRAFTS_LAYERS, DRAFTS_SUBLAYERS, DRAFTS_ELSEWHERE };
enum draft_origin scope_draft_origin(const struct scope *);

/* ---- layers of any model: the target or an auxiliary model ---- */
uint32_t scope_model_layers(const struct scope *,
                            enum layer_model); /* 0: the run has no such model with layers of its own */
const char *scope_model_name(const struct scope *, enum layer_model);
bool scope_model_used(const struct scope *, enum layer_model); /* the current policy needs it */
/* The same as scope_cells() and scope_agreement() for the model's layers, and how often a layer was probed in this run;
 * agreement is with the target's last layer, by the current head. scope_model_final() is the token of the model's own
 * last layer. */
const struct scope_cell *scope_model_cells(const struct scope *, enum layer_model, uint32_t pos);
uint64_t scope_model_probed(const struct scope *, enum layer_model, uint32_t layer);
double scope_model_agreement(const struct scope *, enum layer_model, uint32_t layer);
token_t scope_model_final(const struct scope *, enum layer_model, const struct scope_column *);
/* The same for a layer of an auxiliary model, which has no threshold; final is the target's token. */
bool scope_model_spurious(const struct scope *, enum layer_model, uint32_t pos, uint32_t layer);

/* The block of a round of the sequence in focus; NULL: none, or not in memory. */
const struct scope_block *scope_block(const struct scope *, uint32_t round);
float scope_block_confidence(const struct scope_block *, uint32_t pos); /* the block may be NULL; NAN: none */

/* ---- experts, of a mixture ---- */

struct scope_experts {      /* of the row whose hidden state a layer's prediction at a position used */
    uint32_t n;             /* 0: unknown, or the layer has none */
    const uint16_t *expert; /* (n) by descending weight, from 0 */
    const float *weight;    /* (n) */
};

/* The number of experts of a layer, and of a row (0: unknown; may be NULL). 0: the model is no mixture of experts, or
 * this is unknown. */
uint32_t scope_expert_count(const struct scope *, uint32_t *used);
struct scope_experts scope_experts(const struct scope *, uint32_t pos, uint32_t layer);
/* The positions of this run with known experts at a layer, and those of them that went to an expert. */
uint64_t scope_expert_rows(const struct scope *, uint32_t layer);
uint64_t scope_expert_chosen(const struct scope *, uint32_t layer, uint32_t expert);

/* The main line's drafts that were rejected last, until the next round begins. */
uint32_t scope_struck(const struct scope *, const struct scope_draft **out);
/* From the last complete round; -1: none. */
int32_t scope_exit_layer(const struct scope *);
int32_t scope_d_max(const struct scope *);

uint32_t scope_rounds(const struct scope *);                                   /* in memory, including the open one */
const struct scope_round *scope_round(const struct scope *, uint32_t back);    /* 0: the newest; NULL: not in memory */
const struct scope_series *scope_series(const struct scope *, uint32_t index); /* of the current policy; NULL: none */
/* The first position that this round or a later one emitted or drafts; now.length: none. */
uint32_t scope_round_position(const struct scope *, uint32_t round);
/* How many rounds back the newest round with number <= `round` is; scope_rounds(): all in memory are newer. */
uint32_t scope_round_back(const struct scope *, uint32_t round);
const struct scope_round *scope_round_numbered(const struct scope *, uint32_t round); /* NULL: not in memory */
/* The next older and the next newer round with tokens in the text, even if the round itself was dropped; 0: none. */
uint32_t scope_round_before(const struct scope *, uint32_t round);
uint32_t scope_round_after(const struct scope *, uint32_t round);
struct scope_pace { /* a round of all sequences */
    uint32_t round, emitted;
    double us; /* of drafting and verification */
};
/* Returns NULL if the round has no time, or is no longer in memory. */
const struct scope_pace *scope_round_pace(const struct scope *, uint32_t round);
/* The values of a series in a round: rows * cols, 2 of a PHASE, `cells` of BARS; NAN: not reported. A series of rounds
 * (series_of_round) has the values reported in the round, other series the last ones up to it. NULL: not in memory, the
 * round had another policy, or the series is a LINE or a BAND, which has a ring. */
const float *scope_round_values(const struct scope *, uint32_t index, uint32_t round);
/* A token's printable text (base/utf8.h), owned by the scope; "" for TOKEN_NONE; "‹17›" if unknown. */
const char *scope_text(const struct scope *, token_t);
/* The raw bytes, which may end within a character; "‹17›" if unknown. NULL and 0: no token. */
const char *scope_bytes(const struct scope *, token_t, uint32_t *n);

/* ---- the sequences of a run ----
 *
 * One sequence has the focus: the functions above describe it, except for the measures, which cover all sequences.
 * Every sequence has a tile. The focus can move to any sequence whose history is in memory: live ones, and the latest
 * ended ones as far as there is room. With more than 8 sequences at a time, each has a smaller share of the limits
 * above, down to an eighth from 33 on. So 64 sequences of a model with 32 layers and trained heads take less than 100
 * MB. */

#define SCOPE_TILES  4096         /* in memory; further sequences are only in the measures */
#define SCOPE_TAIL   64           /* tokens at the end of a sequence that a tile keeps */
#define SCOPE_MEMORY (96ul << 20) /* bytes of histories; if they need more, those of ended sequences are dropped */

struct scope_tile {
    uint32_t seq;       /* its number */
    uint32_t place;     /* its place in the batch, from 0: the first that was free when it joined */
    bool has_place;     /* it is live, or no other sequence has taken its place */
    char prompt[128];   /* the beginning of its prompt, printable; "": unknown */
    bool live, held;    /* held: its history is in memory */
    char left[16];      /* why it ended: eos, tokens, context; "": it is live. Printable */
    uint32_t round;     /* its last one; 0: none yet */
    struct tally total; /* of its ROUND events; times and loads are its shares */
    double rounds_us;   /* the time of its rounds, with the drafting and verification of all sequences */
};

struct scope_batch {
    uint32_t tiles, live, left; /* all sequences so far, and of these the live and the ended ones */
    uint32_t waiting;           /* prompts without a sequence yet; 0 if their number is unknown */
};

struct scope_said { /* a token of a tile's text */
    token_t token;
    enum fate fate; /* FATE_REJECTED, then FATE_GHOST (drafted) follow the committed tokens */
};

struct scope_batch scope_batch(const struct scope *);
bool scope_is_batch(const struct scope *); /* the run has, or will have, several sequences */

/* By ascending number; NULL after the last. Valid until the next event. */
const struct scope_tile *scope_tile(const struct scope *, uint32_t index);
/* The index of a sequence; scope_batch().tiles: no sequence has this number. */
uint32_t scope_tile_index(const struct scope *, uint32_t seq);
/* Its tokens divided by the whole time of its rounds: the speed that its reader sees; NAN. */
double scope_tile_tokens_per_s(const struct scope_tile *);
/* A round of a sequence, as scope_round(): 0 is its newest, which may be incomplete; NULL: not in memory. */
const struct scope_round *scope_round_of(const struct scope *, uint32_t seq, uint32_t back);
/* Writes the end of its text, at most n tokens (SCOPE_TAIL if its history was dropped); returns their number. */
uint32_t scope_tile_tail(const struct scope *, const struct scope_tile *, struct scope_said *, uint32_t n);

uint32_t scope_focus(const struct scope *); /* the number of the sequence in focus */
/* Fails if the sequence's history is not in memory. The choice also applies to later runs. Before the first choice, the
 * focus is on the first sequence, and after its end on the next one that joins. */
bool scope_set_focus(struct scope *, uint32_t seq);

/* ---- the window ---- */

struct window_measures {
    struct measures of;
    struct estimates with;   /* the same with their standard errors */
    struct estimate speedup; /* over autoregressive decoding; se NAN: it was measured at another time */
};

void scope_show_window(struct scope *, enum scope_window);
/* "segment C", "last 32 rounds", "run". */
void scope_window_name(const struct scope *, char *out, size_t n);
struct window_measures scope_window_measures(const struct scope *);

/* ---- two settings on one prompt: sequences 0 and 1, each with its own policy and knobs. Policy, knobs and measures
 * above are then those of the sequence in focus. ---- */

struct scope_versus {
    struct round_sums sums[2]; /* since the last change of either, so that both cover the same text */
    struct paired paired;      /* likewise */
    uint32_t since[2];         /* tokens that each had emitted then */
    uint32_t emitted[2];       /* tokens that each has emitted */
    uint32_t same;             /* tokens that both texts begin with */
    bool parted;               /* the texts differ at position `same` */
    /* Then the target's two best tokens there, as the first sequence that has them, if neither text was sampled.
     * best[1] TOKEN_NONE: unknown. */
    token_t best[2];
    float best_p[2];
    double margin; /* between their logits; NAN: unknown */
    bool apart;    /* two saved runs: they ran at different times, so their speeds are not compared */
};

const struct run_info *scope_versus_info(const struct scope *, uint32_t seq); /* of two saved runs each has its own */
const struct policy_info *scope_versus_policy(const struct scope *, uint32_t seq);
double scope_versus_knob(const struct scope *, uint32_t seq, uint32_t index); /* of that policy */
struct estimates scope_versus_estimates(const struct scope *, uint32_t seq);  /* of the window */
/* Writes the policy of `seq` and what differs from the other setting: "specbound tau=0.7"; *identical: nothing does. */
#define VERSUS_NAME_MOST (VERSUS_TEXT_MOST + 16)
void scope_versus_name(const struct scope *, uint32_t seq, char out[VERSUS_NAME_MOST], bool *identical);
/* The speed of 1 divided by that of 0 since the last change of either; UNKNOWN if they ran apart. */
struct comparison scope_versus_comparison(const struct scope *);
/* Compares the speeds in spans of the emitted text, as far as rounds are in memory. Spans have equal lengths, at least
 * SPAN_ROUNDS rounds of either sequence, and SPAN_SEGMENTS segments (estimate.h); a segment belongs to the span of its
 * first token. Returns their number, at most n; 0 if they ran apart. */
#define SPAN_ROUNDS   8
#define SPAN_SEGMENTS 4
#define SCOPE_SPANS   16 /* at most */
struct scope_span {
    uint32_t from, to;    /* emitted tokens, from 1, both inclusive */
    struct comparison of; /* the speed of 1 divided by that of 0 */
};
/* The verdicts of all spans hold together at 95%. */
uint32_t scope_versus_spans(const struct scope *, struct scope_span *, uint32_t n);
/* Writes up to n tokens from position `same` on; returns their number. */
uint32_t scope_versus_text(const struct scope *, uint32_t seq, token_t *, uint32_t n);

/* ---- rounds that meet a condition of :until ---- */

/* What meets a condition: the rejected or unsure draft, the spurious cell, else the round's first token. */
struct scope_place {
    uint32_t pos;
    int32_t layer; /* 0: none */
};
/* True if a complete round of the sequence in focus meets it, as a session decides it, except for layers that were not
 * probed. Sets *place then. */
bool scope_round_has(const struct scope *, const struct scope_round *, const struct until *, struct scope_place *place);
/* True if the newest round of the sequence meets it. */
bool scope_has_come(const struct scope *, uint32_t seq, const struct until *);
/* The first round after `number` that meets it, or the last one before; 0: none in memory. */
uint32_t scope_find_round(const struct scope *, const struct until *, uint32_t number, bool before,
                          struct scope_place *place);

/* ---- the record that forecasts are made from (engine/measure/layer_record.h), live and in a replay ---- */

/* Fills *out (of as many layers) with the newest consecutive committed positions of the sequence in focus at which all
 * layers were probed, by the current head. Returns NULL, or the reason why there are none: the text was sampled, or
 * layers were not probed. */
const char *scope_record(const struct scope *, struct layer_record *out);
