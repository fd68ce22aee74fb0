/* The landscape on the sliders and as a grid: strips, the best value, the cursor, and the keys' commands. */
#include "tests/rigs/panel_rig.h"
#include "tests/rigs/test.h"
#include "tui/panels/landscape.h"

static struct landscape l;

/* Opens the panel of knobs with a landscape: tau's strip rises to a peak at 0.8, d_max's is flat. */
static void
use_landscape(struct fixture *f)
{
    const struct policy_info *policy = scope_policy(f->scope);
    l = (struct landscape){.tokens = 199, .now = {.speedup = 1.2f, .modelled = 1.2f}};
    for (uint32_t k = 0; k < policy->n_knobs; k++)
        l.values[k] = scope_knob(f->scope, k);
    memcpy(l.policy, policy->name, sizeof l.policy);
    for (uint32_t k = 0; k < 2; k++) {
        struct landscape_strip *s = &l.strip[k];
        s->n = s->best = landscape_points(&policy->knobs[k], LANDSCAPE_POINTS);
        s->best_se = 0.04f;
        for (uint32_t i = 0; i < s->n; i++) {
            const double value = landscape_value(&policy->knobs[k], s->n, i, l.values[k]);
            s->speedup[i] = k == 0 ? (float)(1.6 - fabs(value - 0.8)) : 1.2f;
            if (value == 0.8 && k == 0)
                s->best = i;
        }
    }
    f->view.landscape = &l;
    use(f, "knobs");
}

/* A grid of two knobs, the first one across. */
static void
open_grid_of(const struct fixture *f, uint32_t across, uint32_t up)
{
    const struct policy_info *policy = scope_policy(f->scope);
    struct landscape_grid *g = &l.grid;
    *g = (struct landscape_grid){.open = true, .knob = {across, up}};
    g->n[0] = landscape_points(&policy->knobs[across], LANDSCAPE_POINTS);
    g->n[1] = landscape_points(&policy->knobs[up], LANDSCAPE_POINTS);
    for (uint32_t y = 0; y < g->n[1]; y++)
        for (uint32_t x = 0; x < g->n[0]; x++)
            g->cell[y][x] = (struct landscape_cell){.speedup = 1 + 0.01f * (float)x + 0.1f * (float)y,
                                                    .tokens_per_round = 3.5f,
                                                    .acceptance = 0.75f,
                                                    .layers = 8,
                                                    .heads = 2};
}

/* A knob tau with 101 values. */
static void
many_values(struct fixture *f)
{
    f->info.policies[scope_policy(f->scope) - f->info.policies].knobs[0].step = 0.01;
}

static void
open_grid(const struct fixture *f)
{
    open_grid_of(f, 0, 1);
}

TEST(points_are_the_values_of_a_knob)
{
    const struct knob tau = {.kind = KNOB_REAL, .min = 0, .max = 1, .step = 0.01, .def = 0.5},
                      d = {.kind = KNOB_INTEGER, .min = 1, .max = 15, .step = 1, .def = 5},
                      mode = {.kind = KNOB_CHOICE, .min = 0, .max = 2};
    assert_int_equal(landscape_points(&tau, 128), 101);
    assert_int_equal(landscape_points(&tau, 32), 32);
    assert_int_equal(landscape_points(&d, 128), 15);
    assert_int_equal(landscape_points(&mode, 128), 3);
    assert_number_equal(landscape_value(&tau, 101, 66, 0.5), 0.66);
    assert_number_equal(landscape_value(&d, 15, 14, 5), 15);
    for (uint32_t i = 0; i < 15; i++)
        assert_int_equal(landscape_nearest(&d, 15, landscape_value(&d, 15, i, 5)), i);
    assert_int_equal(landscape_nearest(&tau, 32, 5), 31);
}

/* The value in use always has a point. Without one it would be shown at another value's position. */
TEST(the_value_in_force_is_always_a_point)
{
    const struct knob gamma = {.kind = KNOB_INTEGER, .min = 1, .max = 32, .step = 1, .def = 5},
                      epsilon = {.kind = KNOB_REAL, .min = 0, .max = 0.2, .step = 0.001, .def = 0.01};
    for (double g = 1; g <= 32; g++) {
        const uint32_t n = landscape_points(&gamma, 16);
        assert_number_equal(landscape_value(&gamma, n, landscape_nearest(&gamma, n, g), g), g);
        for (uint32_t i = 1; i < n; i++)
            assert_greater(landscape_value(&gamma, n, i, g), landscape_value(&gamma, n, i - 1, g));
    }
    for (int i = 0; i <= 200; i++) {
        double value = i * 0.001;
        assert_true(knob_check(&epsilon, value, &value, NULL));
        assert_number_equal(landscape_value(&epsilon, 32, landscape_nearest(&epsilon, 32, value), value), value);
    }
    assert_int_equal(landscape_points(&gamma, LANDSCAPE_POINTS), 32); /* all of these are kept */
}

