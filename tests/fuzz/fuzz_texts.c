/* Finished conversations: of whatever is accepted, every exchange has a prompt and an answer, and the messages before
 * it are a JSON list. */
#include "base/json_read.h"
#include "engine/scoring/texts.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct texts t;
    struct err err = {0};
    if (!texts_parse(&t, (const char *)data, size, "texts", &err)) {
        must_refuse(&err);
        return 0;
    }
    MUST(t.n > 0 && t.piece == NULL);
    for (size_t i = 0; i < t.n; i++) {
        const struct conversation *c = &t.at[i];
        MUST(c->n > 0 && memchr(c->category, '\0', sizeof c->category) != NULL);
        for (uint32_t k = 0; k < c->n; k++) {
            const struct exchange *e = &c->exchange[k];
            cJSON *before = NULL;
            MUST(e->prompt[0] != '\0' && e->answer[0] != '\0' && e->ids == NULL);
            MUST(e->before == NULL || (json_read(&before, e->before, strlen(e->before)) && cJSON_IsArray(before)));
            cJSON_Delete(before);
        }
    }
    texts_free(&t);
    return 0;
}

MUTATOR(seed % 4 == 0 ? mutate_lines(data, size, max_size, seed) : mutate_json(data, size, max_size, seed));
