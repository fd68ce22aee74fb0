/* The result of scoring drafters on finished texts (docs/forecasts.md: Scoring finished texts): one row for each
 * setting of each drafter. `specscope score` prints it, the scope's panel and `plot score` draw it. As JSON it is a
 * file of its own. */
#pragma once

#include "base/file_replace.h"
#include "engine/measure/estimate.h"
#include "engine/measure/positions.h"
#include "engine/tune/preset.h"

struct cJSON;

#define SCORE_ENTRIES    96                  /* policies with their drafters: enough for 16 further draft models */
#define SCORE_ROWS       (SCORE_ENTRIES * 6) /* their settings, CANDIDATES_MOST of each */
#define SCORE_POSITIONS  16                  /* of the draft, shown */
#define SCORE_CATEGORIES 12                  /* further ones are counted as the last */
#define SCORE_DEPTHS     4
#define SCORE_SEQUENCES  7

/* The first position of each range of depths: 0, 1,024, 4,096, 16,384. An answer counts at the position at which it
 * begins. */
extern const uint32_t score_depths[SCORE_DEPTHS];
/* Numbers of sequences at a time: 1, 2, 4, … 64. */
extern const uint32_t score_sequences[SCORE_SEQUENCES];

struct score_part {            /* of all texts, of a category or of a depth */
    uint64_t tokens;           /* of answers; 0: there are none */
    struct estimate per_round; /* tokens per round; samples are conversations */
    struct comparison speedup; /* forecast × plain decoding, in time where costs are known, else by weights */
};

/* How the number of tokens per round is known. */
enum score_kind {
    SCORE_EXACT, /* it is that of a real run on these texts, if they are the model's own greedy ones */
    /* rounds depend on annealed confidences, on the length of wrong drafts, or on a draft vocabulary, which records
     * contain approximately */
    SCORE_ESTIMATED,
    SCORE_NOT /* the setting was not scored; `why` has the reason */
};

struct score_row {
    struct preset preset; /* the policy, and the setting with all knobs */
    char setting[256];    /* "k=4 topk=2": the knobs that differ from the policy's defaults */
    char drafter[64];     /* name of the draft model; "": the policy needs none */
    enum score_kind kind;
    char why[112];
    bool best; /* the fastest of the policy's settings with this drafter */
    struct score_part all, category[SCORE_CATEGORIES], depth[SCORE_DEPTHS];
    /* (SCORE_POSITIONS) share of tested drafts that are accepted, by position; NAN: no draft was tested */
    float accepted[SCORE_POSITIONS];
    float acceptance; /* over all positions: accepted ÷ tested drafts */
    /* With so many sequences at a time: forecast speedup, and the acceptance, equal at all positions, at which it is 1;
     * 1: never. NAN: costs are unknown. */
    float speedup_at[SCORE_SEQUENCES], need_at[SCORE_SEQUENCES];
};

struct score_report {
    char model[64], texts[256];
    uint32_t conversations, of; /* read so far, of all in the file */
    uint64_t answers, read;     /* tokens of answers; tokens that were read in all */
    double seconds, left_s;     /* left_s: NAN: unknown; 0: complete */
    bool stopped;               /* before the last text, by the user or the time */
    bool in_time;               /* speedups are in time */
    /* The share of compared tokens of answers that are the model's own greedy choice; n 0: none was compared */
    struct estimate own;
    uint32_t n_categories;
    char category[SCORE_CATEGORIES][32];
    uint32_t n;                       /* rows, */
    struct score_row row[SCORE_ROWS]; /* those of a policy and a drafter together, the best setting first */
};

#define SCORE_OWN 0.9 /* texts with a larger share of own tokens are called the model's own */

/* The order of the table: rows with `best` by descending speedup, then those not scored. Returns their number. */
uint32_t score_order(const struct score_report *, const struct score_row *out[SCORE_ROWS]);
/* Returns the largest number of sequences at which the setting clearly gains, with an interval that is as wide, relative
 * to the speedup, as that of one sequence; 0: none. */
uint32_t score_up_to(const struct score_row *);
/* "eagle smollm2-eagle": the policy and its drafter. Returns out. */
const char *score_drafter(const struct score_row *, char *out, size_t n);
/* "faster than plain decoding", "slower than …", "no clear difference", "one conversation has no interval";
 * why it was not scored. */
const char *score_verdict(const struct score_row *);
/* "100 conversations · 38412 tokens read · 21s left". Returns out. */
const char *score_progress(const struct score_report *, char *out, size_t n);
/* "98.4% of the answers' tokens are this model's own" or "…: not its own texts, so acceptance is a guess". */
const char *score_own_text(const struct score_report *, char *out, size_t n);

extern const struct file_kind score_json_file, score_csv_file;
struct cJSON *score_json(const struct score_report *); /* NULL: out of memory; the caller deletes it */
/* Reads a file with such JSON. *out is freed by the caller; NULL after a failure, with one line. */
bool score_read_file(const char *path, struct score_report **out, struct err *);
bool score_csv(const struct score_report *, FILE *); /* a line for each row, category and depth; false: out of memory */
