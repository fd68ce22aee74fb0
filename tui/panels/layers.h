/* The layers × tokens panel in four files: panel_layers.c (view state, cells, keys), layers_rows.c (which layers and
 * positions are shown), layers_experts.c (layers × experts, in place of the cells), layers_block.c (a block drafter's rows). The panel of the whole run shares
 * layers_beyond(). */
#pragma once

#include "tui/panels/panel.h"

#define LAYERS_ROWS      256 /* layers on the screen at most */
#define LAYERS_COLUMNS   512 /* positions on the screen at most */
#define LAYERS_LABEL     5   /* columns of a row's label */
#define LAYERS_BELOW     9   /* rows below the layers that can hold an opened cell */
#define LAYERS_WIDTH     8   /* most columns of a position at first */
#define LAYERS_MIN_WIDTH 4
#define LAYERS_MAX_WIDTH 24
/* With two heads, and from this width, the last columns show how often layers agree with the last one. */
#define LAYERS_SHARES      18
#define LAYERS_SHARES_FROM 64

enum layers_channel { SHOW_CONFIDENCE, SHOW_ENTROPY, SHOW_KL, SHOW_RANK, SHOW_CHANNELS };

struct layers_panel {
    enum layers_channel channel;
    int wider;     /* columns of a position have up to LAYERS_WIDTH + wider columns */
    uint32_t left; /* first position shown */
    bool placed;   /* the user chose `left`; otherwise it follows the newest position */
    bool popup;
    bool under;              /* shows the heat under grey cells */
    bool alone;              /* shows no auxiliary model's layers */
    bool experts;            /* shows layers × experts of a token, */
    bool load;               /* or how often each expert was chosen */
    int spare_y, spare_rows; /* empty rows below the layers, for the opened cell */

    /* As drawn last, for keys and the mouse. */
    int cols, lines;
    bool mono; /* the heat map has a column of its own */
    int n_rows;
    struct {
        /* companion, drafter, target; each model's deepest layer first. Of MODEL_BLOCK, `layer` is the draft's number in
         * the block, from 1, here and in the selection. */
        enum layer_model model;
        int layer, y;
    } row[LAYERS_ROWS];
    int edge_y[LAYER_MODELS]; /* the row below an auxiliary model's layers, with its name; -1: none */
    int line_y;               /* of the d_max line, -1: none */
    int n_columns;
    struct {
        uint32_t pos;
        int x, width;
    } column[LAYERS_COLUMNS];
};

/* Fills p's rows for `lines` rows from y on: the target's layers, above them those of auxiliary models if the policy
 * needs them or has used them for the shown positions. The target keeps at least half of the rows. */
void layers_fold(struct layers_panel *, const struct view *, int y, int lines);
/* The row of a layer, or of the next shown layer below it; the target's deepest if the model is not shown. */
int layers_row(const struct layers_panel *, enum layer_model, int layer);
/* Fills p's columns: up to the newest position, or from p->left, which it moves so that the selection is visible. */
void layers_columns(struct layers_panel *, const struct scope *, const struct selection *, int cols);

/* True if the position's token was drafted or committed by an earlier layer. */
bool layers_beyond(const struct scope *, const struct scope_column *, int layer);
/* True if the draft vocabulary lacks the layer's likeliest token: over it, another one was the likeliest. */
static inline bool
layers_lacked(const struct scope_cell *cell)
{
    return cell->draft_vocab > 0 && cell->draft_token != cell->token;
}
/* The token's rank in the cell: 0 is first; PREDICTION_TOP: after the listed ones; -1: unknown. */
int32_t layers_rank(const struct scope_cell *, token_t final);
/* "L16", "d4", "c6", "+3": a layer of the target, the draft model, the companion; the third draft of a block. */
const char *layers_name(enum layer_model, int layer, char out[16]);

/* Draws the first choices of a prediction with their probabilities. */
void layers_top(const struct scope *, const struct canvas *, const token_t top[PREDICTION_TOP],
                const float top_p[PREDICTION_TOP]);

/* The block shown is that of the cursor's round, or the newest one. layers_block_rows() returns the number of its
 * drafts, or the largest of the newest rounds; 0: none. The others draw the block's rows, a summary from
 * column x on, and the selected draft: in a line, or in an opened cell. */
int layers_block_rows(const struct view *);
void layers_block(const struct layers_panel *, const struct view *, const struct canvas *);
void layers_block_summary(const struct view *, const struct canvas *, int y, int x);
void layers_block_readout(const struct view *, const struct canvas *, int y);
void layers_block_popup(const struct view *, const struct canvas *);

/* Draws layers × experts; the rows' labels are already drawn. */
void layers_experts(struct layers_panel *, const struct view *, const struct canvas *);
uint32_t layers_experts_position(const struct view *); /* the position of the token whose experts are shown */
