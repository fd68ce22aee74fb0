/* Acceptance by position of the prompts of a file, in all and by category, as a table and as JSON. */
#ifndef CLI_GENERATION_ACCEPTANCE_H
#define CLI_GENERATION_ACCEPTANCE_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "cli/generation/generation.h"
#include "engine/tune/results.h"

struct acceptance_part {
    const char *category; /* borrowed; NULL: all prompts */
    uint64_t prompts;
    struct tally total; /* without `shared`: a batch has no modelled speedup here */
    struct positions positions;
};

struct acceptance {                    /* zeroed: no prompts */
    struct acceptance_part all, *part; /* (n_parts) by category, in the order of their first prompts; owned */
    size_t n_parts;
};

/* Adds a prompt; its category may be NULL or "" (none). False: out of memory. */
bool acceptance_add(struct acceptance *, const char *category, const struct outcome_text *of_a_prompt);
void acceptance_free(struct acceptance *);

/* Print the heading of the table, and rows with the rates of the first POSITIONS_SHOWN positions, in all and of each
 * category of several prompts; nothing if no draft was tested. In ASCII if the user's locale asks for it. */
void acceptance_print_title(FILE *);
void acceptance_print(FILE *, const char *name, const struct acceptance *);

/* Writes the line of a category: as `whole`, that of all prompts, without the measures that need a comparison. */
void acceptance_csv(FILE *, const struct result *whole, const struct acceptance_part *);

/* Adds "positions": [{tested, accepted, conditional, …}], "reject_ranks": [of rank 1, 2, …], "reject_later". */
void acceptance_positions_json(cJSON *to, const struct positions *);
/* Adds "categories": [{category, prompts, rounds, tokens_per_round, positions, …}], unless there are none. */
void acceptance_categories_json(cJSON *to, const struct acceptance *);

#endif
