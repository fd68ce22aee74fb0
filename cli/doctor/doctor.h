/* What a machine has for this program, found out by looking: findings, a line each, gathered topic by topic. */
#ifndef CLI_DOCTOR_DOCTOR_H
#define CLI_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

enum finding_level {
    FINDING_OK,
    FINDING_NOTE, /* it works, and could be better */
    FINDING_BAD   /* something that the program does will fail */
};

struct finding {
    enum finding_level level;
    char topic[16]; /* "terminal" */
    char what[400]; /* one line, printable */
    char fix[200];  /* what to do about it; "": nothing */
};

#define FINDINGS_MOST 48

struct findings {
    struct finding at[FINDINGS_MOST]; /* in the order they were found */
    size_t n;
    int want; /* errno of what could not be looked at for want of memory, of files, of a disk that can be read; 0: nothing */
};

/* One more; those beyond FINDINGS_MOST are dropped. `fix` may be NULL. Bytes of files and variables may be in it: what is
 * not printable is escaped. What errno says of the last call that failed counts for `want`; it is 0 afterwards. Returns the finding, for doctor_fix(), or NULL. */
__attribute__((format(printf, 5, 6))) struct finding *
doctor_say(struct findings *, enum finding_level, const char *topic, const char *fix, const char *format, ...);
/* A fix that has to be put together. */
__attribute__((format(printf, 2, 3))) void doctor_fix(struct finding *, const char *format, ...);
/* The message of a struct err: "what; what to do". */
void doctor_say_message(struct findings *, enum finding_level, const char *topic, const char *message);
size_t doctor_count(const struct findings *, enum finding_level);

/* The topics, a file each. None writes anything, but for the question that a terminal is asked. */
void doctor_terminal(struct findings *);
void doctor_processor(struct findings *); /* instruction sets, processors that may be used, memory, huge pages */
void doctor_blas(struct findings *);
void doctor_gpu(struct findings *);
void doctor_models(struct findings *);
void doctor_files(struct findings *); /* config, presets, history, where traces go */

#endif
