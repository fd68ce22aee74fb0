/* The title of a live run on a machine that other processes keep busy. */
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"
#include "tui/frame/bars.h"

static uint32_t threads_at_work;

static uint32_t
threads(const struct backend *b)
{
    (void)b;
    return threads_at_work;
}

static void
assert_title(const struct followed *f, uint32_t now, const char *expected)
{
    enum { COLS = 160 };
    struct grid grid = {0};
    struct clicks clicks = {0};
    char line[4 * COLS + 1];
    threads_at_work = now;
    grid.utf8 = true;
    assert_true(grid_open(&grid, 1, COLS));
    const struct canvas canvas = {.rows = 1, .cols = COLS, .grid = &grid};
    title_draw(f, &canvas, &clicks);
    grid_row(&grid, 0, line, sizeof line);
    if (strstr(line, expected) == NULL)
        fail_msg("'%s' is not in the title: %s", expected, line);
    grid_close(&grid);
}

TEST(fewer_threads_than_there_are_is_shown)
{
    struct fixture *fixture = *state;
    struct engine *engine = fixture->engine;
    const struct backend_ops *const usual = engine->ops;
    struct backend_ops busy = *usual;
    busy.threads = threads;
    engine->ops = &busy;
    const struct session_options options = session_usual();
    struct session *session;
    struct followed f = {0};
    struct err err;
    const uint32_t all = engine->threads;
    engine->threads = 2;
    assert_true(session_open(&session, engine, &options, &err));
    assert_true(follow_open(&f, &(struct source){.session = session}, &err));
    assert_title(&f, 2, "cpu×2 ");
    assert_title(&f, 1, "cpu×1 of 2 (faster) ");
    follow_close(&f);
    session_close(session);
    engine->threads = all;
    engine->ops = usual;
}

FIXTURE(session_fixture_open, session_fixture_close);
