/* A frame reaches the terminal whole and in one write, whatever the pieces that curses writes it in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tui/terminal/terminal_output.h"

struct rig {
    struct terminal_output output;
    int ours, before; /* the terminal's end; stdout as it was */
};

/* Stdout becomes a socket that keeps writes apart. */
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

static void
test_a_frame_in_pieces_arrives_in_one(void **state)
{
    (void)state;
    struct rig r;
    char got[1 << 16], want[1 << 15];
    open_rig(&r);
    for (int frame = 0; frame < 3; frame++) { /* a long one, a shorter one, a longer one */
        const int pieces = frame == 0 ? 500 : frame == 1 ? 3 : 900;
        size_t n = 0;
        terminal_output_begin(&r.output);
        for (int i = 0; i < pieces; i++) {
            char piece[32];
            snprintf(piece, sizeof piece, "\033[%d;%dHframe %d", i, i, frame);
            write_out(&r, piece);
            n += (size_t)snprintf(want + n, sizeof want - n, "%s", piece);
        }
        assert_int_equal(take(&r, got, sizeof got), 0);
        terminal_output_end(&r.output);
        assert_int_equal(take(&r, got, sizeof got), n);
        assert_string_equal(got, want);
        assert_int_equal(take(&r, got, sizeof got), 0);
    }
    close_rig(&r);
}

static void
test_between_frames_writes_go_straight_to_the_terminal(void **state)
{
    (void)state;
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

static void
test_a_handler_that_writes_to_stdout_within_a_frame_reaches_the_terminal(void **state)
{
    (void)state;
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

static void
test_without_memory_for_frames_pieces_go_out_as_they_come(void **state)
{
    (void)state;
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

static void
test_what_was_never_opened_closes_nothing(void **state)
{
    (void)state;
    struct terminal_output output = {0};
    const int file = open("/dev/null", O_RDONLY); /* descriptor 0 is one like any other, and zeros must not mean it */
    const int before = fcntl(STDIN_FILENO, F_DUPFD, 10);
    dup2(file, STDIN_FILENO);
    terminal_output_close(&output);
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
    if (before >= 0) {
        dup2(before, STDIN_FILENO);
        close(before);
    }
    close(file);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_frame_in_pieces_arrives_in_one),
        cmocka_unit_test(test_between_frames_writes_go_straight_to_the_terminal),
        cmocka_unit_test(test_a_handler_that_writes_to_stdout_within_a_frame_reaches_the_terminal),
        cmocka_unit_test(test_without_memory_for_frames_pieces_go_out_as_they_come),
        cmocka_unit_test(test_what_was_never_opened_closes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
