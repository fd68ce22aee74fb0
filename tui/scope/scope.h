/* The view model: what is on screen, built from events alone. Bounded: a day-long run stays small; what is older is in
 * the trace. Positions are absolute positions in the sequence. One thread. */
#ifndef TUI_SCOPE_SCOPE_H
#define TUI_SCOPE_SCOPE_H

#include "engine/events/event.h"
#include "engine/events/metrics.h"
#include "engine/events/run_info.h"
#include "engine/events/segments.h"

#define SCOPE_POSITIONS 32768 /* positions held with their tokens */
#define SCOPE_COLUMNS   1024  /* of these, the newest are held with what their layers said */
#define SCOPE_ROUNDS    1024  /* rounds held */
#define SCOPE_SERIES    2048  /* values held of a series */
#define SCOPE_BARS      256   /* cells at least that every series has, for forms without a declared size */

struct scope_cell { /* what a layer said about a position */
    bool known;
    bool compared, agreed; /* with the last layer, for scope_agreement() */
    uint8_t probed_by;     /* enum probed_by: who asked first */
    token_t token;
    float confidence, annealed, entropy, kl_final;
    int32_t rank_final;
    token_t top[GUESS_TOP];
    float top_p[GUESS_TOP];
};

enum fate {
    FATE_NONE, /* guessed at by layers, no token yet */
    FATE_PROMPT,
    FATE_PREFILL, /* the first token after the prompt */
    FATE_GHOST,   /* drafted, not judged */
    FATE_ACCEPTED,
    FATE_REJECTED, /* a correction stands there soon, or nothing when the next round begins */
    FATE_CORRECTION,
    FATE_BONUS
};

struct scope_column { /* a position */
    uint32_t pos, round;
    token_t token; /* the committed token; while drafting the main line's draft; TOKEN_NONE: none yet */
    enum fate fate;
    int32_t exit_layer; /* of the draft; L for the target's own; -1: not known */
    float confidence;   /* of the guess it came from; NAN: not known */
    token_t rejected;   /* the main line's draft that was rejected here, TOKEN_NONE */
    int32_t rejected_exit;
    token_t final;     /* what the last layer was heard to say; TOKEN_NONE: nothing */
    float threshold;   /* the policy's in that round; NAN: none */
    uint32_t siblings; /* further candidates at this position */
};

struct scope_draft { /* a candidate of a round's tree */
    uint32_t pos;
    token_t token;
    int32_t parent, candidate, exit_layer;
    float confidence;
    int8_t accepted, committed; /* -1: not judged yet */
    bool main_line;             /* the first child of the first child …; else a sibling */
};

#define SCOPE_DRAFTS (VERIFY_NODES - 1)
#define ROUND_OPEN   (-1) /* scope_round.last: nothing of the target's own yet */

