/* The sweep's panel drawn into a grid: a line, a map, a list, its cursor, and the commands that its keys send. */
#include "tests/rigs/panel_rig.h"

#include "engine/tune/knob_sweep.h"
#include "tests/rigs/test.h"
#include "tui/panels/landscape.h"

struct swept {
    struct fixture *f;
    struct knob_sweep *sweep;
    uint32_t policy;
    double value[3];
    bool ar; /* the baseline's run */
};

static bool
take(void *user, enum control_kind kind, const char *name, const char *text, struct err *err)
{
    struct swept *w = user;
    (void)err;
    if (kind == CONTROL_POLICY)
        w->ar = strcmp(text, "ar") == 0;
    for (int i = 0; i < 3 && kind == CONTROL_KNOB; i++)
        if (strcmp(w->f->info.policies[w->policy].knobs[i].name, name) == 0)
            w->value[i] = strtod(text, NULL);
    return true;
}

/* The run's policy has knobs "a", "b" and "c", which are swept on a grid. `runs` points have run. Each of their rounds
 * takes 1 ms and emits as many tokens as the sum of the knobs' values. */
static void
sweep_with(struct swept *w, struct fixture *f, const char *grid, uint32_t runs, bool baseline)
{
    struct err err = {0};
    const struct run_host host = {.user = w, .post = take};
    struct policy p = {.ops = NULL};
    struct settings now;
    *w = (struct swept){.f = f};
    snprintf(f->info.policies[0].name, sizeof f->info.policies[0].name, baseline ? "ar" : "none");
    assert_true(policy_number(&p, "a", "", 0, 100, 1, 1, "") && policy_number(&p, "b", "", 0, 100, 1, 1, "") &&
                policy_number(&p, "c", "", 0, 100, 1, 1, ""));
    while (strcmp(f->info.policies[w->policy].name, f->info.policy) != 0)
        w->policy++;
    struct policy_info *info = &f->info.policies[w->policy];
    memcpy(info->knobs, p.info.knobs, sizeof info->knobs);
    info->n_knobs = p.info.n_knobs;
    for (uint32_t k = 0; k < 3; k++)
        f->info.start_values[w->policy * POLICY_KNOBS + k] = 0;
    settings_begin(&now, &f->info);
    assert_ok(sweep_open(&w->sweep, &f->info, &err), err);
    assert_ok(sweep_begin(w->sweep, grid, NULL, 0, &now, NULL, &err), err);
    for (uint32_t i = 0; i < runs && sweep_running(w->sweep); i++) {
        struct event e = {.type = EVENT_CONTROL,
                          .control = {.kind = RECORDED_RUN, .old_text = "", .new_text = "restart"}};
        assert_ok(sweep_next(w->sweep, &host, &err), err);
        sweep_event(w->sweep, &e);
        for (uint32_t round = 1; round <= 8; round++) {
            const uint32_t tokens = w->ar ? 2 : (uint32_t)(w->value[0] + w->value[1] + w->value[2]),
                           drafted = tokens > 1 ? tokens : 0;
            e = (struct event){.type = EVENT_ROUND,
                               .round = round,
                               .t_us = round * 1000,
                               .round_end = {.draft_us = 500 + round % 2 * 20,
                                             .verify_us = 480,
                                             .drafted = drafted,
                                             .verified = drafted,
                                             .accepted = tokens - 1,
                                             .emitted = tokens,
                                             .layers_loaded = 20,
                                             .heads_loaded = 2}};
            sweep_event(w->sweep, &e);
        }
        e = (struct event){.type = EVENT_CONTROL,
                           .t_us = 8000,
                           .control = {.kind = RECORDED_END, .old_text = "", .new_text = "tokens"}};
        sweep_event(w->sweep, &e);
    }
    assert_ok(sweep_next(w->sweep, &host, &err), err);
    f->view.sweep = w->sweep;
}

static void
sweep(struct swept *w, struct fixture *f, const char *grid, uint32_t runs)
{
    sweep_with(w, f, grid, runs, false);
}

static void
done(struct swept *w)
{
    w->f->view.sweep = NULL;
    sweep_close(w->sweep);
}

PANEL_TEST(without_a_sweep_there_is_no_panel)
{
    struct fixture *f = *state;
    use(f, "sweep");
    assert_false(f->ops->active(&f->view));
    draw(f, 8, 60);
    assert_string_equal(line(f, 0), "");
    press(f, INPUT_ENTER);
    assert_string_equal(f->command, "");
}

