#include "cli/partings.h"

#include <stdio.h>

#include "base/utf8.h"
#include "cli/generation/generation.h"
#include "engine/model/tokenizer/tokenizer.h"

bool
parting_engines_open(struct parting_engines *e, const struct options *given, struct err *err)
{
    struct options o = *given;
    o.command = COMMAND_SCOPE; /* which leaves notes to the caller */
    o.heads = o.accept_head = o.profile_file = "none";
    for (enum aux_role role = 0; role <= AUX_COMPANION; role++)
        o.aux[role] = "none";
    *e = (struct parting_engines){0};
    o.backend_options.exact = true;
    if (!generation_engine(&o, &e->exact, err))
        return false;
    o.backend_options.exact = false;
    o.quantize = true; /* rounding of 8 bits also for F32, F16 and BF16 weights: about that of an engine in BF16 */
    if (generation_engine(&o, &e->rounded, err))
        return true;
    parting_engines_close(e);
    return false;
}

void
parting_engines_close(struct parting_engines *e)
{
    engine_close(e->exact);
    engine_close(e->rounded);
    *e = (struct parting_engines){0};
}

static const char *
word(const struct parting_engines *e, token_t token, char out[64])
{
    const struct slice bytes = tokenizer_bytes(e->exact->model->tokenizer, token, true);
    printable_text(bytes.data, bytes.len < 24 ? bytes.len : 24, out, 64);
    return out;
}

const char *
parting_text(const struct divergence *d, const struct parting_engines *e, const char *const names[2], char *out,
             size_t n)
{
    char here[64], there[64];
    snprintf(out, n, "\"%s\" %s, \"%s\" %s; %.3f logits apart, up to %.3f below the best; bound %.3f: %s",
             word(e, d->here, here), names[0], word(e, d->there, there), names[1], (double)d->margin,
             (double)d->distance, (double)d->bound, divergence_names[d->verdict]);
    return out;
}

void
parting_json(cJSON *to, const struct divergence *d)
{
    json_number(to, "here", d->here);
    json_number(to, "there", d->there);
    json_number(to, "best", d->best);
    json_number(to, "margin", (double)d->margin);
    json_number(to, "below_best", (double)d->distance);
    json_number(to, "sigma", (double)d->sigma);
    json_number(to, "bound", (double)d->bound);
    json_number(to, "positions", d->rows);
    cJSON_AddStringToObject(to, "verdict", divergence_names[d->verdict]);
}
