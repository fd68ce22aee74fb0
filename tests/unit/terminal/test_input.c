/* Decodes a terminal's bytes into events (keys, mouse, replies, pastes), however the bytes are split. */
#include "tests/rigs/draws.h"
#include "tests/rigs/test.h"
#include "tui/terminal/input.h"

/* Decodes bytes that are one event. */
static struct input
event(const char *bytes)
{
    struct input_decoder d = {.n = strlen(bytes)};
    struct input in, next;
    memcpy(d.bytes, bytes, d.n);
    input_decode(&d, false, &in);
    assert_false(input_decode(&d, false, &next));
    assert_int_equal(d.n, 0);
    return in;
}

TEST(the_mouse_is_read_in_columns_after_223)
{
    struct input in = event("\033[<0;258;61M");
    assert_int_equal(in.key, INPUT_MOUSE);
    assert_int_equal(in.mouse, MOUSE_PRESS);
    assert_int_equal(in.x, 257);
    assert_int_equal(in.y, 60);
    assert_int_equal(event("\033[<0;1;1m").mouse, MOUSE_RELEASE);
    assert_int_equal(event("\033[<32;5;6M").mouse, MOUSE_DRAG);
    assert_int_equal(event("\033[<64;5;6M").mouse, MOUSE_WHEEL_UP);
    assert_int_equal(event("\033[<65;5;6M").mouse, MOUSE_WHEEL_DOWN);
    assert_int_equal(event("\033[<20;5;6M").mouse, MOUSE_PRESS); /* with Shift and Control */
}

TEST(unknown_buttons_and_sequences_are_dropped)
{
    static const char *const unknown[] = {"\033[<1;5;6M",  /* the middle button */
                                          "\033[<2;5;6M",  /* the right one */
                                          "\033[<35;5;6M", /* a movement without a button */
                                          "\033[<66;5;6M", /* a horizontal wheel */
                                          "\033[<0;0;6M",  /* there is no column 0 */
                                          "\033[<0;5M",    "\033[M \x01 ", "\033[1;5C",
                                          "\033[38;5$q",   "\033[201~",    "\033P0$rx\033\\"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_int_equal(event(unknown[i]).key, INPUT_NONE);
}

TEST(terminals_with_only_the_old_coordinates_are_read)
{
    const struct input in = event("\033[M *%");
    assert_int_equal(in.mouse, MOUSE_PRESS);
    assert_int_equal(in.x, 9);
    assert_int_equal(in.y, 4);
    assert_int_equal(event("\033[M#*%").mouse, MOUSE_RELEASE);
    assert_int_equal(event("\033[M@*%").mouse, MOUSE_DRAG);
    assert_int_equal(event("\033[M`*%").mouse, MOUSE_WHEEL_UP);
    assert_int_equal(event("\033[M \xff%").x, 222);
}

TEST(an_answer_shows_whether_the_terminal_has_24_bit_colours)
{
    static const struct {
        const char *answer;
        int key;
    } answers[] = {{"\033P1$r0;48:2::1:2:3m\033\\", INPUT_DIRECT},
                   {"\033P1$r48;2;1;2;3m\033\\", INPUT_DIRECT},
                   {"\033P1$r0;48:2:1:2:3m\033\\", INPUT_DIRECT},
                   {"\033P1$r0;48;5;16m\033\\", INPUT_NONE},
                   {"\033P1$r0m\033\\", INPUT_NONE},
                   {"\033P1$r\033\\", INPUT_NONE},
                   {"\033[?64;1;2;22c", INPUT_ANSWERED}};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        assert_int_equal(event(answers[i].answer).key, answers[i].key);
}

TEST(what_follows_a_broken_sequence_is_read)
{
    static const char *const broken[] = {"\033[<0;\033[A", "\033[?64;\001\033[A", "\033P1$r0\001", "\033[12\xc3\xa9"};
    static const int keys[] = {INPUT_UP, 1, 1, 0xe9};
    struct input in;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct input_decoder d = {.n = strlen(broken[i])};
        memcpy(d.bytes, broken[i], d.n);
        assert_true(input_decode(&d, false, &in));
        assert_int_equal(in.key, keys[i]);
    }
    static const char *const begins[] = {"\033[", "\033P1$r"};
    for (int i = 0; i < 2; i++) { /* endless parameters */
        struct input_decoder d = {.n = sizeof d.bytes};
        memset(d.bytes, '7', sizeof d.bytes);
        memcpy(d.bytes, begins[i], strlen(begins[i]));
        assert_true(input_decode(&d, false, &in));
        assert_int_equal(in.key, '7');
    }
}

TEST(an_escape_that_nothing_follows_is_the_escape_key)
{
    struct input_decoder d = {.bytes = "\033", .n = 1};
    struct input in;
    assert_false(input_decode(&d, false, &in));
    assert_greater(input_patience_ms(&d), 0);
    assert_true(input_decode(&d, true, &in));
    assert_int_equal(in.key, INPUT_ESCAPE);
    assert_int_equal(input_patience_ms(&d), -1);
    d = (struct input_decoder){.bytes = "\033x\033\033OA", .n = 6}; /* and before other bytes */
    static const int keys[] = {INPUT_ESCAPE, 'x', INPUT_ESCAPE, INPUT_UP};
    for (int i = 0; i < 4; i++) {
        assert_true(input_decode(&d, false, &in));
        assert_int_equal(in.key, keys[i]);
    }
    d = (struct input_decoder){.bytes = "\033[12", .n = 4}; /* an incomplete sequence is not a key */
    assert_false(input_decode(&d, true, &in));
    assert_int_equal(d.n, 0);
}