PANEL_TEST(two_knobs_are_a_map_that_fills)
{
    struct fixture *f = *state;
    struct swept w;
    char note[160] = "";
    use(f, "sweep");
    sweep(&w, f, "a=1:3:1 b=10:40:10", 5);
    assert_true(f->ops->active(&f->view));
    draw(f, 8, 70);
    assert_int_equal(strncmp(line(f, 0), "a 10 ", 5), 0);
    assert_contains(line(f, 0), "40         b");
    assert_int_equal(strncmp(line(f, 1), "1 ", 2), 0);
    assert_int_equal(strncmp(line(f, 3), "3 ", 2), 0);
    assert_contains(line(f, 1), "☆"); /* 1 + 40, the best so far by far, after one pass */
    assert_contains(line(f, 2), "◌"); /* runs */
    assert_contains(line(f, 3), "·");
    assert_contains(line(f, 4), "a=1 b=40");
    assert_contains(line(f, 4), "tok/s");
    assert_contains(line(f, 5), "modelled"); /* text that does not fit is on the next row, */
    draw(f, 5, 50);
    assert_int_equal(row_with(f, "modelled"), -1); /* or left out as a whole */
    assert_contains(line(f, 4), " tok/s");
    draw(f, 8, 70);
    f->ops->note(f->panel, &f->view, note, (int)sizeof note);
    assert_contains(note, "tokens/s · 5 of 12 points, 1 s left");
    press(f, INPUT_DOWN);
    press(f, INPUT_LEFT);
    draw(f, 8, 70);
    assert_contains(line(f, 4), "a=2 b=30");
    assert_contains(line(f, 4), "not run yet");
    press(f, INPUT_ENTER);
    assert_string_equal(f->command, "sweep take 7");
    done(&w);
    sweep(&w, f, "a=1:3:1 b=10:40:10", 12);
    press(f, INPUT_HOME);
    draw(f, 8, 70);
    assert_contains(line(f, 3), "☆");
    assert_contains(line(f, 4), "a=3 b=40");
    press(f, 'c');
    f->ops->note(f->panel, &f->view, note, (int)sizeof note);
    assert_contains(note, "tokens/round · 12 of 12 points");
    draw(f, 8, 70);
    assert_contains(line(f, 3), "43.00");
    done(&w);
}

PANEL_TEST(heat_grows_with_the_measure)
{
    struct fixture *f = *state;
    struct swept w;
    use(f, "sweep");
    sweep(&w, f, "a=1:3:1 b=10:40:10", 12);
    draw(f, 8, 70);
    for (int y = 1; y < 4; y++)
        for (int x = 3; x < 30; x++) {
            const float left = grid_at(&f->grid, y, x)->heat, right = grid_at(&f->grid, y, x + 1)->heat;
            assert_at_most(left, right);
        }
    assert_less(grid_at(&f->grid, 1, 3)->heat, grid_at(&f->grid, 1, 30)->heat);
    assert_less(grid_at(&f->grid, 1, 30)->heat, grid_at(&f->grid, 3, 30)->heat);
    done(&w);
}

PANEL_TEST(a_map_larger_than_its_place_follows_the_cursor)
{
    struct fixture *f = *state;
    struct swept w;
    use(f, "sweep");
    sweep(&w, f, "a=1:30:1 b=10:60:2", 3);
    draw(f, 7, 42);
    assert_int_equal(strncmp(line(f, 1), "1 ", 2), 0);
    for (int i = 0; i < 40; i++) {
        press(f, INPUT_DOWN);
        press(f, INPUT_RIGHT);
        draw(f, 7, 42);
    }
    assert_at_least(row_with(f, "a=30 b=60"), 0);
    assert_int_equal(strncmp(line(f, 5), "30 ", 3), 0);
    assert_contains(line(f, 0), "60");
    press(f, INPUT_ENTER);
    assert_string_equal(f->command, "sweep take 780");
    done(&w);
}

PANEL_TEST(one_knob_is_a_line_with_whiskers)
{
    struct fixture *f = *state;
    struct swept w;
    use(f, "sweep");
    sweep(&w, f, "b=10:40:10", 3);
    draw(f, 8, 60);
    assert_contains(line(f, 0), "tokens/s");
    assert_contains(line(f, 1), "10");
    assert_contains(line(f, 1), "●");
    assert_contains(line(f, 3), "☆30");
    assert_contains(line(f, 3), "±");
    assert_contains(line(f, 4), "runs");
    assert_greater(strstr(line(f, 3), "●") - line(f, 3), 30); /* larger values are further right */
    press(f, INPUT_UP);
    press(f, INPUT_ENTER);
    assert_string_equal(f->command, "sweep take 2");
    done(&w);
}

/* The landscape has the speedup at each value of the knob, with the other knobs unchanged. */
PANEL_TEST(a_point_of_one_knob_has_its_forecast_in_time)
{
    struct fixture *f = *state;
    struct swept w;
    static struct landscape land;
    use(f, "sweep");
    sweep(&w, f, "a=1:4:1", 4);
    land = (struct landscape){.tokens = 100, .strip[0].n = 101};
    snprintf(land.policy, sizeof land.policy, "%s", f->info.policy);
    for (int i = 0; i <= 100; i++)
        land.strip[0].speedup[i] = 1 + (float)i / 100;
    f->view.landscape = &land;
    draw(f, 8, 60);
    assert_int_equal(row_with(f, "forecast"), -1); /* by weights read */
    land.now.in_time = true;
    draw(f, 8, 60);
    assert_at_least(row_with(f, "forecast 1.04×"), 0); /* the cursor is on the best point, a=4 */
    f->view.landscape = NULL;
    done(&w);
}

