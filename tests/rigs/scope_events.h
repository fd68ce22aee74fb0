/* Shared code of the tests of the scope and its panels: a simulated decoder whose events are consistent like a
 * session's, and assertions that compare scopes through their public functions. */
#pragma once

#include "engine/scope/scope.h"
#include "tests/rigs/trace_events.h"

/* Describes fake_run() with a third policy, "forms", which declares a series of every form, and with `layers`
 * layers. */
void fake_forms_run(struct run_info *, uint32_t layers);

struct decoder {
    struct stream *stream;
    const struct run_info *info;
    uint32_t length; /* tokens committed */
    bool trees;      /* drafts with siblings */
    bool probe_all;
    bool block;       /* the policy's predictions include a block of as many positions as drafts, and one more */
    bool draft_model; /* the policy's predictions include its last layer's, the scope's include all its layers' */
};

/* Adds the vocabulary, which includes halves of characters, line breaks, wide and forbidden characters, and a run's
 * prefill. */
void decode_begin(struct decoder *, struct stream *, const struct run_info *, uint32_t prompt);
void decode_round(struct decoder *);
void decode_report(struct decoder *, const char *key, int index, float value);

/* Single events, for streams written by hand. The returned pointer is valid until the next event is added. */
struct event *say_token(struct stream *, enum token_source, uint32_t pos, token_t);
struct event *say_draft(struct stream *, uint32_t pos, int candidate, int parent, token_t, int exit_layer);
void say_verdict(struct stream *, int candidate, bool accepted, bool committed);
struct event *say_layer(struct stream *, uint32_t pos, int layer, token_t, float confidence);
/* Adds a prediction of a layer of the draft model; fake_run() has FAKE_DRAFT of them. */
struct event *say_draft_layer(struct stream *, uint32_t pos, int layer, token_t, float confidence);
/* Adds a prediction of the block drafter's last layer, without (head 0) or with (1) the Markov head's bias. */
struct event *say_block(struct stream *, uint32_t pos, int head, token_t token, float confidence);
void say_vocab(struct stream *, token_t, const char *bytes, size_t n);
struct event *say_round(struct stream *, uint32_t verified, uint32_t accepted, uint32_t emitted);

void feed(struct scope *, const struct stream *, size_t from); /* feeds the events from index `from` on */
/* The first compares the data of the sequence in focus, the second all data. */
void assert_same_sequence(const struct scope *, const struct scope *);
void assert_same_scope(const struct scope *, const struct scope *);
