/* Shared code of the tests of the event log and of traces: a fake run, and random event streams in the order that
 * event.h describes. */
#pragma once

#include "engine/events/event.h"
#include "engine/events/run_info.h"

#define FAKE_LAYERS  6
#define FAKE_DRAFT   2 /* layers of the draft model */
#define FAKE_BLOCK   3 /* layers of the block drafter */
#define FAKE_EXPERTS 40
#define FAKE_USED    3
#define FAKE_CTX     512
#define FAKE_VOCAB   300

/* Fills in values that a file format could easily corrupt; run_info_free() frees what the run owns. */
void fake_run(struct run_info *);

struct stream {
    struct event *events; /* (n), numbered from 1 */
    size_t n, max;
    char **texts; /* the strings that events point to; owned */
    size_t n_texts, max_texts;
    uint64_t random;
    uint64_t t_us;
    uint32_t run, round, seq; /* of the next event that is added */
    uint64_t rounds;          /* rounds in the stream; a round of a batch counts once for all its sequences */
};

void stream_begin(struct stream *, uint64_t seed);
void stream_free(struct stream *);
uint32_t stream_below(struct stream *, uint32_t n); /* returns a random number below n */
struct event *stream_add(struct stream *, enum event_type);
void stream_start_run(struct stream *); /* adds controls, prompt and prefill */
void stream_round(struct stream *);     /* adds a round; some are cut short, some have unverified drafts */
#define STREAM_BATCH 16
/* Adds a round of n sequences, at most STREAM_BATCH, with their drafts interleaved. */
void stream_batch_round(struct stream *, const uint32_t *seqs, uint32_t n);
/* Adds a run of `prompts` prompts, at_a_time of them at a time; sequences join and leave at random. */
void stream_batch(struct stream *, uint32_t at_a_time, uint32_t prompts);
void stream_control(struct stream *, const char *name, const char *new_text);
/* Adds two or three runs of a few rounds each, with their ends. */
void stream_fill(struct stream *);

/* Returns whether a reader of a trace must return the event: true for all types but EVENT_PROGRESS. */
bool stream_is_traced(const struct event *);

/* Asserts with cmocka that every member is equal, floats bit by bit. Skips the members that a trace does not store: a
 * verdict's time and a vocab event's round. */
void assert_same_event(const struct event *expected, const struct event *got);
