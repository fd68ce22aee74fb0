/* Notes about positions: what a person wrote beside the text, as events say it. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/printable.h"
#include "tui/scope/scope_internal.h"

/* "POSITION TEXT"; one at a position of a sequence, the latest; without a text it is taken back. */
void
scope_note_event(struct scope *s, const struct event *e)
{
    char *text = NULL;
    const unsigned long pos = strtoul(e->control.new_text, &text, 10);
    uint32_t i = 0;
    if (text == e->control.new_text || pos >= UINT32_MAX)
        return;
    while (i < s->n_notes && (s->notes[i].seq < e->seq || (s->notes[i].seq == e->seq && s->notes[i].pos < pos)))
        i++;
    const bool there = i < s->n_notes && s->notes[i].seq == e->seq && s->notes[i].pos == pos;
    text += text[0] == ' ';
    if (there && text[0] == '\0') {
        s->n_notes--;
        memmove(&s->notes[i], &s->notes[i + 1], (s->n_notes - i) * sizeof s->notes[0]);
        return;
    }
    if (text[0] == '\0' || (!there && s->n_notes == SCOPE_NOTES))
        return;
    if (!there) {
        memmove(&s->notes[i + 1], &s->notes[i], (s->n_notes - i) * sizeof s->notes[0]);
        s->n_notes++;
    }
    s->notes[i] = (struct scope_note){.seq = e->seq, .pos = (uint32_t)pos, .t_us = e->t_us};
    printable_text(text, strnlen(text, sizeof s->notes[i].text), s->notes[i].text, sizeof s->notes[i].text);
}

uint32_t
scope_notes(const struct scope *s, const struct scope_note **out)
{
    *out = s->notes;
    return s->n_notes;
}

const struct scope_note *
scope_note_at(const struct scope *s, uint32_t seq, uint32_t pos)
{
    for (uint32_t i = 0; i < s->n_notes; i++)
        if (s->notes[i].seq == seq && s->notes[i].pos == pos)
            return &s->notes[i];
    return NULL;
}
