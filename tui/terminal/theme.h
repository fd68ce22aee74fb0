/* A theme defines the look of each role in a JSON file (CONTRIBUTING.md has an example):
 *
 *     { "roles": { "text": {"fg": "#c8ccd4", "bg": "#16181d"}, "rejected": {"fg": "#e06c75", "strike": true}, … },
 *       "heat":  ["#000004", "#56106e", "#bb3754", "#f98c0a", "#fcffa4"] }
 *
 * Roles have the names of enum role (canvas.h), in small letters with '-'. Keys of a role: fg, bg, bold, dim,
 * underline, reverse, strike. Missing keys have their values in "text"; missing colours of "text" are the terminal's
 * own. "heat" is a scale from 0 to 1, interpolated between its stops; text on it is black or white, for the better
 * contrast. Its lightness only increases or only decreases: "more" is "lighter" or "darker". For terminals with fewer
 * colours "heat-256", "heat-16" and "heat-8" are colour numbers of these palettes; without them the nearest colours
 * that keep the order are used. */
#pragma once

#include "base/err.h"
#include "tui/terminal/canvas.h"

#define THEME_STOPS   16
#define THEME_NO_RGB  (-1) /* the terminal's own colour */
#define THEME_DEFAULT "dark"

enum theme_attribute { THEME_BOLD = 1, THEME_DIM = 2, THEME_UNDERLINE = 4, THEME_REVERSE = 8, THEME_STRIKE = 16 };

struct theme_style {
    int32_t fg, bg; /* 0xRRGGBB, or THEME_NO_RGB */
    uint8_t attributes;
};

enum theme_palette { THEME_256, THEME_16, THEME_8, THEME_PALETTES };

struct theme {
    char name[32];
    struct theme_style role[ROLES];
    int32_t heat[THEME_STOPS];
    int stops;   /* 0: no colours for heat */
    bool darker; /* more heat is darker, not lighter */
    struct {
        uint8_t number[THEME_STOPS];
        int n; /* 0: none chosen */
    } steps[THEME_PALETTES];
};

extern const struct role_form {
    const char *name;   /* in themes: "text", "knob-pending", … */
    uint8_t attributes; /* in the theme "mono", which needs no file: a terminal without colours must work without any */
} role_forms[ROLES];

/* Parses a theme; `name` is in errors and becomes the theme's name. */
bool theme_parse(struct theme *, const char *json, size_t n, const char *name, struct err *);
/* Loads a theme. A name with a '/' is a file; others are searched as NAME.json in $XDG_CONFIG_HOME/specscope/themes (or
 * ~/.config/…), then in data_dir/themes (data_dir may be NULL). The default theme is compiled in.
 * On failure *t is unchanged. */
bool theme_load(struct theme *t, const char *name, const char *data_dir, struct err *);
/* THEME_DEFAULT, compiled in. False: out of memory, and *t is mono. */
bool theme_builtin(struct theme *, struct err *);
void theme_mono(struct theme *); /* attributes only; for terminals without colours */
/* Lists the names that theme_load() finds, sorted, each once, at most max. Returns their number. */
int theme_list(char (*names)[32], int max, const char *data_dir);

int32_t theme_heat(const struct theme *, float fraction); /* 0xRRGGBB; THEME_NO_RGB without stops */

/* The colours and attributes of a cell, for the terminal (paint.h) and for saved pictures (grid.h). */

struct cell_style {
    int heat;            /* level of the scale with its colours; GRID_NO_HEAT: */
    enum role role;      /* of the role */
    enum role text;      /* of the text: bold text is as bright after the exit as elsewhere */
    bool ink;            /* the level's colour is the text's; the background is the role's */
    int upper;           /* the text has the background colour of this level; GRID_NO_HEAT: it has not */
    bool grey;           /* the text has the background colour of layers after the exit */
    unsigned attributes; /* a set of enum theme_attribute */
};

struct cell_style cell_style(const struct theme *, const struct grid_cell *);
