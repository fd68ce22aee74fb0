/* A file of token counts: it is refused in one line, or its counts are of the vocabulary's tokens and order them. */
#include "engine/model/token_rank.h"
#include "tests/fuzz/fuzz.h"

#define TOKENS 300

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    uint64_t counts[TOKENS];
    token_t ids[TOKENS];
    bool seen[TOKENS] = {false};
    struct err err = {0};
    MUST(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (!token_counts_parse("fuzz", text, size, counts, TOKENS, &err)) {
        must_refuse(&err);
    } else {
        MUST(token_rank(NULL, TOKENS, counts, ids, &err));
        for (uint32_t i = 0; i < TOKENS; i++) {
            MUST(ids[i] >= 0 && ids[i] < TOKENS && !seen[ids[i]]);
            MUST(i == 0 || counts[ids[i]] <= counts[ids[i - 1]]);
            seen[ids[i]] = true;
        }
    }
    free(text);
    return 0;
}

MUTATOR(mutate_lines(data, size, max_size, seed));
