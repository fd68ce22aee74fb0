/* Findings about a machine, one line each, by topic. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/options/options.h"

enum finding_level {
    FINDING_OK,
    FINDING_NOTE, /* it works, and could be better */
    FINDING_BAD   /* something that the program does will fail */
};

struct finding {
    enum finding_level level;
    const char *topic; /* "terminal"; a constant */
    char text[600];    /* one printable line: the finding, and after "; " what to do, if anything */
};

#define FINDINGS_MOST 48

struct findings {
    struct finding at[FINDINGS_MOST]; /* in the order they were found */
    size_t n;
    int want; /* errno of a check that lacked memory, file descriptors or a readable disk; 0: none */
};

/* Adds a finding, or drops it after FINDINGS_MOST. Unprintable characters are escaped. Notes errno in `want` if it is
 * such an error, and sets it to 0. */
__attribute__((format(printf, 4, 5))) void doctor_add(struct findings *, enum finding_level, const char *topic,
                                                      const char *format, ...);

/* The topics. None writes anything, except a query to the terminal. */
void doctor_terminal(struct findings *);
void doctor_processor(struct findings *); /* instruction sets, processors that may be used, memory, huge pages */
void doctor_blas(struct findings *);
void doctor_servers(struct findings *); /* whether servers can be reached */
void doctor_gpu(struct findings *);
void doctor_models(struct findings *);
void doctor_files(struct findings *); /* config, presets, history, where traces go */
/* The model of the options: costs of its steps, and each policy's forecast with the reason where there is no gain. */
bool doctor_model(struct findings *, const struct options *, struct err *);