TEST(a_paste_whose_end_was_lost_is_left_by_ctrl_c)
{
    struct input_decoder d = {.bytes = "\033[200~a\003b\033\003", .n = 11};
    struct input in;
    static const int keys[] = {INPUT_PASTE_BEGIN, 'a', 'b'}; /* Ctrl-C within the text is dropped */
    for (int i = 0; i < 3; i++) {
        assert_true(input_decode(&d, false, &in));
        assert_int_equal(in.key, keys[i]);
    }
    assert_false(input_decode(&d, false, &in));
    assert_greater(input_patience_ms(&d), 0);
    assert_true(input_decode(&d, true, &in));
    assert_int_equal(in.key, INPUT_PASTE_END);
    assert_true(input_decode(&d, false, &in));
    assert_int_equal(in.key, '\003');
    assert_false(in.pasted);
}

/* ---- any bytes in any pieces ---- */

TEST_SEED(seed, 1);

#define STREAM 6000

struct stream {
    char bytes[STREAM + 64];
    size_t n;
    struct input expected[STREAM + 8];
    size_t events;
};

static void
add(struct stream *s, const char *bytes, struct input in)
{
    memcpy(s->bytes + s->n, bytes, strlen(bytes));
    s->n += strlen(bytes);
    if (in.key != INPUT_NONE)
        s->expected[s->events++] = in;
}

static const char *const texts[] = {"a", "q", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\r", "\n", "\t"};
static const int codes[] = {'a', 'q', 0xe9, 0x20ac, 0x1f600, '\r', '\n', '\t'};
#define TEXTS (sizeof codes / sizeof *codes)

static void
add_paste(struct stream *s, size_t length)
{
    static const char *const dropped[] = {"\033", "\001", "\x7f", "\b"}; /* control characters of the text */
    add(s, "\033[200~", (struct input){.key = INPUT_PASTE_BEGIN});
    for (size_t i = 0; i < length; i++) {
        const size_t which = random_below(TEXTS);
        add(s, texts[which], (struct input){.key = codes[which], .pasted = true});
        if (random_below(16) == 0)
            add(s, dropped[random_below(4)], (struct input){.key = INPUT_NONE});
    }
    add(s, "\033[201~", (struct input){.key = INPUT_PASTE_END});
}

static void
draw_stream(struct stream *s)
{
    static const struct {
        const char *bytes;
        struct input in;
    } others[] = {{"\033[A", {.key = INPUT_UP}},
                  {"\033[1;2C", {.key = INPUT_SHIFT_RIGHT}},
                  {"\033OP", {.key = INPUT_F1}},
                  {"\x7f", {.key = INPUT_BACKSPACE}},
                  {"\b", {.key = INPUT_BACKSPACE}},
                  {"\001", {.key = 1}},
                  {"\xff", {.key = 0xfffd}},
                  {"\033[1;5D", {.key = INPUT_NONE}},
                  {"\033P1$r0m\033\\", {.key = INPUT_NONE}},
                  {"\033[?62c", {.key = INPUT_ANSWERED}},
                  {"\033[<0;12;7M", {.key = INPUT_MOUSE, .mouse = MOUSE_PRESS, .y = 6, .x = 11}},
                  {"\033[M *%", {.key = INPUT_MOUSE, .mouse = MOUSE_PRESS, .y = 4, .x = 9}}};
    *s = (struct stream){0};
    while (s->n < STREAM / 4) {
        const uint32_t which = random_below(16);
        const size_t k = random_below(TEXTS);
        if (which == 15)
            add_paste(s, random_below(2) == 0 ? 255 : random_below(300));
        else if (which < sizeof others / sizeof *others)
            add(s, others[which].bytes, others[which].in);
        else
            add(s, texts[k], (struct input){.key = codes[k]});
    }
}

TEST(every_stream_of_bytes_arrives_whole_in_any_pieces)
{
    static struct stream s;
    for (int trial = 0; trial < 300; trial++) {
        draw_stream(&s);
        struct input_decoder d = {0};
        struct input in;
        size_t events = 0;
        const uint32_t most = trial % 3 == 0 ? 1 : trial % 3 == 1 ? 7 : 700;
        for (size_t i = 0; i < s.n;) {
            size_t n = 1 + random_below(most);
            n = n < s.n - i ? n : s.n - i;
            assert_at_most(n, sizeof d.bytes - d.n);
            memcpy(d.bytes + d.n, s.bytes + i, n);
            d.n += n;
            i += n;
            while (input_decode(&d, false, &in)) {
                assert_less(events, s.events);
                const struct input *want = &s.expected[events];
                assert_int_equal(in.key, want->key);
                assert_int_equal(in.pasted, want->pasted);
                assert_int_equal(in.mouse, want->mouse);
                assert_int_equal(in.y, want->y);
                assert_int_equal(in.x, want->x);
                events++;
            }
        }
        assert_int_equal(events, s.events);
        assert_int_equal(d.n, 0);
    }
}