PANEL_TEST(a_track_rises_to_the_best_value)
{
    struct fixture *f = *state;
    use_landscape(f);
    draw(f, 8, 90);
    assert_contains(line(f, 0), "├▁");
    assert_contains(line(f, 0), "█");
    assert_contains(line(f, 0), "●");
    assert_contains(line(f, 0), "best 0.8: 1.60× ±0.04");
    assert_lacks(line(f, 1), "best"); /* no value is better than the present one by more than the uncertainty */
    assert_lacks(line(f, 1), "█");
    assert_lacks(line(f, 2), "▁"); /* this knob has no forecast */
    draw(f, 8, 40);
    assert_contains(line(f, 0), "█");
    assert_lacks(line(f, 0), "best"); /* there is no room: the panel's title shows it */
    char note[160] = "";
    f->ops->note(f->panel, &f->view, note, (int)sizeof note);
    assert_contains(note, "best 0.8: 1.60× ±0.04");
}

PANEL_TEST(another_policys_landscape_is_not_drawn)
{
    struct fixture *f = *state;
    use_landscape(f);
    snprintf(l.policy, sizeof l.policy, "other");
    draw(f, 8, 90);
    assert_lacks(line(f, 0), "█");
    assert_contains(line(f, 0), "─");
}

PANEL_TEST(w_opens_a_grid_and_enter_takes_both_values)
{
    struct fixture *f = *state;
    use_landscape(f);
    draw(f, 8, 60);
    assert_true(f->ops->command(f->panel, &f->view, "what-if", ""));
    assert_string_equal(f->command, "what-if tau d_max");
    open_grid(f);
    draw(f, 10, 76);
    assert_at_least(row_with(f, "●"), 0);
    assert_greater(row_with(f, "3.50 tokens/round"), 0);
    assert_greater(row_with(f, "acceptance 0.75"), 0);
    assert_greater(row_with(f, "now 1.20×"), 0);
    press(f, INPUT_RIGHT);
    press(f, INPUT_UP);
    draw(f, 10, 76);
    assert_at_least(row_with(f, "●"), 0); /* the cursor is still visible */
    f->refuse = true;
    press(f, INPUT_ENTER); /* the first command is refused, so none follows */
    assert_int_equal(strncmp(f->command, "set tau ", 8), 0);
    f->refuse = false;
    press(f, INPUT_ENTER);
    assert_string_equal(f->command, "what-if close");
    press(f, INPUT_ESCAPE);
    assert_string_equal(f->command, "what-if close");
    f->command[0] = '\0';
    press(f, 'w');
    assert_string_equal(f->command, "what-if close");
    f->command[0] = '\0';
    assert_false(f->ops->key(f->panel, &f->view, '=')); /* keys do not move a hidden slider */
    const struct canvas c = {.rows = 10, .cols = 76, .grid = &f->grid};
    f->ops->mouse(f->panel, &f->view, &c, 0, 40, MOUSE_PRESS);
    assert_string_equal(f->command, "");
}

PANEL_TEST(a_grid_marks_the_best_and_names_its_axes)
{
    struct fixture *f = *state;
    use_landscape(f);
    assert_contains(f->ops->brief_now(&f->view), "Enter type");
    open_grid(f);
    draw(f, 30, 120);
    assert_less(row_with(f, "★"), 0);
    assert_contains(f->ops->brief_now(&f->view), "Enter set both");
    l.grid.has_best = true;
    l.grid.best[0] = 3;
    l.grid.best[1] = l.grid.n[1] - 1;
    draw(f, 30, 120);
    assert_int_equal(row_with(f, "★"), 0);    /* the largest value up is in the first row */
    assert_greater(row_with(f, "★ τ 0."), 0); /* its values are below the grid */
    const int axis = row_with(f, "τ →");
    assert_int_equal(axis, (int)l.grid.n[1]);
    assert_contains(line(f, axis), "d_m… ↑"); /* cut by columns, not by bytes */
    assert_contains(line(f, axis), " 0.");    /* values across */
}

