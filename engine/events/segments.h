/* Segments: the rounds between two changes of settings (policy, knobs, head, sampling; what began a run), from events alone, so
 * that a replay has them as the run had. What turns take effect together, with no round between them, begins one
 * segment; a knob that is back where it was before any round ran has not changed. */
#ifndef ENGINE_EVENTS_SEGMENTS_H
#define ENGINE_EVENTS_SEGMENTS_H

#include "engine/events/metrics.h"
#include "engine/events/run_info.h"
#include "engine/events/settings.h"

#define SEGMENTS        256 /* held; older ones are forgotten */
#define SEGMENT_CHANGES 8   /* held of what one begins with */

struct segment_change {
    char name[24], before[32], after[32]; /* a knob's name, "policy", "head"; printable */
};

struct segment {
    uint32_t number;      /* from 0: A, B, … (segment_letter()) */
    uint32_t run, prompt; /* prompt: segments of the same one have the same */
    char cause[8];        /* "start", "restart", "prompt" where a run begins with it, else "" */
    struct segment_change change[SEGMENT_CHANGES];
    uint32_t n_changes;
    uint32_t policy; /* index in run_info.policies; n_policies: unknown */
    double value[POLICY_KNOBS];
    char head[8];             /* "lens", "trained"; "": there is only the lens */
    bool paced;               /* slowed down: rounds begin cold */
    bool versus;              /* one of two settings that ran beside each other: */
    uint32_t seq;             /* that sequence's; else 0, and of all */
    struct sampling sampling; /* and the first sequence's seed */
    uint64_t seed;
    uint32_t first_round;     /* that ran with it; */
    uint64_t t_us;            /* when it began, in its run; */
    uint64_t before;          /* and how many tokens of the run were generated then */
    struct tally total;       /* of all lines */
    struct estimate baseline; /* autoregressive tokens/s of the prompt; NAN: not measured */
    enum lossless lossless;
    uint64_t compared; /* tokens of it that the verdict is about */

    struct round_sums sums; /* of whole rounds; */
    struct tally joint;     /* the newest, whose other lines may still come, */
    uint32_t joint_round;   /* and its number */
};

struct segments;

bool segments_open(struct segments **, const struct run_info *, struct err *); /* info is borrowed */
void segments_close(struct segments *);
void segments_reset(struct segments *); /* as if just opened */
/* CONTROL and ROUND events, of all sequences; others are passed over. */
void segments_event(struct segments *, const struct event *);

uint32_t segments_held(const struct segments *);
const struct segment *segments_at(const struct segments *, uint32_t back);         /* 0: the newest; NULL: not held */
const struct segment *segments_named(const struct segments *, const char *letter); /* "C"; NULL: not held */
/* What is asked for and begins with the next round, without rounds of its own yet; NULL: nothing. */
const struct segment *segments_coming(const struct segments *);

/* Of a run of two settings only that sequence's segments, of any other all of them. */
bool segment_concerns(const struct segment *, uint32_t seq);
/* Do both have the same policy, knobs, head and sampling? What only draws random numbers or the pace does not count. */
bool segment_same_setting(const struct segment *, const struct segment *, const struct run_info *);
/* In a versus: which sequence's setting the following are about; the first's at the beginning. */
void segments_focus(struct segments *, uint32_t seq);
/* The settings in force: policy, value and head of it. */
const struct segment *segments_now(const struct segments *);
double segments_value(const struct segments *, uint32_t policy, uint32_t knob); /* in force, of any policy */
/* The text of a segment's prompt, which lives as long as the segments; NULL: it was never told. */
const char *segments_prompt(const struct segments *, const struct segment *);

struct estimates segment_estimates(const struct segment *, const struct run_info *);
/* tokens/s over the baseline's of the same prompt; NAN where none was measured. */
struct estimate segment_speedup(const struct segment *, const struct run_info *);
/* "A" to "Z", "AA", … */
void segment_letter(uint32_t number, char out[8]);
/* What changed: "τ 0.7", with `arrows` "τ 0.55→0.7"; "layerskip", "start", "again", "new prompt". */
void segment_text(const struct segment *, const struct run_info *, bool arrows, char *out, size_t n);

#endif
