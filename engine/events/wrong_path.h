/* Confidences of layers after a wrong draft, collected from the events of one sequence. Drafts that follow a rejected draft continue a
 * text that the target did not write, so a layer record (layer_record.h) has no words for them. Simulated rounds need them to decide
 * how long drafting continues (docs/methods.md: What-if). */
#ifndef ENGINE_EVENTS_WRONG_PATH_H
#define ENGINE_EVENTS_WRONG_PATH_H

#include "engine/events/event.h"
#include "engine/events/layer_record.h"

#define WRONG_PATH_WORDS 512 /* of the latest wrong paths */
#define WRONG_PATH_ROUND 512 /* of the round under way, at most: further ones are not counted */

struct wrong_path_word {
    uint32_t pos, layer;
    float confidence; /* at temperature 1 */
};

struct wrong_paths {
    uint32_t n_words, oldest;
    struct wrong_path_word words[WRONG_PATH_WORDS]; /* (n_words) a ring */
    uint32_t n_round, correction;                   /* correction: its position in this round, 0: none came yet */
    struct wrong_path_word round[WRONG_PATH_ROUND]; /* (n_round) what the policy asked in this round */
};

/* Takes an event of the sequence. The order of events within a round does not matter. */
void wrong_paths_event(struct wrong_paths *, const struct event *);
void wrong_paths_reset(struct wrong_paths *); /* no words */
/* Sets record->lost and lost_se from the words (docs/methods.md: What-if). Without words they are the prior's. */
void wrong_paths_estimate(const struct wrong_paths *, struct layer_record *);

#endif
