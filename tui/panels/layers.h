/* What the files of the layers × tokens panel share: panel_layers.c (view state, keys), layers_fold.c (which layers are
 * shown), layers_columns.c (which positions), layers_draw.c (cells), layers_popup.c,
 * layers_experts.c. Of others the whole run asks layers_beyond() alone. */
#ifndef TUI_PANELS_LAYERS_H
#define TUI_PANELS_LAYERS_H

#include "tui/panels/panel.h"

#define LAYERS_ROWS    256 /* layers on the screen at most */
#define LAYERS_COLUMNS 512 /* positions on the screen at most */
/* Where there are two heads: cells at the right for how often layers agree with the last one, from so many columns. */
#define LAYERS_SHARES      18
#define LAYERS_SHARES_FROM 64
#define LAYERS_LABEL       5 /* columns of a row's label */
#define LAYERS_MIN_WIDTH   4
#define LAYERS_MAX_WIDTH   24

enum layers_channel { SHOW_CONFIDENCE, SHOW_ENTROPY, SHOW_KL, SHOW_RANK, SHOW_CHANNELS };

struct layers_panel {
    enum layers_channel channel;
    int max_width; /* of a column */
    uint32_t left; /* first position shown */
    bool placed;   /* `left` was chosen while the cursor was out; else it follows from the newest position */
    bool popup;
    bool under;              /* the heat under grey cells is shown */
    bool alone;              /* without the layers of models that help */
    bool experts;            /* of a mixture: layers × experts, of a token, */
    bool load;               /* or how often each was chosen */
    int spare_y, spare_rows; /* below the rows: room for the opened cell that hides nothing */

    /* As drawn last: what keys and mouse refer to. */
    int cols, lines;
    bool mono; /* heat takes a column of its own */
    int n_rows;
    struct {
        enum layer_model model; /* the companion's, the draft's, the target's, each model's deepest first */
        int layer, y;
    } row[LAYERS_ROWS];
    int edge_y[LAYER_MODELS]; /* below a helper's rows, with its name; -1: none */
    int line_y;               /* of the d_max line, -1: none */
    int n_columns;
    struct {
        uint32_t pos;
        int x, width;
    } column[LAYERS_COLUMNS];
};

/* ---- layers_fold.c ---- */

/* Chooses at most `rows` of the layers 1..layers: those of must[] (0 and -1 are passed over) first, then evenly of the
 * probed ones, then of the others. out: descending; returns how many. */
int layers_choose(int layers, int rows, const int *must, int n_must, const bool *probed, int *out);
/* Fills p's rows for a body of that many lines beginning at y: above the target's layers those of the models that help,
 * where the policy needs them or what they said is in view. The target keeps half of the lines at least. */
void layers_fold(struct layers_panel *, const struct view *, int y, int lines);
/* The row of a layer, or of the next one below it that is shown; the target's deepest where the model isn't shown. */
int layers_row(const struct layers_panel *, enum layer_model, int layer);

/* ---- layers_columns.c ---- */

/* Fills p's columns: up to the newest position, or from p->left, which it moves so that the selection is seen. */
void layers_columns(struct layers_panel *, const struct scope *, const struct selection *, int cols);
/* A token as a cell shows it: without its leading space. */
const char *layers_word(const struct scope *, token_t);
/* The layer whose exit a column's grey begins above; 0: none. */
int layers_exit(const struct scope_column *);
/* Is it a layer that the token left before? */
bool layers_beyond(const struct scope *, const struct scope_column *, int layer);
/* How the cell ranks a token: 0 is first; GUESS_TOP: beyond the ones listed; -1: not known. */
int32_t layers_rank(const struct scope_cell *, token_t final);

/* "L16", "d4", "c6": a layer of the target, the draft model, the companion. */
const char *layers_name(enum layer_model, int layer, char out[16]);

/* ---- layers_draw.c ---- */
void layers_draw(struct layers_panel *, const struct view *, const struct canvas *);

/* ---- layers_experts.c ---- */
/* Instead of the cells; labels are drawn. */
void layers_experts(struct layers_panel *, const struct view *, const struct canvas *);
uint32_t layers_experts_position(const struct view *); /* of the token whose experts are shown */

/* ---- layers_popup.c ---- */
#define LAYERS_POPUP 10 /* lines over the rows, */
#define LAYERS_BELOW 9  /* and below them */
void layers_popup(const struct layers_panel *, const struct view *, const struct canvas *);

#endif
