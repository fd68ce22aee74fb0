/* Segments: the rounds between two changes of settings (policy, knobs, head, sampling, or the start of a run). They
 * are built from events alone, so that a replay has the same segments as the run. Changes that take effect together,
 * with no round between them, begin one segment. A knob that returns to its value before any round ran has not
 * changed. All runs of a race are one segment. */
#pragma once

#include "engine/events/run_info.h"
#include "engine/events/settings.h"
#include "engine/measure/metrics.h"

#define SEGMENTS        256 /* stored; older ones are dropped */
#define SEGMENT_CHANGES 8   /* changes stored at the start of a segment */

struct segment_change {
    char name[24], before[32], after[32]; /* a knob's name, "policy", "head"; printable */
};

struct segment {
    uint32_t number;      /* from 0: A, B, … (segment_letter()) */
    uint32_t run, prompt; /* prompt: equal in segments of the same prompt */
    char cause[8];        /* "start", "restart", "prompt", "race" if a run begins with it, else "" */
    struct segment_change change[SEGMENT_CHANGES];
    uint32_t n_changes;
    uint32_t policy; /* index in run_info.policies; n_policies: unknown */
    double value[POLICY_KNOBS];
    char head[8];             /* "lens", "trained"; "": the model has only the lens */
    bool paced;               /* with a speed limit: rounds begin cold */
    uint32_t races;           /* runs of a race, of which it has the settings and sums of the last one; 0: no race */
    bool versus;              /* one of two settings that run side by side */
    uint32_t seq;             /* the setting's sequence; 0 without versus, for all sequences */
    struct sampling sampling; /* sampling; seed: that of the first sequence */
    uint64_t seed;
    uint32_t first_round;     /* the first round with these settings */
    uint64_t t_us;            /* time of its start, in its run */
    uint64_t before;          /* tokens of the run generated before it */
    struct tally total;       /* of all lines */
    struct estimate baseline; /* autoregressive tokens/s of the prompt; NAN: not measured */
    struct sliced sliced;     /* slices of it between the segment's rounds */
    enum lossless lossless;
    uint64_t compared; /* number of its tokens that were compared */

    struct round_sums sums; /* sums of complete rounds */
    struct tally joint;     /* the newest round, which may be incomplete */
    uint32_t joint_round;   /* its number */
};

struct segments;

bool segments_open(struct segments **, const struct run_info *, struct err *); /* info is borrowed */
void segments_close(struct segments *);
void segments_reset(struct segments *); /* to the state after opening */
/* Adds a CONTROL or ROUND event of any sequence; ignores other events. */
void segments_event(struct segments *, const struct event *);

uint32_t segments_held(const struct segments *);
const struct segment *segments_at(const struct segments *, uint32_t back);         /* 0: the newest; NULL: not stored */
const struct segment *segments_named(const struct segments *, const char *letter); /* "C"; NULL: not stored */
/* Returns the requested segment that begins with the next round and has no rounds yet; NULL: none. */
const struct segment *segments_coming(const struct segments *);

/* In a run of two settings, is it a segment of sequence `seq`? True in any other run. */
bool segment_concerns(const struct segment *, uint32_t seq);
/* Do both have the same policy, knobs, head and sampling? Knobs that only change random numbers or the pace are
 * ignored. */
bool segment_same_setting(const struct segment *, const struct segment *, const struct run_info *);
/* In a versus: selects the sequence whose setting the functions below return; the first one at the beginning. */
void segments_focus(struct segments *, uint32_t seq);
/* Returns the settings in force: its policy, value and head are valid. */
const struct segment *segments_now(const struct segments *);
/* Returns the text of a segment's prompt, valid as long as the segments; NULL: not recorded. */
const char *segments_prompt(const struct segments *, const struct segment *);
/* Returns the messages before it (struct control), likewise; NULL: none. */
const char *segments_before(const struct segments *, const struct segment *);

struct estimates segment_estimates(const struct segment *, const struct run_info *);
/* Returns the speed over autoregressive decoding's, by slices between the segment's rounds. With too few of them it is
 * tokens/s over a baseline of the prompt that was measured at another time, so its standard error is unknown. NAN if
 * there is no baseline. */
struct estimate segment_speedup(const struct segment *, const struct run_info *);
/* Writes "A" to "Z", "AA", … */
void segment_letter(uint32_t number, char out[8]);
/* Writes what changed: "τ 0.7", with `arrows` "τ 0.55→0.7"; "layerskip", "start", "again", "new prompt". */
void segment_text(const struct segment *, const struct run_info *, bool arrows, char *out, size_t n);
