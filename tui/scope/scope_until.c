#include "tui/scope/scope_until.h"

#include <string.h>

#include "tui/scope/scope_internal.h"

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
spurious(const struct scope *s, const struct scope_sequence *q, const struct scope_round *r)
{
    uint8_t glimpse[LAYERS_MOST];
    const struct scope_column *c;
    for (uint32_t pos = r->first_pos; (c = sequence_column(q, pos)) != NULL && pos < r->first_pos + r->end.emitted;
         pos++) {
        if (c->round != r->number || s->info->layers > LAYERS_MOST || !scope_glimpse_of(s, q, pos, glimpse))
            continue;
        for (uint32_t l = 1; l < s->info->layers; l++)
            if (glimpse_spurious(glimpse[l - 1]))
                return true;
    }
    return false;
}

/* The bytes of the round's tokens, and of those before them back to what the text can begin with. */
static bool
text_ends(const struct scope *s, const struct scope_sequence *q, const struct scope_round *r, const struct until *u)
{
    char bytes[4096];
    size_t n = 0, fresh = 0;
    const uint32_t end = r->first_pos + r->end.emitted;
    for (uint32_t pos = end; pos > 0 && (pos > r->first_pos || n < fresh + UNTIL_TEXT_MOST); pos--) {
        const struct scope_column *c = sequence_column(q, pos - 1);
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

static bool
round_has(const struct scope *s, const struct scope_sequence *q, const struct scope_round *r, const struct until *u)
{
    if (!r->whole)
        return false;
    switch (u->kind) {
    case UNTIL_REJECT: return r->end.accepted < r->end.verified;
    case UNTIL_TEXT: return text_ends(s, q, r, u);
    case UNTIL_CONFIDENCE: return unsure(r, u->below);
    case UNTIL_SPURIOUS: return spurious(s, q, r);
    case UNTIL_ROUND: return r->number == u->round;
    case UNTIL_NOTHING: break;
    }
    return false;
}

bool
scope_round_has(const struct scope *s, const struct scope_round *r, const struct until *u)
{
    return round_has(s, s->focus, r, u);
}

bool
scope_has_come(const struct scope *s, uint32_t seq, const struct until *u)
{
    for (uint32_t i = 0; i < s->n_members; i++) {
        const struct scope_sequence *q = s->members[i]->held;
        if (s->members[i]->tile.seq == seq && q != NULL && sequence_rounds(q) > 0)
            return round_has(s, q, sequence_round(q, 0), u);
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
