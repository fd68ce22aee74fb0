/* Acceptance heads for a draft model of width 4: any bytes, and any bytes as a header of the right length before some
 * data. An accepted head has finite weights and can be evaluated and freed. */
#include <math.h>

#include "engine/model/model.h"
#include "engine/model/trained/accept_head.h"
#include "tests/fuzz/fuzz.h"

#define WIDTH      4
#define DATA_BYTES 1024

static void
use_file(const unsigned char *bytes, size_t len)
{
    struct model draft = {.desc = {.width = WIDTH}, .hash = 7};
    const struct accept_whose whose = {&draft, 0};
    struct accept_head *h;
    struct err err = {0};
    const float x[WIDTH] = {1, -0.5f, 0.25f, 2};
    struct accept_predictor *predictor;
    snprintf(draft.name, sizeof draft.name, "draft");
    if (!accept_head_parse(&h, "fuzz", bytes, len, &whose, &err)) {
        MUST(h == NULL && err.kind != ERR_NONE && err.text[0] != '\0');
        return;
    }
    MUST(h->width == WIDTH && h->n_blocks <= ACCEPT_HEAD_BLOCKS &&
         (h->draft_hash == 0 || (h->draft_hash == draft.hash && h->draft_layers == 0)));
    for (size_t i = 0; i < h->n_values; i++)
        MUST(isfinite(h->values[i]));
    MUST(accept_predictor_open(&predictor, h, 1, &err));
    const double p = accept_predictor_ask(predictor, x);
    accept_predictor_close(predictor);
    MUST(isnan(p) || (p >= 0 && p <= 1)); /* finite weights may overflow in between */
    MUST(strpbrk(h->draft, "\n\r\033") == NULL && strpbrk(h->target, "\n\r\033") == NULL);
    accept_head_free(h);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_as_safetensors(data, size, DATA_BYTES, use_file);
    return 0;
}

MUTATOR(mutate_json(data, size, max_size, seed));