/* The grid is taller than the panel. It scrolls with the cursor to every value, and keeps its row numbers and axis. */
PANEL_TEST(a_zoomed_grid_shows_every_value)
{
    struct fixture *f = *state;
    many_values(f);
    use_landscape(f);
    open_grid_of(f, 1, 0);
    const struct landscape_grid *g = &l.grid;
    const int wide = (160 - 2 - 7) / (int)g->n[0];
    assert_int_equal(g->n[1], 101);
    assert_greater(wide, 4);
    for (uint32_t y = 0; y < g->n[1]; y++)
        press(f, INPUT_DOWN);
    for (uint32_t y = 0; y < g->n[1]; y++) {
        char value[16];
        draw(f, 30, 160);
        snprintf(value, sizeof value, " %g ", y / 100.0);
        const int row = row_with(f, value);
        assert_in_range(row, 0, 26);
        for (uint32_t x = 0; x < g->n[0]; x++) {
            char number[16];
            snprintf(number, sizeof number, "%.2f", (double)g->cell[y][x].speedup);
            for (int k = 0; number[k] != '\0'; k++)
                assert_int_equal(grid_at(&f->grid, row, 1 + 7 + (int)x * wide + 1 + k)->text[0], number[k]);
        }
        assert_int_equal(row_with(f, "d_max →"), 27);
        press(f, INPUT_UP);
    }
}

PANEL_TEST(the_axis_has_the_cursors_value)
{
    struct fixture *f = *state;
    many_values(f);
    use_landscape(f);
    open_grid(f);
    for (uint32_t x = 0; x < l.grid.n[0]; x++)
        press(f, INPUT_LEFT);
    for (uint32_t x = 0; x < l.grid.n[0]; x++) {
        char value[16];
        draw(f, 12, 36);
        snprintf(value, sizeof value, " %g ", x / 100.0);
        assert_contains(line(f, row_with(f, "τ →")), value);
        press(f, INPUT_RIGHT);
    }
}

/* A number without room is left out: a cut number would be another number. */
PANEL_TEST(figures_below_a_grid_are_whole_or_left_out)
{
    struct fixture *f = *state;
    many_values(f);
    use_landscape(f);
    open_grid(f);
    l.grid.has_best = true;
    l.grid.best[0] = 87;
    draw(f, 8, 32);
    assert_at_least(row_with(f, "★ τ 0.87  d_max 1  1.87×"), 0);
    assert_at_least(row_with(f, "acceptance 0.75"), 0);
    draw(f, 8, 20);
    assert_less(row_with(f, "★ τ"), 0);
    for (int rows = 3; rows < 8; rows++) {
        draw(f, rows, 32);
        assert_at_least(row_with(f, "●"), 0);
        assert_at_least(row_with(f, "τ →"), 0);
        assert_at_least(row_with(f, "×"), 0);
    }
}

PANEL_TEST(a_narrow_grid_shows_the_cells_around_the_cursor)
{
    struct fixture *f = *state;
    use_landscape(f);
    open_grid(f);
    l.grid.cell[0][l.grid.n[0] - 1].acceptance = NAN; /* without drafts there */
    draw(f, 12, 36);
    assert_at_least(row_with(f, "●"), 0);
    for (uint32_t i = 0; i < l.grid.n[0]; i++)
        press(f, INPUT_RIGHT);
    for (uint32_t i = 0; i < l.grid.n[1]; i++)
        press(f, INPUT_DOWN);
    draw(f, 12, 36);
    assert_at_least(row_with(f, "+"), 0);
    assert_greater(row_with(f, "acceptance –"), 0);
}

PANEL_TEST(a_grid_fits_any_panel)
{
    struct fixture *f = *state;
    use_landscape(f);
    open_grid(f);
    for (int rows = 1; rows < 24; rows++)
        for (int cols = 2; cols < 140; cols++) { /* in some widths the values fill the row exactly */
            draw(f, rows, cols);
            press(f, rows % 2 ? INPUT_UP : INPUT_SHIFT_RIGHT);
        }
    l.grid.n[0] = l.grid.n[1] = 0; /* not computed yet */
    draw(f, 8, 60);
    press(f, INPUT_UP);
    press(f, INPUT_ENTER);
    assert_contains(line(f, 0), "computing");
}
