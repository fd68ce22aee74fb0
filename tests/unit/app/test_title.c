/* The title of a live run on a machine that other processes keep busy; the measures of a run. */
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"
#include "tui/app/bars.h"
#include "tui/panels/landscape.h"

static uint32_t threads_at_work;
static struct landscape landscape;

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
    title_draw(f, &landscape, &(struct reason){.kind = REASON_NONE}, &canvas, &clicks);
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
    struct live *session;
    struct followed f = {0};
    struct err err;
    const uint32_t all = engine->threads;
    engine->threads = 2;
    assert_ok(session_open(&session, engine, &options, &err), err);
    assert_ok(follow_open(&f, &(struct source){.live = session}, &err), err);
    assert_title(&f, 2, "cpu×2 ");
    assert_title(&f, 1, "cpu×1 of 2 (faster) ");
    follow_close(&f);
    live_close(session);
    engine->threads = all;
    engine->ops = usual;
}

/* Returns whether the measures of the run contain the text after one more token. */
static bool
measures_contain(struct scope *scope, uint32_t pos, enum token_source source, uint64_t t_us, const char *text)
{
    enum { COLS = 160 };
    const struct event e = {.type = EVENT_TOKEN, .t_us = t_us, .token = {.pos = pos, .source = source}};
    const struct landscape none = {0};
    struct grid grid = {0};
    char line[4 * COLS + 1];
    scope_event(scope, &e);
    assert_true(grid_open(&grid, 1, COLS));
    measures_draw(scope, &none, &(struct canvas){.rows = 1, .cols = COLS, .grid = &grid});
    grid_row(&grid, 0, line, sizeof line);
    grid_close(&grid);
    return strstr(line, text) != NULL;
}

TEST(a_prompt_that_took_long_is_among_the_measures)
{
    struct fixture *fixture = *state;
    const struct session_options options = session_usual();
    struct live *session;
    struct followed f = {0};
    struct err err;
    assert_ok(session_open(&session, fixture->engine, &options, &err), err);
    assert_ok(follow_open(&f, &(struct source){.live = session}, &err), err);
    assert_false(measures_contain(f.scope, 0, SOURCE_PROMPT, 1000, "prompt"));
    assert_false(measures_contain(f.scope, 1, SOURCE_PREFILL, 900000, "prompt"));
    assert_false(measures_contain(f.scope, 99, SOURCE_PROMPT, 1000000, "prompt"));
    assert_true(measures_contain(f.scope, 100, SOURCE_PREFILL, 20101000, "prompt 101 tokens in 20 s, 5/s"));
    follow_close(&f);
    live_close(session);
}

FIXTURE(session_fixture_open, session_fixture_close);
