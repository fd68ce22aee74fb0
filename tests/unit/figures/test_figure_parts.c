/* Scales, ticks, labels, statistics and ramps, compared with slow definitions. */
#include <math.h>

#include "base/colour.h"
#include "base/rng.h"
#include "engine/scope/aggregates.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"
#include "tui/figures/drawing.h"
#include "tui/figures/figure.h"

static double
uniform(uint64_t *state)
{
    return splitmix64_uniform(state);
}

/* Counts the multiples of a step in a range one by one. */
static int
multiples(double low, double high, double step)
{
    int n = 0;
    for (double k = ceil(low / step) - 1; k * step <= high + 1e-9 * step; k++)
        n += k * step >= low - 1e-9 * step;
    return n;
}

TEST(ticks_are_as_many_round_numbers_as_there_is_room_for)
{
    uint64_t random = seed_or(20);
    for (int i = 0; i < 2000; i++) {
        const double low = (uniform(&random) - 0.5) * pow(10, 8 * uniform(&random) - 4);
        const double high = low + pow(10, 8 * uniform(&random) - 4);
        const int most = 2 + (int)(uniform(&random) * 12);
        double ticks[SCALE_TICKS], step;
        if (high - low < 1e-4 * fabs(low)) /* no axis has such a range, because its labels would be equal */
            continue;
        const int n = scale_ticks(low, high, most, false, ticks, &step);
        const double power = pow(10, floor(log10(step) + 1e-9)), digit = step / power;
        assert_true(fabs(digit - 1) < 1e-6 || fabs(digit - 2) < 1e-6 || fabs(digit - 5) < 1e-6);
        assert_at_most(n, most);
        assert_int_equal(n, multiples(low, high, step));
        for (int k = 0; k < n; k++) {
            assert_between(ticks[k], low - 1e-6 * step, high + 1e-6 * step);
            assert_near(ticks[k] / step, rint(ticks[k] / step), 1e-6);
            if (k > 0)
                assert_near(ticks[k] - ticks[k - 1], step, 1e-6 * step);
        }
        const double finer = fabs(digit - 1) < 1e-6 ? power / 2 : fabs(digit - 2) < 1e-6 ? power : 2 * power;
        assert_greater(multiples(low, high, finer), most);
    }
}

TEST(ticks_of_whole_numbers_are_whole)
{
    double ticks[SCALE_TICKS], step;
    assert_int_equal(scale_ticks(0.5, 3.5, 20, true, ticks, &step), 3);
    assert_number_equal(ticks[0], 1);
    assert_number_equal(ticks[1], 2);
    assert_number_equal(ticks[2], 3);
    assert_number_equal(step, 1);
    assert_int_equal(scale_ticks(0, 0, 5, true, ticks, &step), 0);
    assert_int_equal(scale_ticks(1, NAN, 5, false, ticks, &step), 0);
}

TEST(labels_tell_ticks_apart_and_read_back)
{
    for (double low = -3; low < 3; low += 0.37)
        for (double span = 1e-3; span < 1e5; span *= 3.7) {
            double ticks[SCALE_TICKS], step;
            char text[32], before[32] = "";
            const int n = scale_ticks(low, low + span, 8, false, ticks, &step);
            for (int k = 0; k < n; k++) {
                assert_near(strtod(scale_label(ticks[k], step, text, sizeof text), NULL), ticks[k], 1e-3 * step);
                assert_string_not_equal(text, before);
                memcpy(before, text, sizeof before);
            }
        }
    char text[32];
    assert_string_equal(scale_label(-0.0, 0.5, text, sizeof text), "0.0");
    assert_string_equal(value_label(NAN, text, sizeof text), "–");
    assert_string_equal(value_label(0.1234, text, sizeof text), "0.123");
    assert_string_equal(value_label(12.34, text, sizeof text), "12.3");
    assert_string_equal(value_label(1234.5, text, sizeof text), "1234");
    assert_string_equal(value_label(3, text, sizeof text), "3");
}

