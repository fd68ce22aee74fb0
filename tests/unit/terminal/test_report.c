/* What a terminal sends that is no key: mouse events in any column, answers, and what is broken. */
#include "tests/rigs/test.h"
#include "tui/terminal/input.h"

static enum report_result
read_all(struct report *r, enum report_kind kind, const char *text)
{
    enum report_result result = REPORT_OPEN;
    report_begin(r, kind);
    for (; *text != '\0' && result == REPORT_OPEN; text++)
        result = report_take(r, (unsigned char)*text);
    return result;
}

static struct input
mouse(enum report_kind kind, const char *text)
{
    struct report r;
    struct input in;
    assert_int_equal(read_all(&r, kind, text), REPORT_WHOLE);
    report_mouse(&r, &in);
    return in;
}

TEST(the_mouse_is_read_in_columns_after_223)
{
    struct input in = mouse(REPORT_MOUSE, "0;258;61M");
    assert_int_equal(in.key, INPUT_MOUSE);
    assert_int_equal(in.mouse, MOUSE_PRESS);
    assert_int_equal(in.x, 257);
    assert_int_equal(in.y, 60);
    assert_int_equal(mouse(REPORT_MOUSE, "0;1;1m").mouse, MOUSE_RELEASE);
    assert_int_equal(mouse(REPORT_MOUSE, "32;5;6M").mouse, MOUSE_DRAG);
    assert_int_equal(mouse(REPORT_MOUSE, "64;5;6M").mouse, MOUSE_WHEEL_UP);
    assert_int_equal(mouse(REPORT_MOUSE, "65;5;6M").mouse, MOUSE_WHEEL_DOWN);
    assert_int_equal(mouse(REPORT_MOUSE, "20;5;6M").mouse, MOUSE_PRESS); /* with Shift and Control */
}

TEST(buttons_that_mean_nothing_here_are_passed_over)
{
    assert_int_equal(mouse(REPORT_MOUSE, "1;5;6M").key, INPUT_NONE);  /* the middle one */
    assert_int_equal(mouse(REPORT_MOUSE, "2;5;6M").key, INPUT_NONE);  /* the right one */
    assert_int_equal(mouse(REPORT_MOUSE, "35;5;6M").key, INPUT_NONE); /* moving with none down */
    assert_int_equal(mouse(REPORT_MOUSE, "66;5;6M").key, INPUT_NONE); /* a wheel that goes sideways */
    assert_int_equal(mouse(REPORT_MOUSE, "0;0;6M").key, INPUT_NONE);  /* there is no column 0 */
    assert_int_equal(mouse(REPORT_MOUSE, "0;5M").key, INPUT_NONE);
}

TEST(terminals_that_know_only_the_old_coordinates_are_read)
{
    const struct input in = mouse(REPORT_OLD_MOUSE, " *%");
    assert_int_equal(in.mouse, MOUSE_PRESS);
    assert_int_equal(in.x, 9);
    assert_int_equal(in.y, 4);
    assert_int_equal(mouse(REPORT_OLD_MOUSE, "#*%").mouse, MOUSE_RELEASE);
    assert_int_equal(mouse(REPORT_OLD_MOUSE, "@*%").mouse, MOUSE_DRAG);
    assert_int_equal(mouse(REPORT_OLD_MOUSE, "`*%").mouse, MOUSE_WHEEL_UP);
}

TEST(an_answer_shows_whether_the_terminal_has_24_bit_colours)
{
    static const struct {
        const char *answer;
        bool direct;
    } answers[] = {{"0;48:2::1:2:3m\033\\", true}, {"48;2;1;2;3m\033\\", true}, {"0;48:2:1:2:3m\033\\", true},
                   {"0;48;5;16m\033\\", false},    {"0m\033\\", false},         {"\033\\", false}};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct report r;
        assert_int_equal(read_all(&r, REPORT_STATE, answers[i].answer), REPORT_WHOLE);
        assert_int_equal(report_says_direct(&r), answers[i].direct);
    }
    struct report r;
    assert_int_equal(read_all(&r, REPORT_ATTRIBUTES, "64;1;2;22c"), REPORT_WHOLE);
    assert_false(report_says_direct(&r));
}

TEST(invalid_reports_end_at_once)
{
    struct report r;
    assert_int_equal(read_all(&r, REPORT_MOUSE, "0;q"), REPORT_BROKEN);
    assert_int_equal(read_all(&r, REPORT_ATTRIBUTES, "6x"), REPORT_BROKEN);
    assert_int_equal(read_all(&r, REPORT_OLD_MOUSE, " \x01"), REPORT_BROKEN);
    assert_int_equal(report_take(&(struct report){0}, 'a'), REPORT_BROKEN);
    report_begin(&r, REPORT_OLD_MOUSE);
    assert_int_equal(report_take(&r, 0x1f600), REPORT_BROKEN);
    char endless[4 * REPORT_MAX];
    memset(endless, '7', sizeof endless);
    endless[sizeof endless - 1] = '\0';
    assert_int_equal(read_all(&r, REPORT_STATE, endless), REPORT_BROKEN);
    assert_true(r.n < REPORT_MAX);
}
