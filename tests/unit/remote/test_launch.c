/* Launched servers: what a failed start reports, and that nothing of a server is left, however this program or the
 * server ends. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/remote/launch.h"
#include "tests/rigs/hostile_server.h"
#include "tests/rigs/test.h"

#define IDS 3

/* Reads the ids of the server and its children that hostile.py --children writes. */
static void
read_ids(const char *file, int ids[IDS])
{
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%d %d %d", &ids[0], &ids[1], &ids[2]), IDS);
    fclose(f);
    for (int i = 0; i < IDS; i++)
        assert_int_equal(kill(ids[i], 0), 0);
}

static bool
runs(int id)
{
    return kill(id, 0) == 0;
}

static void
name_file(char out[64])
{
    snprintf(out, 64, "/tmp/specscope-ids-XXXXXX");
    close(mkstemp(out));
}

/* Runs this command, which does not become healthy within limit_s; the ids are those of `file`, if any. */
static void
fails(const char *command, double limit_s, const char *why)
{
    struct launch *l;
    struct err err = {0};
    assert_false(launch_open(&l, command, limit_s, NULL, &err));
    assert_null(l);
    assert_int_equal(err.kind, ERR_WORK);
    assert_contains(err.text, why);
}

/* ---- failed starts ---- */

TEST(a_server_that_ends_at_once_is_an_error_with_its_last_line)
{
    const uint64_t begun = clock_us();
    fails("printf 'first\\nlast \\033[31mline\\n\\n' >&2; exit 3; :", 600,
          "the server did not start: it ended with exit status 3: last \\x1b[31mline; check its command");
    fails("kill -9 $$; :", 600, "it ended with signal 9");
    fails("specscope-no-such-program", 600, "it ended with exit status 127");
    assert_less(clock_us() - begun, 300000000); /* it did not wait for the limit */
}

TEST(much_output_does_not_stop_a_server)
{
    fails("i=0; while [ $i -lt 20000 ]; do echo a line of the log $i; i=$((i+1)); done; exit 1; :", 600,
          ": a line of the log 19999;");
}

TEST(a_server_that_is_never_healthy_is_ended)
{
    char command[200], file[64];
    int id = 0;
    name_file(file);
    snprintf(command, sizeof command, "echo $$ >%s; echo still loading; sleep 1000; :", file);
    fails(command, 0.5, "/health was not 200 within 0.5 s: still loading");
    FILE *f = fopen(file, "r");
    assert_int_equal(fscanf(f, "%d", &id), 1);
    fclose(f);
    unlink(file);
    assert_false(runs(id));
}

static void *
set_soon(void *flag)
{
    usleep(200000);
    atomic_store((atomic_bool *)flag, true);
    return NULL;
}

TEST(a_start_can_be_cancelled)
{
    atomic_bool cancel = false;
    pthread_t thread;
    struct launch *l;
    struct err err = {0};
    pthread_create(&thread, NULL, set_soon, &cancel);
    assert_false(launch_open(&l, "sleep 1000; :", 600, &cancel, &err));
    pthread_join(thread, NULL);
    assert_int_equal(err.kind, ERR_CANCELLED);
}

/* ---- the end ---- */

TEST(a_closed_server_is_gone_with_all_its_children)
{
    char words[100], file[64];
    int ids[IDS];
    name_file(file);
    snprintf(words, sizeof words, "--children %s", file);
    struct launch *l = hostile_server(words);
    read_ids(file, ids);
    launch_close(l);
    unlink(file);
    assert_false(runs(ids[0]));
    assert_false(runs(ids[1]));
#if defined(__linux__)
    assert_false(runs(ids[2])); /* it was in a session of its own */
#endif
}

static void
interrupt(int signal_number)
{
    (void)signal_number;
}

TEST(a_server_that_ignores_sigterm_is_killed_also_if_signals_interrupt_the_wait)
{
    const struct sigaction action = {.sa_handler = interrupt}; /* without SA_RESTART */
    struct itimerval often = {{0, 300000}, {0, 300000}};
    char words[100], file[64];
    int ids[IDS];
    name_file(file);
    snprintf(words, sizeof words, "--ignore-term --children %s", file);
    struct launch *l = hostile_server(words);
    read_ids(file, ids);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    launch_close(l); /* takes LAUNCH_END_S */
    often = (struct itimerval){0};
    setitimer(ITIMER_REAL, &often, NULL);
    unlink(file);
    for (int i = 0; i < 2; i++)
        assert_false(runs(ids[i]));
}

/* A child process launches a server, and is ended by this signal, which goes to its whole group as a terminal's. */
static void
survives(int signal_number)
{
    char words[100], file[64];
    int ids[IDS], ready[2];
    name_file(file);
    snprintf(words, sizeof words, "--children %s", file);
    launch_close(hostile_server("")); /* skips the test if there is no python3 */
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        signal(signal_number, SIG_DFL);
        hostile_server(words);
        const bool told = write(ready[1], "x", 1) == 1;
        for (; told;)
            pause();
        _exit(1);
    }
    char byte;
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    read_ids(file, ids);
    unlink(file);
    assert_int_not_equal(getsid(ids[0]), getsid(0)); /* no key of the terminal reaches it */
    kill(-child, signal_number);
    waitpid(child, NULL, 0);
    for (int tick = 0; tick < 1200 && (runs(ids[0]) || runs(ids[1])); tick++)
        usleep(50000);
    for (int i = 0; i < 2; i++)
        assert_false(runs(ids[i]));
}

TEST(a_server_ends_with_a_program_that_is_killed)
{
    survives(SIGKILL);
}

TEST(a_server_ends_with_an_interrupted_program)
{
    survives(SIGINT);
}

TEST(a_server_holds_no_open_file_of_the_program)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct launch *l = hostile_server("");
    close(ends[1]);
    struct pollfd end = {ends[0], POLLIN, 0};
    const int ended = poll(&end, 1, 0); /* only if no other process has the end for writing */
    launch_close(l);
    close(ends[0]);
    assert_int_equal(ended, 1);
}

TEST(two_servers_run_and_end_independently)
{
    struct launch *a = hostile_server(""), *b = hostile_server("");
    struct err err = {0};
    int status;
    size_t n;
    char *answer;
    assert_string_not_equal(launch_url(a), launch_url(b));
    launch_close(a);
    struct http *h = hostile_part(b, "honest", (struct http_options){.key = NULL});
    assert_ok(http_call(h, "/props", NULL, 20, &status, &answer, &n, &err), err);
    free(answer);
    http_close(h);
    launch_close(b);
}
