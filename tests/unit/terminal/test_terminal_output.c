/* A frame is sent to the terminal in one write, however curses splits it. */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/rigs/test.h"
#include "tui/terminal/terminal.h"

struct rig {
    struct terminal_output output;
    int ours, before; /* the terminal's end; the original stdout */
};

/* Replaces stdout by a socket that keeps writes separate. */
static void
open_rig(struct rig *r)
{
    int pair[2];
    fflush(stdout);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    r->before = fcntl(STDOUT_FILENO, F_DUPFD, 10);
    r->ours = pair[0];
    dup2(pair[1], STDOUT_FILENO);
    close(pair[1]);
    const bool opened = terminal_output_open(&r->output);
    if (!opened)
        dup2(r->before, STDOUT_FILENO);
    assert_true(opened);
}

static void
close_rig(struct rig *r)
{
    terminal_output_close(&r->output);
    dup2(r->before, STDOUT_FILENO);
    close(r->before);
    close(r->ours);
}

static void
write_out(const struct rig *r, const char *text)
{
    const size_t n = strlen(text);
    assert_int_equal(write(fileno(r->output.file), text, n), n);
}

static size_t
take(const struct rig *r, char *out, size_t size)
{
    const ssize_t n = recv(r->ours, out, size - 1, MSG_DONTWAIT);
    out[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

TEST(a_frame_in_pieces_arrives_in_one_synchronized_update)
{
    struct rig r;
    char got[1 << 16], want[1 << 15];
    open_rig(&r);
    for (int frame = 0; frame < 3; frame++) { /* a long one, a shorter one, a longer one */
        const int pieces = frame == 0 ? 500 : frame == 1 ? 3 : 900;
        size_t n = (size_t)snprintf(want, sizeof want, "\033[?2026h");
        terminal_output_begin(&r.output);
        for (int i = 0; i < pieces; i++) {
            char piece[32];
            snprintf(piece, sizeof piece, "\033[%d;%dHframe %d", i, i, frame);
            write_out(&r, piece);
            n += (size_t)snprintf(want + n, sizeof want - n, "%s", piece);
        }
        assert_int_equal(take(&r, got, sizeof got), 0);
        n += (size_t)snprintf(want + n, sizeof want - n, "\033[?2026l");
        terminal_output_end(&r.output);
        assert_int_equal(take(&r, got, sizeof got), n);
        assert_string_equal(got, want);
        assert_int_equal(take(&r, got, sizeof got), 0);
    }
    close_rig(&r);
}

static void
set_slots(int32_t slots[OUTPUT_SLOTS])
{
    for (int i = 0; i < OUTPUT_SLOTS; i++)
        slots[i] = -1;
    slots[16] = 0x000000;
    slots[17] = 0x1f2bff;
    slots[255] = 0xffffff;
}

TEST(colour_numbers_become_the_colours_of_their_slots)
{
    struct rig r;
    char got[4096];
    int32_t slots[OUTPUT_SLOTS];
    set_slots(slots);
    open_rig(&r);
    r.output.slots = slots;
    terminal_output_begin(&r.output);
    write_out(&r, "\033[H\033[38;5;17ma\033[48;5;255m\033[38;5;16m");
    write_out(&r, "b\033[39;49m");
    terminal_output_end(&r.output);
    take(&r, got, sizeof got);
    assert_string_equal(got, "\033[?2026h\033[H\033[38;2;31;43;255ma\033[48;2;255;255;255m\033[38;2;0;0;0mb\033[39;49m"
                             "\033[?2026l");
    close_rig(&r);
}

TEST(sequences_that_are_no_colour_slot_are_unchanged)
{
    static const char *const kept[] = {
        "",           "plain",           "\033[38;5;18m", "\033[38;5;7m",   "\033[38;5;17",
        "\033[38;5;", "\033[38;5;1234m", "\033[58;5;17m", "\033[38;2;17m",  "\033",
        "38;5;17m",   "\033[38;5;999m",  "\033\033[H",    "\033[38;5;17;1m"};
    int32_t slots[OUTPUT_SLOTS];
    set_slots(slots);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        char out[128];
        const size_t n = strlen(kept[i]);
        assert_int_equal(terminal_output_direct(slots, kept[i], n, out), n);
        assert_memory_equal(out, kept[i], n);
    }
    char out[22]; /* the buffer holds the longest result */
    assert_int_equal(terminal_output_direct(slots, "\033[48;5;255m", 11, out), 19);
}

TEST(between_frames_writes_go_straight_to_the_terminal)
{
    struct rig r;
    char got[64];
    open_rig(&r);
    write_out(&r, "modes");
    assert_int_equal(take(&r, got, sizeof got), 5);
    terminal_output_begin(&r.output);
    terminal_output_end(&r.output); /* nothing changed: nothing is sent */
    assert_int_equal(take(&r, got, sizeof got), 0);
    write_out(&r, "end");
    assert_int_equal(take(&r, got, sizeof got), 3);
    close_rig(&r);
}

TEST(a_handler_that_writes_to_stdout_within_a_frame_reaches_the_terminal)
{
    struct rig r;
    char got[64];
    open_rig(&r);
    terminal_output_begin(&r.output);
    write_out(&r, "half a frame");
    assert_int_equal(write(STDOUT_FILENO, "undo", 4), 4);
    assert_int_equal(take(&r, got, sizeof got), 4);
    terminal_output_end(&r.output);
    close_rig(&r);
}

TEST(frames_are_written_in_pieces_if_there_is_no_memory_for_them)
{
    struct rig r;
    char got[64];
    open_rig(&r);
    const int memory = r.output.memory;
    r.output.memory = -1;
    terminal_output_begin(&r.output);
    write_out(&r, "piece");
    assert_int_equal(take(&r, got, sizeof got), 5);
    terminal_output_end(&r.output);
    r.output.memory = memory;
    close_rig(&r);
}

TEST(closing_an_unopened_terminal_does_nothing)
{
    struct terminal_output output = {0};
    const int file = open("/dev/null", O_RDONLY); /* descriptor 0 is valid, so 0 must not mean "none" */
    const int before = fcntl(STDIN_FILENO, F_DUPFD, 10);
    dup2(file, STDIN_FILENO);
    terminal_output_close(&output);
    assert_at_least(fcntl(STDIN_FILENO, F_GETFD), 0);
    if (before >= 0) {
        dup2(before, STDIN_FILENO);
        close(before);
    }
    close(file);
}
