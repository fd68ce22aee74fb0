/* Results of a policy at a point of its knobs, of a benchmark or of a sweep, and the one list of columns that tables and CSV
 * files have of them. */
#ifndef ENGINE_EVENTS_RESULTS_H
#define ENGINE_EVENTS_RESULTS_H

#include <stdio.h>

#include "engine/base/file_replace.h"
#include "engine/events/metrics.h"

struct result {
    const char *policy, *params; /* "exit_layer=3 gamma=5" */
    const struct tally *total;
    struct measures m;
    double speedup, speedup_all_in; /* against autoregressive decoding of the same prompts; NAN: not measured */
    double speedup_se, speed_se;    /* NAN: not known */
    uint64_t samples;               /* of these: passes of a benchmark, or rounds */
    struct comparison interval;     /* the speedup's 95% */
    double ratio;                   /* likewise; measured over modelled */
    const char *lossless;           /* "yes", "NO", "sampled", "-" */
    const char *model, *machine;
};

enum result_shown { SHOWN_FILES, SHOWN_WIDE, SHOWN }; /* in CSV only; in a table that has room, too; in every table */
enum { RESULT_COLUMNS = 23 };

struct result_column {
    const char *title, *csv, *format;
    double (*value)(const struct result *);
    enum result_shown shown;
};
extern const struct result_column result_columns[RESULT_COLUMNS];

extern const struct file_kind results_csv_file;
/* RFC 4180: the head, and a line a result. Errors are the stream's. */
void results_csv_head(FILE *);
void results_csv_line(FILE *, const struct result *);

#endif
