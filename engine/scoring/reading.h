/* Reads finished texts with a model and its drafters, and fills layer records with the predictions that greedy rounds
 * on such a text use (engine/measure/layer_record.h). Greedy drafts before the first wrong one depend on the committed
 * text alone, so one pass over the text gives the accepted length of every draft at every position:
 *
 *   layers           the target reads the text as a prompt; all layers are probed at the rows of answers
 *   draft models     read the text as a prompt; the first choice after each row
 *   feature drafters EAGLE-3 heads and layers for multi-token prediction read the text with the target's features. From
 *                    each row of an answer a chain is drafted as long as it equals the text, in forks of many rows
 *   block drafters   read it, too. From each row of an answer a whole block is drafted, without and with the bias of
 *                    the Markov head: two drafters of records
 *
 * The text is the truth: a prediction agrees if it is the text's next token. Bits are those of runs. */
#pragma once

#include "engine/measure/layer_record.h"
#include "engine/session/engine.h"

#define READING_ROWS   1024                             /* most tokens of a part; longer answers are read in parts */
#define READING_RECORD (READING_ROWS + RECORD_LEAD + 1) /* rows of a record at most */
#define READING_CHAIN  32                               /* most drafts of a chain */
#define READING_DRAFTS 21 /* the engine's and 16 further draft models, four feature drafters */
#define READING_PARTS  8  /* whose records are kept at a time */

struct reading_options {
    uint32_t ctx;         /* positions of a text at most */
    bool lens, trained;   /* probe all layers with the logit lens, with trained heads */
    uint32_t draft_vocab; /* the lens' probes are over a draft vocabulary with this base, and the tokens of the text; 0:
                             over all tokens */
    const struct engine_draft *drafts; /* (n_drafts) further draft models; borrowed */
    uint32_t n_drafts;
    const atomic_bool *cancel; /* or NULL */
};

struct reading_drafter {
    enum aux_role role; /* AUX_DRAFT, AUX_EAGLE, AUX_BLOCK, AUX_MTP */
    bool markov;        /* a block drafter with the bias of its Markov head; without it, it is another drafter */
    char name[64];
    int32_t draft; /* index in the options' drafts; -1: the engine's own. self:E needs the lens */
};

/* What was read of a part: rows, text, and cells of the head. Without probes of a head its layers agree and are
 * certain; `trained` is empty then. A record for a drafter is a copy with `draft` replaced by that of the drafter. The
 * reading owns all memory. */
struct reading_records {
    struct layer_record lens, trained;
    struct record_drafter draft[READING_DRAFTS]; /* (n_drafters) */
};

struct reading {
    struct reading_records part[READING_PARTS];
    struct reading_drafter drafter[READING_DRAFTS]; /* (n_drafters) */
    uint32_t n_drafters;
    uint64_t compared, own; /* tokens of answers compared with the target's own greedy choice, and equal ones */
    uint64_t read;          /* tokens that the target or the drafters have read */
    struct reading_state *state;
};

/* Opens contexts of its own on the engine, whose sessions must rest while it reads. */
bool reading_open(struct reading **, struct engine *, const struct reading_options *, struct err *);
void reading_close(struct reading *); /* NULL does nothing */
/* Reads text[from..n), 0 < from < n <= from + READING_ROWS, into part[i]. `first`: the part begins an answer
 * (record->from_prompt): text[from] is the token that the prefill of a run emits, so simulated rounds emit those after
 * it. Else the part continues the one before, and rounds emit text[from], too. Rows that the text shares with the one
 * read before are not read again, except for the record's. `compare`: the target's last layer is compared with the
 * text, over all tokens. Fails if the text is longer than `ctx` or a model cannot compute it; ERR_CANCELLED. After that
 * it can only be closed. With draft_vocab, forecasts of drafts by the layers that the lens reads have this value of the
 * knob only (record->cells_base). */
bool reading_part(struct reading *, uint32_t i, const token_t *text, uint32_t n, uint32_t from, bool first,
                  bool compare, struct err *);
