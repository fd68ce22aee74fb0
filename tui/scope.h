/* The view model: what is on screen, built from events alone. Bounded: a day-long run stays small; what is older is in
 * the trace. Positions are absolute positions in the sequence. */
#ifndef TUI_SCOPE_H
#define TUI_SCOPE_H

#include "engine/event.h"
#include "engine/metrics.h"
#include "engine/run_info.h"

#define SCOPE_COLUMNS 1024 /* positions kept with their layers */
#define SCOPE_ROUNDS  1024 /* rounds kept */
#define SCOPE_SERIES  2048 /* values kept of a series */

enum mouse_action { MOUSE_PRESS, MOUSE_DRAG, MOUSE_RELEASE, MOUSE_DOUBLE, MOUSE_WHEEL_UP, MOUSE_WHEEL_DOWN };

struct scope_cell { /* what a layer said about a position */
    bool known;
    uint8_t probed_by;
    token_t token;
    float confidence, annealed, entropy, kl_final;
    int32_t rank_final;
    token_t top[GUESS_TOP];
    float top_p[GUESS_TOP];
};

enum fate {
    FATE_NONE,
    FATE_PROMPT,
    FATE_PREFILL,
    FATE_GHOST /* drafted, not judged */,
    FATE_ACCEPTED,
    FATE_REJECTED,
    FATE_CORRECTION,
    FATE_BONUS
};

struct scope_column { /* a position */
    bool known;
    uint32_t pos, round;
    token_t token; /* the committed token; while drafting the draft's */
    enum fate fate;
    int32_t exit_layer; /* of the accepted draft; L for the target's own; -1 */
    float confidence;
    token_t rejected; /* a draft that was rejected here, TOKEN_NONE */
    int32_t rejected_exit;
    uint32_t rejected_round;
    token_t final;            /* what the last layer says; TOKEN_NONE while not known */
    struct scope_cell *cells; /* (L + 1), indexed by layer; cells[0] unused */
};

struct scope_round { /* one line of the rounds panel */
    struct round_event end;
    uint32_t number, run;
    uint64_t t_us;
    uint32_t first_pos; /* position of its first emitted token */
    uint32_t n_drafts;  /* drafts recorded below */
    struct {
        int16_t exit_layer;
        int8_t accepted;
        int8_t parent_is_chain;
    } drafts[64];
    int8_t last; /* SOURCE_CORRECTION, SOURCE_BONUS or -1 */
    bool whole;  /* its ROUND event came */
};

struct scope_series { /* of the current policy, one per declared series */
    const struct series *declared;
    uint64_t count; /* LINE, BAND, PHASE: values ever; the ring holds the last SCOPE_SERIES */
    struct {
        uint32_t round;
        float value;
        float value2;
    } * ring;
    float *latest; /* (rows * cols) the latest value of each index, NAN at first */
};

struct scope_token {
    uint32_t pos;
    token_t token;
    enum fate fate;
    int32_t exit_layer;
    float confidence;
    uint32_t round;
};

struct scope;

bool scope_open(struct scope **, const struct run_info *, struct err *); /* info is borrowed */
void scope_close(struct scope *);
void scope_reset(struct scope *);
void scope_event(struct scope *, const struct event *);
void scope_lost(struct scope *, uint64_t events); /* the log dropped some before they were seen */
uint64_t scope_version(const struct scope *);     /* changes with every event that can change the picture */

/* ---- reading ---- */
const struct run_info *scope_info(const struct scope *);
uint32_t scope_run(const struct scope *);
uint32_t scope_round_number(const struct scope *); /* of the last whole round */
bool scope_running(const struct scope *);
const char *scope_end(const struct scope *);                  /* "", "eos", "tokens", "context", "error: …" */
const struct policy_info *scope_policy(const struct scope *); /* the current one */
double scope_knob(const struct scope *, uint32_t index);      /* applied value of the current policy's knob */
const char *scope_probe(const struct scope *);
const struct metrics *scope_metrics(const struct scope *);
const struct progress_event *scope_progress(const struct scope *);             /* NULL when nothing is under way */
uint32_t scope_length(const struct scope *);                                   /* positions known, ghosts counted */
uint32_t scope_first(const struct scope *);                                    /* first position still kept */
const struct scope_column *scope_column(const struct scope *, uint32_t pos);   /* NULL: not kept */
uint32_t scope_rounds(const struct scope *);                                   /* kept */
const struct scope_round *scope_round(const struct scope *, uint32_t back);    /* 0: the newest */
const struct scope_series *scope_series(const struct scope *, uint32_t index); /* of the current policy */
/* A token's bytes made safe for the terminal (tui/text.h), memory of the scope; "" for TOKEN_NONE; "‹17›" if unknown. */
const char *scope_text(const struct scope *, token_t);
/* The raw bytes, for joining halves of a character. */
const char *scope_bytes(const struct scope *, token_t, uint32_t *n);
bool scope_spurious(const struct scope *, const struct scope_column *, int layer); /* METHODS §3 */

#endif
