/* The panel of `:tune` in races of simulated times: pictures at several sizes (tests/golden/panels/tune.txt; UPDATE=1
 * rewrites them), and the commands that its keys send. */
#include "tests/rigs/panel_rig.h"
#include "tests/rigs/race_rig.h"
#include "tests/rigs/test.h"

#define GOLDEN "tests/golden/panels/tune.txt"

static struct simulated_race rig;
static double rig_held_out[2];

static void
race(struct fixture *f, uint32_t runs)
{
    struct err err = {0};
    race_rig_open(&rig);
    memcpy(rig.held_out, rig_held_out, sizeof rig.held_out);
    const struct tune_request request = race_rig_request(&rig, TUNE_TIME);
    if (!tuner_begin(rig.tuner, &request, &err) || !race_rig_run(&rig, runs, &err))
        fail_msg("%s", err.text);
    use(f, "tune");
    f->view.tuner = rig.tuner;
}

static void
end(struct fixture *f)
{
    f->view.tuner = NULL;
    race_rig_close(&rig);
}

static char *
read_golden(void)
{
    char *text = calloc(1, 1 << 16);
    FILE *f = fopen(GOLDEN, "r");
    assert_non_null(text);
    if (f != NULL) {
        assert_greater(fread(text, 1, (1 << 16) - 1, f), 0);
        fclose(f);
    }
    return text;
}

PANEL_TEST(a_race_looks_as_it_did)
{
    struct fixture *f = *state;
    char *got = NULL;
    size_t n;
    FILE *out = open_memstream(&got, &n);
    assert_non_null(out);
    race(f, 2);
    picture(f, out, "first runs", 3, 100);
    end(f);
    panel_close(f->ops, f->panel);
    race(f, 3 + 14 * 4 + 5);
    picture(f, out, "heat 5", 7, 78);
    picture(f, out, "heat 5", 18, 118);
    picture(f, out, "heat 5", 18, 158);
    end(f);
    panel_close(f->ops, f->panel);
    race(f, UINT32_MAX);
    picture(f, out, "over", 6, 78);
    picture(f, out, "over", 9, 118);
    picture(f, out, "over", 18, 158);
    press(f, 'f');
    picture(f, out, "flags", 16, 118);
    press(f, INPUT_DOWN);
    picture(f, out, "flags of the next engine", 5, 118);
    f->grid.utf8 = false;
    press(f, 'f');
    picture(f, out, "over in ASCII", 9, 118);
    f->grid.utf8 = true;
    end(f);
    panel_close(f->ops, f->panel);
    rig_held_out[0] = 0.93;
    rig_held_out[1] = 1.2;
    race(f, UINT32_MAX);
    rig_held_out[0] = 0;
    picture(f, out, "over, the second one is faster on held-out prompts", 6, 118);
    picture(f, out, "over, the second one is faster on held-out prompts", 18, 118);
    end(f);
    fclose(out);
    if (getenv("UPDATE") != NULL) {
        FILE *to = fopen(GOLDEN, "w");
        assert_non_null(to);
        assert_at_least(fputs(got, to), 0);
        assert_int_equal(fclose(to), 0);
    }
    char *wanted = read_golden();
    assert_string_equal(got, wanted);
    free(wanted);
    free(got);
}

PANEL_TEST(without_a_race_there_is_no_panel)
{
    struct fixture *f = *state;
    use(f, "tune");
    assert_false(f->ops->active(&f->view));
    draw(f, 8, 100);
    assert_string_equal(line(f, 0), "");
    assert_false(f->ops->key(f->panel, &f->view, INPUT_ENTER));
}

PANEL_TEST(keys_send_commands_about_the_row_at_the_cursor)
{
    struct fixture *f = *state;
    race(f, UINT32_MAX);
    draw(f, 18, 118);
    struct race_standing all[RACE_CANDIDATES];
    race_standings(rig.tuner->race, all);
    assert_int_equal(all[0].candidate, tuner_winner(rig.tuner));
    assert_int_not_equal(all[0].candidate, 0); /* so that the rows are not in the order of the candidates */
    press(f, INPUT_ENTER);
    assert_string_equal(f->command, "tune take 1");
    press(f, 's');
    assert_string_equal(f->command, "command tune save 1 ");
    press(f, 'y');
    assert_string_equal(f->command, "tune copy 1");
    press(f, INPUT_DOWN);
    assert_string_equal(f->command, "tune show 2");
    press(f, INPUT_ENTER);
    assert_string_equal(f->command, "tune take 2");
    draw(f, 18, 118);
    assert_int_equal(strncmp(line(f, 2), "▸ 2 ", strlen("▸ 2 ")), 0);
    press(f, INPUT_HOME);
    assert_string_equal(f->command, "tune show now");
    end(f);
}

PANEL_TEST(a_click_puts_the_cursor_on_a_setting)
{
    struct fixture *f = *state;
    race(f, UINT32_MAX);
    draw(f, 18, 118);
    const struct canvas c = {.rows = 18, .cols = 118, .grid = &f->grid};
    assert_true(f->ops->mouse(f->panel, &f->view, &c, 3, 10, MOUSE_PRESS));
    assert_string_equal(f->command, "tune show 3");
    assert_false(f->ops->mouse(f->panel, &f->view, &c, 17, 10, MOUSE_PRESS));
    end(f);
}

PANEL_TEST(escape_closes_the_options_of_other_engines)
{
    struct fixture *f = *state;
    race(f, UINT32_MAX);
    draw(f, 18, 118);
    assert_false(f->ops->key(f->panel, &f->view, INPUT_ESCAPE));
    press(f, 'f');
    draw(f, 18, 118);
    assert_int_equal(strncmp(line(f, 1), "llama.cpp", 9), 0);
    press(f, INPUT_ESCAPE);
    draw(f, 18, 118);
    assert_contains(line(f, 0), "× ar");
    end(f);
}
