/* Notes about positions, from the events that contain them. */
#include "tests/rigs/scope_rig.h"
#include "tests/rigs/test.h"

static const struct scope_note *
note(struct fixture *f, uint32_t pos)
{
    return scope_note_at(seen(f), 0, pos);
}

SCOPE_TEST(a_note_is_kept_until_it_is_taken_back)
{
    struct fixture *f = *state;
    stream_control(&f->stream, "note", "12 here it doubts");
    stream_control(&f->stream, "note", "7 earlier");
    assert_string_equal(note(f, 12)->text, "here it doubts");
    assert_int_equal(scope_now(f->scope)->n_notes, 2);
    assert_int_equal(scope_now(f->scope)->notes[0].pos, 7); /* by position */
    stream_control(&f->stream, "note", "12 here it does not");
    assert_string_equal(note(f, 12)->text, "here it does not");
    assert_int_equal(scope_now(f->scope)->n_notes, 2);
    stream_control(&f->stream, "note", "12 ");
    assert_null(note(f, 12));
    assert_int_equal(scope_now(f->scope)->n_notes, 1);
    stream_control(&f->stream, "note", "99 "); /* position 99 had no note */
    assert_int_equal(scope_now(seen(f))->n_notes, 1);
}

SCOPE_TEST(notes_are_a_runs)
{
    struct fixture *f = *state;
    stream_control(&f->stream, "note", "3 of this run");
    assert_int_equal(scope_now(seen(f))->n_notes, 1);
    f->stream.run++;
    stream_control(&f->stream, "run", "restart");
    assert_int_equal(scope_now(seen(f))->n_notes, 0);
}

SCOPE_TEST(a_note_in_a_trace_may_contain_any_bytes)
{
    struct fixture *f = *state;
    static const char *const odd[] = {"", " ", "x", "-", "99999999999999999999 far", "5", "nan text"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        stream_control(&f->stream, "note", odd[i]);
    assert_int_equal(scope_now(seen(f))->n_notes, 0);
    stream_control(&f->stream, "note", "5 \033[31mred");
    assert_null(strchr(note(f, 5)->text, '\033'));
    char text[2000];
    memset(text, 'x', sizeof text);
    memcpy(text, "6 ", 2);
    text[sizeof text - 1] = '\0';
    stream_control(&f->stream, "note", text);
    assert_less(strlen(note(f, 6)->text), sizeof note(f, 6)->text);
    for (int i = 0; i < 3 * SCOPE_NOTES; i++) {
        static char many[3 * SCOPE_NOTES][32]; /* the stream does not copy them */
        snprintf(many[i], sizeof many[i], "%d note", i * 7 % 101 + 10);
        stream_control(&f->stream, "note", many[i]);
    }
    const struct scope_now *now = scope_now(seen(f));
    assert_int_equal(now->n_notes, SCOPE_NOTES);
    for (uint32_t i = 1; i < now->n_notes; i++)
        assert_greater(now->notes[i].pos, now->notes[i - 1].pos);
}