PANEL_TEST(more_knobs_are_a_list_the_best_first)
{
    struct fixture *f = *state;
    struct swept w;
    use(f, "sweep");
    sweep(&w, f, "a=1:2:1 b=10:20:10 c=1:2:1", 8);
    draw(f, 10, 90);
    assert_contains(line(f, 0), "tok/s");
    assert_contains(line(f, 1), "a=2 b=20 c=2");
    assert_contains(line(f, 8), "a=1 b=10 c=1");
    press(f, INPUT_DOWN);
    press(f, INPUT_ENTER);
    assert_string_equal(f->command, "sweep take 4"); /* as fast as point 7, which is later in the grid */
    done(&w);
    sweep(&w, f, "a=1:3:1 b=10:40:10", 12);
    press(f, INPUT_HOME);
    press(f, 'o'); /* two knobs can be shown as a list too */
    draw(f, 14, 90);
    assert_contains(line(f, 1), "a=3 b=40");
    done(&w);
    sweep(&w, f, "a=1:2:1", 2);
    draw(f, 14, 90);
    assert_contains(line(f, 2), "a=1"); /* a point without drafts has no acceptance */
    assert_contains(line(f, 2), " 1.00      – ");
    assert_lacks(line(f, 2), "nan");
    done(&w);
}

PANEL_TEST(times_the_baseline_are_a_measure_with_an_error)
{
    struct fixture *f = *state;
    struct swept w;
    char note[160] = "";
    use(f, "sweep");
    sweep_with(&w, f, "a=1:3:1 b=10:40:10", 4, true); /* the baseline, and three points */
    draw(f, 8, 90);
    assert_contains(line(f, 4), "a=1 b=30");
    assert_contains(line(f, 4), "15.50 × ar"); /* 31 tokens a millisecond and 2 */
    press(f, 'c');
    draw(f, 8, 90);
    f->ops->note(f->panel, &f->view, note, (int)sizeof note);
    assert_contains(note, "× ar · 3 of 12 points");
    assert_contains(line(f, 1), "15.50");
    press(f, 'o');
    draw(f, 8, 90);
    assert_contains(line(f, 0), "× ar");
    assert_contains(line(f, 0), "tok/s");
    draw(f, 8, 62); /* with less room it replaces the speed */
    assert_contains(line(f, 0), "× ar");
    assert_lacks(line(f, 0), "tok/s");
    assert_contains(line(f, 1), "15.50 ");
    done(&w);
    sweep(&w, f, "a=1:3:1 b=10:40:10", 4); /* without a baseline this is not a measure */
    press(f, 'o');
    for (int i = 0; i < 8; i++) {
        press(f, 'c');
        f->ops->note(f->panel, &f->view, note, (int)sizeof note);
        assert_lacks(note, "× ar");
    }
    done(&w);
}

PANEL_TEST(the_mouse_chooses_and_takes)
{
    struct fixture *f = *state;
    struct swept w;
    use(f, "sweep");
    sweep(&w, f, "a=1:3:1 b=10:40:10", 12);
    draw(f, 8, 70);
    const struct canvas c = {.rows = 8, .cols = 70, .grid = &f->grid};
    assert_true(f->ops->mouse(f->panel, &f->view, &c, 2, 3, MOUSE_PRESS)); /* the second row's first cell */
    draw(f, 8, 70);
    assert_contains(line(f, 4), "a=2 b=10");
    assert_true(f->ops->mouse(f->panel, &f->view, &c, 2, 3, MOUSE_DOUBLE));
    assert_string_equal(f->command, "sweep take 5");
    assert_false(f->ops->mouse(f->panel, &f->view, &c, 0, 3, MOUSE_PRESS));
    assert_false(f->ops->mouse(f->panel, &f->view, &c, 3, 69, MOUSE_PRESS));
    done(&w);
}

PANEL_TEST(sweeps_stay_inside_at_any_size)
{
    struct fixture *f = *state;
    static const char *const grids[] = {"b=10:60:1", "a=1:30:1 b=10:60:2", "a=1:5:1 b=10:40:10 c=1:4:1"};
    for (size_t g = 0; g < 3; g++) {
        struct swept w;
        use(f, "sweep");
        sweep(&w, f, grids[g], 20);
        for (int rows = 1; rows < 14; rows += 2)
            for (int cols = 1; cols < 100; cols += 9) {
                assert_true(grid_open(&f->grid, rows + 2, cols + 2));
                const struct canvas c = {.y = 1, .x = 1, .rows = rows, .cols = cols, .grid = &f->grid};
                f->ops->draw(f->panel, &f->view, &c);
                for (int y = 0; y < rows + 2; y++)
                    for (int x = 0; x < cols + 2; x++)
                        if (y == 0 || x == 0 || y == rows + 1 || x == cols + 1)
                            assert_true(grid_at(&f->grid, y, x)->text[0] == '\0' ||
                                        grid_at(&f->grid, y, x)->text[0] == ' ');
                press(f, INPUT_DOWN);
            }
        done(&w);
        panel_close(f->ops, f->panel);
        f->ops = NULL;
    }
}
