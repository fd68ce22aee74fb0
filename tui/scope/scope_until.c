#include "tui/scope/scope_until.h"

#include <string.h>

#include "tui/scope/glimpses.h"

#define LAYERS_MOST 4096

static bool
unsure(const struct scope_round *r, float below)
{
    for (uint32_t i = 0; i < r->n_drafts; i++)
        if (r->drafts[i].confidence < below)
            return true;
    return false;
}

static bool
spurious(const struct scope *s, const struct scope_round *r)
{
    uint8_t glimpse[LAYERS_MOST];
    const struct scope_column *c;
    for (uint32_t pos = r->first_pos; (c = scope_column(s, pos)) != NULL && pos < r->first_pos + r->end.emitted;
         pos++) {
        if (c->round != r->number || scope_info(s)->layers > LAYERS_MOST || !scope_glimpse(s, pos, glimpse))
            continue;
        for (uint32_t l = 1; l < scope_info(s)->layers; l++)
            if (glimpse_spurious(glimpse[l - 1]))
                return true;
    }
    return false;
}

/* The bytes of the round's tokens, and of those before them back to what the text can begin with. */
static bool
text_ends(const struct scope *s, const struct scope_round *r, const struct until *u)
{
    char bytes[4096];
    size_t n = 0, fresh = 0;
    const uint32_t end = r->first_pos + r->end.emitted;
    for (uint32_t pos = end; pos > 0 && (pos > r->first_pos || n < fresh + UNTIL_TEXT_MOST); pos--) {
        const struct scope_column *c = scope_column(s, pos - 1);
        uint32_t length = 0;
        const char *token = c != NULL ? scope_bytes(s, c->token, &length) : NULL;
        if (token == NULL || length > sizeof bytes - n)
            break;
        n += length;
        memcpy(bytes + sizeof bytes - n, token, length);
        fresh = pos > r->first_pos ? n : fresh;
    }
    return until_ends_text(u, bytes + sizeof bytes - n, n, fresh);
}

bool
scope_round_has(const struct scope *s, const struct scope_round *r, const struct until *u)
{
    if (!r->whole)
        return false;
    switch (u->kind) {
    case UNTIL_REJECT: return r->end.accepted < r->end.verified;
    case UNTIL_TEXT: return text_ends(s, r, u);
    case UNTIL_CONFIDENCE: return unsure(r, u->below);
    case UNTIL_SPURIOUS: return spurious(s, r);
    case UNTIL_ROUND: return r->number == u->round;
    case UNTIL_NOTHING: break;
    }
    return false;
}

uint32_t
scope_find_round(const struct scope *s, const struct until *u, uint32_t number, bool before)
{
    const struct scope_round *r;
    uint32_t found = 0;
    for (uint32_t back = 0; (r = scope_round(s, back)) != NULL && (before || r->number > number); back++) {
        if ((before && r->number >= number) || !scope_round_has(s, r, u))
            continue;
        found = r->number;
        if (before)
            break;
    }
    return found;
}