TEST(a_scale_is_a_straight_line)
{
    const struct scale up = {.low = -1, .high = 3, .from = 100, .to = 20};
    assert_number_equal(scale_at(&up, -1), 100);
    assert_number_equal(scale_at(&up, 3), 20);
    assert_number_equal(scale_at(&up, 1), 60);
    const struct scale point = {.low = 2, .high = 2, .from = 0, .to = 10};
    assert_number_equal(scale_at(&point, 2), 5);
}

TEST(ranges_accept_numbers_only)
{
    struct range r = RANGE_NONE;
    assert_less(range_shown(r, false).low, range_shown(r, false).high);
    range_add(&r, NAN);
    range_add(&r, INFINITY);
    assert_greater(r.low, r.high);
    range_add(&r, 5);
    assert_less(range_shown(r, false).low, 5);
    assert_greater(range_shown(r, false).high, 5);
    range_add(&r, 4.5);
    const struct range shown = range_shown(r, false);
    assert_less(shown.low, 4.5);
    assert_greater(shown.low, 0);
    assert_greater(shown.high, 5);
    range_add(&r, 1);
    assert_number_equal(range_shown(r, false).low, 0);
    const struct range share = range_shown((struct range){0.2, 0.3}, true);
    assert_number_equal(share.low, 0);
    assert_at_least(share.high, 1);
    assert_less(share.high, 1.1);
}

/* Finds a bound of Wilson's interval, where the share is z standard errors away, by bisection. */
static double
bound_by_halving(double share, double n, double from, double to)
{
    for (int i = 0; i < 200; i++) {
        const double p = (from + to) / 2;
        if (fabs(share - p) > 1.959963985 * sqrt(p * (1 - p) / n))
            from = p; /* p is outside the interval */
        else
            to = p;
    }
    return (from + to) / 2;
}

TEST(intervals_of_shares_are_wilsons)
{
    for (uint64_t of = 1; of < 60; of += 3)
        for (uint64_t n = 0; n <= of; n++) {
            const double share = (double)n / (double)of;
            double low, high;
            share_interval(n, of, &low, &high);
            assert_true(n == 0 ? low < 1e-9 : fabs(low - bound_by_halving(share, (double)of, 0, share)) < 1e-9);
            assert_true(n == of ? high > 1 - 1e-9 : fabs(high - bound_by_halving(share, (double)of, 1, share)) < 1e-9);
        }
    double low, high;
    share_interval(0, 0, &low, &high);
    assert_number_equal(low, 0);
    assert_number_equal(high, 1);
}

TEST(the_calibration_error_is_its_definition)
{
    uint64_t random = seed_or(20);
    enum { N = 500 };
    for (int round = 0; round < 40; round++) {
        double confidence[N];
        int right[N];
        struct calibration c = {0};
        const int n = 1 + (int)(uniform(&random) * (N - 1));
        for (int i = 0; i < n; i++) {
            confidence[i] = i == 0 ? 1 : uniform(&random);
            right[i] = uniform(&random) < confidence[i];
            calibration_add(&c, confidence[i], right[i]);
        }
        calibration_add(&c, NAN, 1);
        calibration_add(&c, -0.1, 1);
        double error = 0;
        for (int bin = 0; bin < CALIBRATION_BINS; bin++) {
            double in = 0, sure = 0, good = 0;
            for (int i = 0; i < n; i++) {
                const bool last = bin == CALIBRATION_BINS - 1 && confidence[i] == 1;
                if (last || (confidence[i] * CALIBRATION_BINS >= bin && confidence[i] * CALIBRATION_BINS < bin + 1)) {
                    in++;
                    sure += confidence[i];
                    good += right[i];
                }
            }
            assert_int_equal((uint64_t)in, c.n[bin]);
            assert_int_equal((uint64_t)good, c.right[bin]);
            error += in > 0 ? in / n * fabs(good / in - sure / in) : 0;
        }
        assert_int_equal((int)c.all, n);
        assert_near(calibration_error(&c), error, 1e-12);
    }
    assert_true(isnan(calibration_error(&(struct calibration){.all = 0})));
}

TEST(the_ramp_grows_darker_all_the_way)
{
    assert_near(colour_lightness(0xffffff), 100, 1e-6);
    assert_less(fabs(colour_lightness(0)), 1e-6);
    for (int i = 1; i <= 256; i++) {
        const double before = colour_lightness(ramp((i - 1) / 256.0)), here = colour_lightness(ramp(i / 256.0));
        assert_less(here, before);
    }
    assert_int_equal(ramp(NAN), 0xffffff);
    assert_int_equal(ramp(7), ramp(1));
}

