/* Drafts that come from no layer, from the engine to the screen: the scope, a trace and panels show no layer for
 * them. */
#include <math.h>

#include "engine/session/session_internal.h"
#include "tests/rigs/copying_policy.h"
#include "tests/rigs/folders.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"
#include "traces/reader.h"
#include "traces/writer.h"
#include "tui/panels/panel.h"

enum { TOKENS = 120, ROWS = 12, COLS = 120 };

/* Counts over a run. */
struct counted {
    uint64_t drafts, accepted;
};

static void
check_event(const struct event *e, struct counted *n)
{
    if (e->type == EVENT_TOKEN && e->token.source == SOURCE_DRAFT) {
        assert_int_equal(e->token.exit_layer, -1);
        assert_int_equal(e->token.head, -1);
        assert_true(isnan(e->token.confidence));
        n->drafts++;
    }
    if (e->type == EVENT_VERDICT)
        n->accepted += e->verdict.accepted == 1;
    if (e->type == EVENT_ROUND)
        assert_int_equal(e->round_end.exit_layer, -1);
}

static void
check_scope(const struct scope *s)
{
    uint32_t accepted = 0;
    for (uint32_t back = 0; back < scope_rounds(s); back++)
        for (uint32_t i = 0; i < scope_round(s, back)->n_drafts; i++)
            assert_int_equal(scope_round(s, back)->drafts[i].exit_layer, -1);
    for (uint32_t pos = 0; pos < scope_now(s)->length; pos++) {
        const struct scope_column *c = scope_column(s, pos);
        assert_non_null(c);
        assert_int_equal(c->exit_layer,
                         c->fate == FATE_PROMPT || c->fate == FATE_ACCEPTED ? -1 : (int32_t)scope_info(s)->layers);
        accepted += c->fate == FATE_ACCEPTED;
    }
    assert_greater(accepted, 0);
    assert_int_equal(scope_exit_layer(s), -1);
}

/* Checks that no panel names a layer as the source of drafts. */
static void
check_panels(const struct scope *s)
{
    struct selection selection = {.follow = true};
    struct grid grid = {.utf8 = true};
    const struct view view = {.scope = s, .selection = &selection, .search = ""};
    const struct canvas c = {.rows = ROWS, .cols = COLS, .grid = &grid};
    for (const struct panel_ops *const *p = panel_registry; *p != NULL; p++) {
        const bool rounds = strcmp((*p)->name, "rounds") == 0;
        if (strcmp((*p)->name, "exits") == 0)
            assert_false((*p)->active(&view));
        if (!rounds && strcmp((*p)->name, "text") != 0 && strcmp((*p)->name, "layers") != 0)
            continue;
        void *panel;
        assert_true(panel_open(*p, &panel));
        assert_true(grid_open(&grid, ROWS, COLS));
        (*p)->draw(panel, &view, &c);
        for (int y = 0; y < ROWS && rounds; y++) {
            char line[4096];
            grid_row(&grid, y, line, sizeof line);
            assert_lacks(line, " L");
        }
        panel_close(*p, panel);
    }
    grid_close(&grid);
}

TEST(drafts_of_no_layer_have_none_on_the_screen_and_in_a_trace)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct live *s;
    struct scope *live, *replayed;
    struct trace_writer *writer;
    struct trace_reader *trace;
    struct counted n = {0}, again = {0};
    char folder[256], path[300];
    struct session_options o = session_usual();
    o.policies = registry_with_copying();
    o.policy = "copying";
    o.tokens = TOKENS;
    make_temp_folder(folder);
    snprintf(path, sizeof path, "%s/t", folder);
    assert_ok(session_open(&s, f->engine, &o, &err), err);
    struct event_reader *reader = event_reader_open(s->ops->log(s));
    assert_non_null(reader);
    assert_ok(trace_writer_open(&writer, path, NULL, s->ops->info(s), s->ops->log(s), &err), err);
    assert_ok(scope_open(&live, s->ops->info(s), &err), err);
    session_generate(session_from(s)); /* on this thread */
    assert_false(s->ops->failed(s, &err));
    for (const struct event *e; (e = event_reader_next(reader)) != NULL;) {
        check_event(e, &n);
        scope_event(live, e);
    }
    assert_greater(n.drafts, n.accepted);
    assert_greater(n.accepted, 0);
    check_scope(live);
    check_panels(live);
    assert_ok(trace_writer_close(writer, &err), err);
    assert_ok(trace_reader_open(&trace, path, false, &err), err);
    assert_ok(scope_open(&replayed, trace_reader_info(trace), &err), err);
    for (struct event e; trace_reader_next(trace, &e, &err);) {
        check_event(&e, &again);
        scope_event(replayed, &e);
    }
    assert_int_equal(err.kind, ERR_NONE);
    assert_memory_equal(&n, &again, sizeof n);
    check_scope(replayed);
    scope_close(replayed);
    trace_reader_close(trace);
    scope_close(live);
    event_reader_close(reader);
    live_close(s);
    remove_folder(folder);
}

FIXTURE(session_fixture_open, session_fixture_close);
