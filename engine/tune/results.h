/* Results of a policy at a point of its knobs, from a benchmark or a sweep, and the list of columns that tables and
 * CSV files share. */
#ifndef ENGINE_TUNE_RESULTS_H
#define ENGINE_TUNE_RESULTS_H

#include <math.h>
#include <stdio.h>

#include "base/file_replace.h"
#include "engine/measure/metrics.h"
#include "engine/measure/positions.h"

struct result {
    const char *policy, *params; /* "exit_layer=3 gamma=5" */
    const struct tally *total;
    struct measures m;
    double speedup, speedup_all_in; /* over autoregressive decoding of the same prompts; NAN: not measured */
    double speedup_se, speed_se;    /* NAN: unknown */
    double samples;                 /* number of samples: passes of a benchmark or of a sweep; NAN: none */
    struct comparison interval;     /* 95% interval of the speedup */
    double ratio;                   /* measured over modelled speedup; NAN: not known */
    const char *lossless;           /* "yes", "NO", "sampled", "-" */
    const char *model, *machine;
    const char *category;              /* of the prompts that it is about; NULL: all */
    const struct positions *positions; /* acceptance by position; NULL: not counted */
};

/* Initialisers of a result whose speed was not compared. */
#define RESULT_WITHOUT_SPEED                                                                                           \
    .samples = NAN, .speedup = NAN, .speedup_all_in = NAN, .speedup_se = NAN, .speed_se = NAN,                         \
    .interval = {.low = NAN, .high = NAN}, .ratio = NAN

enum result_shown { SHOWN_FILES, SHOWN_WIDE, SHOWN }; /* in CSV only; also in a wide table; in every table */
enum { RESULT_COLUMNS = 23 };

struct result_column {
    const char *title, *csv, *format;
    size_t at; /* of the value, a double, in struct result */
    enum result_shown shown;
};
extern const struct result_column result_columns[RESULT_COLUMNS];
double result_value(const struct result *, int column);

extern const struct file_kind results_csv_file;
/* Write RFC 4180: the header, and one line per result. Errors are those of the stream. */
/* Writes a quoted field. */
void results_csv_text(FILE *, const char *text);
void results_csv_head(FILE *);
void results_csv_line(FILE *, const struct result *);

#endif