TEST(inks_are_read_on_every_step_of_the_ramp)
{
    for (int i = 0; i <= 64; i++) {
        const int32_t ground = ramp(i / 64.0);
        assert_greater(fabs(colour_lightness(ground) - colour_lightness(ink_on(ground))), 38);
    }
}

/* Lines can be distinguished in a grey print: their marks differ, and so does the lightness of the first two. */
TEST(lines_differ_without_their_hues)
{
    for (int i = 0; i < LINE_STYLES; i++)
        for (int k = 0; k < i; k++)
            assert_int_not_equal(line_styles[i].mark, line_styles[k].mark);
    assert_greater(fabs(colour_lightness(line_styles[0].colour) - colour_lightness(line_styles[1].colour)), 12);
}

TEST(texts_are_cut_between_characters_to_fit)
{
    const struct lettering l = LETTERS(10, INK);
    static const char text[] = "Größe ⏎ 大きい ok";
    char out[64];
    for (double room = 0; room < 200; room += 0.7) {
        lettering_fit(&l, text, room, out, sizeof out);
        assert_at_most(lettering_width(&l, out), room + 1e-9);
        if (strcmp(out, text) == 0 || out[0] == '\0')
            continue;
        const char *dots = strstr(out, "…");
        assert_non_null(dots);
        assert_int_equal(dots[3], '\0');
        assert_memory_equal(out, text, (size_t)(dots - out));
        assert_int_not_equal((unsigned char)text[dots - out] & 0xc0, 0x80);
    }
    assert_string_equal(lettering_fit(&l, text, 1000, out, sizeof out), text);
    char small[12];
    assert_less(strlen(lettering_fit(&l, text, 1000, small, sizeof small)), sizeof small);
}

/* Ideographs and emoji are wide. Combining marks and joiners have no width. */
TEST(wide_characters_and_marks_have_their_widths)
{
    const struct lettering l = LETTERS(10, INK);
    assert_float_equal(lettering_width(&l, "日本語"), 30, 1e-9);
    assert_float_equal(lettering_width(&l, "한국어"), 30, 1e-9);
    assert_float_equal(lettering_width(&l, "ﾊﾝｶｸ"), 20, 1e-9);
    assert_float_equal(lettering_width(&l, "か\u3099"), lettering_width(&l, "か"), 1e-9);
    assert_float_equal(lettering_width(&l, "e\u0301"), lettering_width(&l, "e"), 1e-9);
    assert_float_equal(lettering_width(&l, "😀"), 12.5, 1e-9);
    assert_float_equal(lettering_width(&l, "👨\u200d👩\ufe0f"), 25, 1e-9);
}

TEST(control_characters_in_texts_are_made_visible)
{
    struct drawing d = {.width = 100};
    drawing_text(&d, 1, 2, LETTERS(10, INK), "a\033[2J<&>\"\n\xff");
    drawing_text(&d, 1, 2, LETTERS(10, INK), "");
    assert_int_equal(d.n_shapes, 1);
    assert_string_equal(d.texts, "a\\x1b[2J<&>\"⏎\\xff");
    drawing_close(&d);
}

TEST(the_lengths_of_a_figure_have_units)
{
    struct err err;
    double points = 0;
    assert_ok(figure_length("25.4mm", &points, &err), err);
    assert_near(points, 72, 1e-9);
    assert_ok(figure_length("2.54cm", &points, &err), err);
    assert_near(points, 72, 1e-9);
    assert_ok(figure_length("3.5in", &points, &err), err);
    assert_near(points, 252, 1e-9);
    assert_ok(figure_length("240pt", &points, &err), err);
    assert_number_equal(points, 240);
    static const char *const bad[] = {"", "85", "mm", "85 mm", "85km", "-85mm", "1mm", "nanmm", "1e9mm", "85mmm"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(figure_length(bad[i], &points, &err));
        assert_int_equal(err.kind, ERR_USAGE);
    }
}
