/* Grids of knobs: texts that are read, texts that are refused, and the values of a point. */
#include "engine/tune/knob_sweep.h"
#include "tests/rigs/test.h"

static const struct knob tau = {.name = "tau", .kind = KNOB_REAL, .max = 1, .step = 0.05, .def = 0.55};
static const struct knob gamma_knob = {.name = "gamma", .kind = KNOB_INTEGER, .min = 1, .max = 16, .step = 1, .def = 5};

TEST(an_axis_has_its_ends)
{
    static const struct {
        const char *text;
        uint32_t n;
        double last;
    } axes[] = {
        {"tau=0.3:0.9:0.1", 7, 0.9}, {"tau=0.3:0.3:1", 1, 0.3}, {"tau=0:1:0.05", 21, 1}, {"tau=0.3:0.88:0.1", 6, 0.8}};
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++) {
        struct knob_axis a;
        struct err err = {0};
        assert_ok(knob_axis_parse(&a, axes[i].text, "--grid", &err), err);
        assert_ok(knob_axis_check(&a, &tau, "specbound", "--grid", &err), err);
        assert_string_equal(a.name, "tau");
        assert_int_equal(a.n, axes[i].n);
        assert_number_equal(knob_axis_value(&a, &tau, a.n - 1), axes[i].last); /* exactly the number as written */
    }
}

TEST(invalid_axes_are_refused)
{
    static const char *const wrong[] = {"",
                                        "gamma",
                                        "gamma=",
                                        "gamma=1",
                                        "gamma=1:2",
                                        "gamma=1:2:",
                                        "gamma=2:1:1",
                                        "gamma=1:2:0",
                                        "gamma=1:2:x",
                                        "gamma=1:2:1:1",
                                        "=1:2:1",
                                        "g=1:nan:1",
                                        "a23456789012345678=1:2:1",
                                        "gamma=1:2:-1",
                                        "g=inf:2:1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct knob_axis a;
        struct err err = {0};
        assert_false(knob_axis_parse(&a, wrong[i], ":sweep", &err));
        assert_int_equal(err.kind, ERR_USAGE);
        assert_int_equal(strncmp(err.text, ":sweep ", 7), 0);
        assert_contains(err.text, "KNOB=from:to:step is wanted");
    }
    struct knob_axis a;
    struct err err = {0};
    assert_false(knob_axis_parse(&a, "gamma=1:2:0.0001", ":sweep", &err));
    assert_contains(err.text, "10001 points; 1000 are possible");
}

TEST(values_that_the_knob_lacks_are_refused)
{
    static const struct {
        const char *text, *why;
    } wrong[] = {{"gamma=1:17:1", "policy layerskip: "}, {"gamma=1:2:0.5", "1.5 is between them"}};
    static const char *const names[] = {"static", "dynamic", NULL};
    const struct knob choice = {.name = "mode", .kind = KNOB_CHOICE, .max = 1, .choices = names};
    struct knob_axis a;
    struct err err = {0};
    for (size_t i = 0; i < 2; i++) {
        assert_ok(knob_axis_parse(&a, wrong[i].text, "--grid", &err), err);
        assert_false(knob_axis_check(&a, &gamma_knob, "layerskip", "--grid", &err));
        assert_contains(err.text, wrong[i].why);
    }
    assert_ok(knob_axis_parse(&a, "mode=0:1:1", "--grid", &err), err);
    assert_false(knob_axis_check(&a, &choice, "p", "--grid", &err));
    assert_contains(err.text, "a choice by name");
}

TEST(points_count_with_the_last_knob_the_fastest)
{
    const struct knob_axis a = {.n = 3}, b = {.n = 2}, c = {.n = 4}, large = {.n = 900};
    const struct knob_axis *const axes[] = {&a, &b, &c}, *const too_many[] = {&large, &large, &large, &large};
    uint32_t at[3], point = 0;
    assert_int_equal(knob_grid_points(axes, 3), 24);
    assert_int_equal(knob_grid_points(axes, 0), 1);
    assert_int_equal(knob_grid_points(too_many, 4), KNOB_GRID_MOST + 1);
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t j = 0; j < 2; j++)
            for (uint32_t k = 0; k < 4; k++) {
                knob_grid_at(axes, 3, point++, at);
                assert_int_equal(at[0], i);
                assert_int_equal(at[1], j);
                assert_int_equal(at[2], k);
            }
}