struct scope_round {        /* one line of the rounds panel */
    struct round_event end; /* all zero until the round is whole */
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

struct scope_now {       /* what stands at the moment */
    uint64_t version;    /* changes with every event that can change the picture */
    uint64_t lost;       /* events that the log dropped */
    bool starved;        /* there was no memory for something that came: it is not shown */
    uint32_t epoch;      /* changes when what was committed is no longer true: reset, new run */
    uint32_t run, round; /* the last whole round's number */
    bool running;
    char end[200];      /* "", "eos", "tokens", "context", "error: …" */
    char probe[8];      /* "off", "policy", "all"; "" while not known */
    char device[160];   /* where the device's time goes; "" where nobody measures it */
    uint32_t length;    /* positions known; drafts, guesses, drafts just rejected counted */
    uint32_t committed; /* of these, the ones that stay */
    struct metrics metrics;
};

#define SCOPE_NOTES 64

struct scope_note { /* that a person wrote about a position of this run */
    uint32_t seq, pos;
    uint64_t t_us;  /* when */
    char text[256]; /* printable */
};

struct scope;

bool scope_open(struct scope **, const struct run_info *, struct err *); /* info is borrowed */
void scope_close(struct scope *);
void scope_reset(struct scope *); /* as if just opened */
/* It takes that one's place: who looked at that one sees that all is another. */
void scope_go_on(struct scope *, const struct scope *before);
void scope_event(struct scope *, const struct event *);
void scope_lost(struct scope *, uint64_t events); /* the log dropped some before they were seen */

/* ---- reading ---- */
const struct scope_now *scope_now(const struct scope *);
const struct run_info *scope_info(const struct scope *);      /* of two saved runs the one's in focus */
const struct policy_info *scope_policy(const struct scope *); /* the current one; never NULL */
double scope_knob(const struct scope *, uint32_t index);      /* applied value of the current policy's knob */
const struct sampling *scope_sampling(const struct scope *, uint64_t *seed); /* in force; seed may be NULL */
const char *scope_head(const struct scope *); /* that looks at layers: "lens", "trained"; "": there is only the lens */
uint32_t scope_notes(const struct scope *, const struct scope_note **); /* how many, by sequence and position */
const struct scope_note *scope_note_at(const struct scope *, uint32_t seq, uint32_t pos); /* NULL: there is none */
const struct progress_event *scope_progress(const struct scope *); /* NULL when nothing is under way */

uint32_t scope_first(const struct scope *);                                  /* first position that may still be held */
const struct scope_column *scope_column(const struct scope *, uint32_t pos); /* NULL: not held */
/* What the head in use said: (L + 1), indexed by layer, [0] unused; NULL: not held. */
const struct scope_cell *scope_cells(const struct scope *, uint32_t pos);
uint32_t scope_first_cells(const struct scope *); /* first position whose layers may still be held */
/* What is left of them, as far back as positions are held: (L) bytes as glimpses.h has them, layer l at l - 1. False: nothing
 * is known. */
bool scope_glimpse(const struct scope *, uint32_t pos, uint8_t *out);
/* How often a layer was probed in this run. */
uint64_t scope_probed(const struct scope *, uint32_t layer);
/* The share of positions of this run where a layer's first choice was the last layer's, by the lens or by its trained
 * head, among those where both were asked. NAN: none was. */
double scope_agreement(const struct scope *, uint32_t layer, bool trained);
void scope_show_head(struct scope *, bool trained); /* for replays: what scope_cells() gives, until the run says */
token_t scope_final(const struct scope *, const struct scope_column *); /* the last layer's; TOKEN_NONE: not known */
/* SpecBound's spurious confidence: a layer that is sure of a token (at temperature 1, by the threshold in force, 0.5 when the policy
 * has none) and wrong. */
bool scope_spurious(const struct scope *, uint32_t pos, uint32_t layer);

/* Where the current policy's drafts come from: by what it declares (a draft model, a mask of sublayers, nothing at all), and by the
 * drafts of the run so far. */
enum draft_origin { DRAFTS_NONE, DRAFTS_LAYERS, DRAFTS_SUBLAYERS, DRAFTS_ELSEWHERE };
enum draft_origin scope_draft_origin(const struct scope *);

/* ---- any model's layers: the target's, and those of the models that help ---- */
uint32_t scope_model_layers(const struct scope *, enum layer_model); /* 0: there is none with layers of its own */
const char *scope_model_name(const struct scope *, enum layer_model);
bool scope_model_used(const struct scope *, enum layer_model); /* the current policy needs it */
/* As scope_cells(), for the model's layers; as scope_probed(); as scope_agreement(), with the target's last layer, by the
 * head in use; the token of its own last layer. */
const struct scope_cell *scope_model_cells(const struct scope *, enum layer_model, uint32_t pos);
uint64_t scope_model_probed(const struct scope *, enum layer_model, uint32_t layer);
double scope_model_agreement(const struct scope *, enum layer_model, uint32_t layer);
token_t scope_model_final(const struct scope *, enum layer_model, const struct scope_column *);
/* As scope_spurious(): sure of a token, at least 0.5 for a model that helps, and it is not the target's. */
bool scope_model_spurious(const struct scope *, enum layer_model, uint32_t pos, uint32_t layer);

/* ---- experts, of a mixture ---- */

struct scope_experts {      /* where the row went that a layer's guess at a position was read from */
    uint32_t n;             /* 0: not known, or the layer has none */
    const uint16_t *expert; /* (n) by descending weight, from 0 */
    const float *weight;    /* (n) */
};

/* Experts of a layer that has any, and those that a row goes to (0: not known; may be NULL). 0: it is no mixture, or nobody says. */
uint32_t scope_expert_count(const struct scope *, uint32_t *used);
struct scope_experts scope_experts(const struct scope *, uint32_t pos, uint32_t layer);
/* Positions of this run that were told of at a layer, and those of them that went to an expert there. */
uint64_t scope_expert_rows(const struct scope *, uint32_t layer);
uint64_t scope_expert_chosen(const struct scope *, uint32_t layer, uint32_t expert);

/* The main line's drafts that were rejected last, until the next round begins. */
uint32_t scope_struck(const struct scope *, const struct scope_draft **out);
/* What the policy says last: the last whole round's own line; -1 or NAN: none. */
int32_t scope_exit_layer(const struct scope *);
int32_t scope_d_max(const struct scope *);

uint32_t scope_rounds(const struct scope *);                                   /* held, the open one counted */
const struct scope_round *scope_round(const struct scope *, uint32_t back);    /* 0: the newest; NULL: not held */
const struct scope_series *scope_series(const struct scope *, uint32_t index); /* of the current policy; NULL: none */
/* The first position that a round of that number, or a later one, emitted or drafts; now.length: there is none. */
uint32_t scope_round_position(const struct scope *, uint32_t round);
/* How many rounds back the newest round is whose number is `round` or less; scope_rounds(): all that are held are newer. */
uint32_t scope_round_back(const struct scope *, uint32_t round);
/* The next older and the next newer round that has tokens in the text, also where the round itself is not held any more; 0: none. */
uint32_t scope_round_before(const struct scope *, uint32_t round);
uint32_t scope_round_after(const struct scope *, uint32_t round);
/* Tokens a second of a round of all sequences; NAN: it is not held. */
double scope_round_tokens_per_s(const struct scope *, uint32_t round);
/* The values of a series in that round: (rows * cols; 2 of a PHASE; of BARS as many as `cells` says), NAN where there are none. Of a
 * series whose values are a round's (series_of_round) those reported in it, else those reported last up to it. NULL: they are not
 * held, the round was another policy's, or the series is a LINE or a BAND, which has a ring. */
const float *scope_round_values(const struct scope *, uint32_t index, uint32_t round);
const struct segments *scope_segments(const struct scope *); /* of all sequences */
/* A token's bytes made safe for the terminal (engine/base/printable.h), memory of the scope; "" for TOKEN_NONE; "‹17›" if unknown. */
const char *scope_text(const struct scope *, token_t);
/* The raw bytes, for joining halves of a character; of an unknown one those of "‹17›". NULL and 0: no token. */
const char *scope_bytes(const struct scope *, token_t, uint32_t *n);

#endif
