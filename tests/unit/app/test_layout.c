/* The layout of panels, on every size of terminal and with every set of active panels. */
#include "tests/rigs/test.h"
#include "tui/app/layout.h"

enum { PANELS = 9, EVERY = (1 << PANELS) - 1 };

static const struct layout_item all[PANELS] = {
    {PANEL_TOP, 2, 30, 0, true, false, false, 0, 0},    {PANEL_TOP, 3, 40, 0, true, false, false, 0, 0},
    {PANEL_BOTTOM, 4, 40, 0, true, false, false, 0, 0}, {PANEL_BOTTOM, 3, 30, 0, true, false, false, 0, 0},
    {PANEL_BOTTOM, 2, 24, 0, true, false, false, 0, 0}, {PANEL_BOTTOM, 3, 30, 0, true, false, false, 0, 0},
    {PANEL_MIDDLE, 3, 50, 0, true, false, false, 0, 0}, {PANEL_MIDDLE, 4, 40, 0, true, true, false, 0, 0},
    {PANEL_MIDDLE, 3, 36, 0, true, false, false, 0, 0},
};

static struct layout
laid(int rows, int cols, unsigned active, int focus, bool zoom)
{
    struct layout_item items[PANELS];
    struct layout l;
    memcpy(items, all, sizeof items);
    for (int i = 0; i < PANELS; i++)
        items[i].active = (active >> i & 1) != 0;
    layout_compute(&l, rows, cols, items, PANELS, focus, zoom);
    return l;
}

/* Counts how often each cell is covered. */
static void
cover(unsigned char *cells, int cols, int rows, const struct rect *r)
{
    if (r->rows == 0)
        return;
    assert_at_least(r->y, 0);
    assert_at_least(r->x, 0);
    assert_greater(r->rows, 0);
    assert_greater(r->cols, 0);
    assert_at_most(r->y + r->rows, rows);
    assert_at_most(r->x + r->cols, cols);
    for (int y = r->y; y < r->y + r->rows; y++)
        for (int x = r->x; x < r->x + r->cols; x++)
            cells[y * cols + x]++;
}

static void
check_cover(int rows, int cols, unsigned active, int focus, bool zoom)
{
    static unsigned char cells[110 * 310];
    const struct layout l = laid(rows, cols, active, focus, zoom);
    memset(cells, 0, sizeof cells);
    cover(cells, cols, rows, &l.title);
    cover(cells, cols, rows, &l.tab_bar);
    cover(cells, cols, rows, &l.gap);
    cover(cells, cols, rows, &l.timeline);
    cover(cells, cols, rows, &l.measures);
    cover(cells, cols, rows, &l.status);
    for (int i = 0; i < PANELS; i++) {
        cover(cells, cols, rows, &l.panel[i]);
        if (l.panel[i].rows > 0)
            assert_int_not_equal(active >> i & 1, 0);
    }
    for (int i = 0; i < rows * cols; i++)
        if (cells[i] != 1)
            fail_msg("%d×%d, active %x, focus %d: cell %d,%d is covered %d times", cols, rows, active, focus, i / cols,
                     i % cols, cells[i]);
    assert_at_least(l.panel[focus].rows, l.bare ? 2 : 3); /* the panel in focus is visible */
}

TEST(every_cell_belongs_to_exactly_one_thing)
{
    for (int rows = LAYOUT_MIN_ROWS; rows < 100; rows += 9)
        for (int cols = LAYOUT_MIN_COLS; cols < 300; cols += 19)
            for (unsigned active = 1; active < 1U << PANELS; active += 2) /* the text is always active */
                for (int focus = 0; focus < PANELS; focus++)
                    if ((active >> focus & 1) != 0) {
                        check_cover(rows, cols, active, focus, false);
                        check_cover(rows, cols, active, focus, true);
                    }
}

static int
shown(const struct layout *l)
{
    int n = 0;
    for (int i = 0; i < PANELS; i++)
        n += l->panel[i].rows > 0;
    return n;
}

TEST(tiny_terminals_show_nothing_but_the_size_they_need)
{
    for (int rows = 1; rows < 40; rows++)
        for (int cols = 1; cols < 100; cols++) {
            const struct layout l = laid(rows, cols, EVERY, 0, false);
            assert_int_equal(l.too_small, rows < LAYOUT_MIN_ROWS || cols < LAYOUT_MIN_COLS);
            if (l.too_small)
                assert_int_equal(shown(&l), 0);
        }
}

TEST(small_terminals_lose_the_boxes_and_keep_text_bar_and_one_tab)
{
    static const struct {
        int rows, cols;
    } sizes[] = {{10, 40}, {23, 79}, {23, 200}, {60, 79}, {10, 300}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int focus = 0; focus < PANELS; focus++) {
            const struct layout l = laid(sizes[i].rows, sizes[i].cols, EVERY, focus, false);
            assert_true(l.bare);
            assert_int_equal(shown(&l), 2);
            assert_at_least(l.panel[0].rows, 2);
            assert_at_least(l.panel[focus].rows, 2);
            assert_int_equal(l.measures.rows, 1);
            assert_int_equal(l.status.rows, 1);
            assert_int_equal(l.tab_bar.rows, 1);
        }
    assert_false(laid(24, 80, EVERY, 0, false).bare);
}

TEST(narrow_terminals_keep_the_text_above_one_tab)
{
    for (int focus = 0; focus < PANELS; focus++) {
        const struct layout l = laid(24, 80, EVERY, focus, false);
        assert_true(l.tabs);
        assert_int_equal(shown(&l), 2);
        assert_at_least(l.panel[0].rows, 6);
        assert_less(l.panel[0].y, l.tab_bar.y);
        assert_int_equal(l.tab_bar.rows, 1);
    }
}

TEST(tall_narrow_terminals_stack_panels)
{
    for (int focus = 0; focus < PANELS; focus++) {
        const struct layout l = laid(60, 80, EVERY, focus, false);
        assert_false(l.tabs);
        assert_int_equal(l.panel[0].cols, 80);
        assert_int_equal(l.panel[1].cols, 80);
        assert_greater(l.panel[1].y, l.panel[0].y);
        assert_at_least(shown(&l), 4);
        assert_at_least(l.panel[focus].rows, 8);
    }
}

TEST(wide_terminals_show_panels_side_by_side)
{
    const struct layout l = laid(42, 150, 63, 0, false);
    assert_false(l.tabs);
    for (int i = 0; i < 6; i++) {
        assert_greater(l.panel[i].rows, 0);
        assert_at_least(l.panel[i].cols, all[i].min_cols);
    }
    assert_int_equal(l.panel[0].y, l.panel[1].y);
    assert_int_equal(l.panel[2].y, l.panel[5].y);
    assert_greater(l.panel[0].rows, l.panel[2].rows);
}

/* On 120×36 there are two panels above and three or four below. A middle panel is shown only if it has the focus. */
TEST(middle_panels_need_height_or_the_focus)
{
    for (int focus = 0; focus < 6; focus++) {
        const struct layout with = laid(36, 120, EVERY, focus, false), without = laid(36, 120, 63, focus, false);
        assert_memory_equal(with.panel, without.panel, sizeof with.panel);
    }
    const struct layout asked = laid(36, 120, EVERY, 7, false);
    assert_at_least(asked.panel[7].rows, 8);
    assert_at_least(asked.panel[0].rows, 11);
    static const struct {
        int rows, cols;
    } large[] = {{48, 160}, {60, 200}, {60, 260}, {100, 300}};
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        const struct layout l = laid(large[i].rows, large[i].cols, EVERY, 4, false);
        for (int k = 0; k < PANELS; k++) {
            assert_at_least(l.panel[k].rows, 8);
            assert_at_least(l.panel[k].cols, all[k].min_cols);
        }
        assert_greater(l.panel[6].y, l.panel[0].y);
        assert_greater(l.panel[2].y, l.panel[6].y);
    }
}

/* On 160×48 a single middle panel is below the text. The layers, to the right of both, keep the whole height. */
TEST(a_large_screen_has_the_middle_below_one_of_the_upper_panels)
{
    const struct layout one = laid(48, 170, 63 | 1 << 6, 4, false);
    assert_int_equal(one.panel[6].x, one.panel[0].x);
    assert_int_equal(one.panel[6].cols, one.panel[0].cols);
    assert_int_equal(one.panel[6].y, one.panel[0].y + one.panel[0].rows);
    assert_int_equal(one.panel[1].rows, one.panel[0].rows + one.panel[6].rows);
    const struct layout two = laid(60, 200, 63 | 3 << 6, 4, false); /* the second middle panel is below the layers */
    assert_int_equal(two.panel[7].x, two.panel[1].x);
    assert_at_least(two.panel[7].rows, LAYOUT_LEAST);
    assert_at_least(two.panel[1].rows, 18);
}

/* On 160×48 the panel of layers has a row for each of sixteen layers, and rows for d_max, a cell's values and two more.
 * On 260×70 it also has the rows of an opened cell. The rows that are left go to the panels below. */
TEST(rows_that_an_upper_panel_cannot_fill_go_to_others)
{
    struct layout_item items[PANELS];
    struct layout l, any;
    memcpy(items, all, sizeof items);
    layout_compute(&any, 70, 260, items, PANELS, 4, false);
    items[1].good_rows = 22;
    items[1].more_rows = 9;
    layout_compute(&l, 48, 160, items, PANELS, 4, false);
    assert_int_equal(l.panel[1].rows, 22);
    layout_compute(&l, 70, 260, items, PANELS, 4, false);
    assert_int_equal(l.panel[1].rows, 31);
    assert_greater(l.panel[2].rows, any.panel[2].rows);
    items[1].good_rows = 36; /* thirty layers fit, an opened cell does not */
    layout_compute(&l, 70, 260, items, PANELS, 4, false);
    assert_int_equal(l.panel[1].rows, 36);
    items[1].good_rows = 86; /* eighty do not fit: the layout is the same as without good_rows */
    layout_compute(&l, 70, 260, items, PANELS, 4, false);
    assert_memory_equal(l.panel, any.panel, sizeof l.panel);
}

/* Panels that do not fit into one row are laid out in a second row, without a gap. */
TEST(many_panels_of_a_place_make_further_bands)
{
    struct layout_item items[12];
    for (int i = 0; i < 12; i++)
        items[i] = (struct layout_item){
            i < 2 ? PANEL_TOP : i < 6 ? PANEL_MIDDLE : PANEL_BOTTOM, 1, 40, 0, true, false, false, 0, 0};
    struct layout l;
    layout_compute(&l, 70, 130, items, 12, 11, false);
    for (int i = 0; i < 12; i++) {
        assert_at_least(l.panel[i].rows, 7);
        assert_at_least(l.panel[i].cols, 40);
    }
    layout_compute(&l, 36, 130, items, 12, 11, false);
    assert_at_least(l.panel[11].rows, 8); /* the panel in focus comes before panels that were declared earlier */
    assert_int_equal(l.panel[8].rows, 0);
}

TEST(the_space_of_an_inactive_panel_is_shared_out)
{
    const struct layout full = laid(42, 150, 63, 0, false);
    const struct layout without = laid(42, 150, 63 & ~(1U << 4), 0, false);
    assert_int_equal(without.panel[4].rows, 0);
    assert_greater(without.panel[2].cols, full.panel[2].cols);
}

TEST(a_click_finds_the_panel_under_it)
{
    const struct layout l = laid(42, 150, 63, 0, false);
    for (int i = 0; i < 6; i++) {
        const struct rect *r = &l.panel[i];
        assert_int_equal(layout_at(&l, PANELS, r->y, r->x), i);
        assert_int_equal(layout_at(&l, PANELS, r->y + r->rows - 1, r->x + r->cols - 1), i);
    }
    assert_int_equal(layout_at(&l, PANELS, 0, 0), -1);
    assert_int_equal(layout_at(&l, PANELS, 41, 10), -1);
}

/* On a large terminal a panel that omits values when it is narrow gets the columns that it can use. */
TEST(panels_in_a_row_get_the_columns_that_they_can_use)
{
    struct layout_item items[5] = {{PANEL_TOP, 3, 24, 0, true, false, false, 0, 0},
                                   {PANEL_TOP, 4, 30, 0, true, false, false, 0, 0},
                                   {PANEL_MIDDLE, 5, 50, 72, true, false, false, 0, 0},
                                   {PANEL_MIDDLE, 4, 30, 0, true, false, false, 0, 0},
                                   {PANEL_MIDDLE, 4, 30, 0, true, false, false, 0, 0}};
    struct layout l;
    for (int cols = 150; cols <= 300; cols += 5) {
        layout_compute(&l, 60, cols, items, 5, 0, false);
        const struct rect *wide = &l.panel[2], *above = &l.panel[wide->x >= l.panel[1].x ? 1 : 0];
        assert_greater(wide->rows, 0);
        assert_true(wide->cols >= 72 || wide->cols == above->cols); /* a narrower panel is alone in its row */
        assert_greater(l.panel[3].rows, 0);
        assert_greater(l.panel[4].rows, 0);
    }
}

TEST(a_line_about_the_device_takes_a_row_from_the_rest_where_there_are_enough)
{
    struct layout l;
    const struct layout_item items[] = {{PANEL_TOP, 1, 20, 0, true, false, false, 0, 0}};
    for (int rows = LAYOUT_MIN_ROWS; rows < 60; rows++) {
        layout_compute(&l, layout_rows(rows, false, false), 120, items, 1, 0, false);
        layout_add_lines(&l, rows, false, false);
        assert_int_equal(l.device.rows, 0);
        assert_int_equal(l.status.y, rows - 1);
        layout_compute(&l, layout_rows(rows, false, true), 120, items, 1, 0, false);
        layout_add_lines(&l, rows, false, true);
        assert_int_equal(l.device.rows, rows >= LAYOUT_DEVICE);
        assert_int_equal(l.status.y, rows - 1);
        if (l.device.rows > 0) {
            assert_int_equal(l.device.y, rows - 2);
            assert_int_equal(l.measures.y, rows - 3);
        }
    }
}

TEST(a_line_about_the_gain_is_between_the_measures_and_the_device)
{
    struct layout l;
    const struct layout_item items[] = {{PANEL_TOP, 1, 20, 0, true, false, false, 0, 0}};
    for (int rows = LAYOUT_MIN_ROWS; rows < 60; rows++)
        for (int device = 0; device < 2; device++) {
            layout_compute(&l, layout_rows(rows, true, device), 120, items, 1, 0, false);
            layout_add_lines(&l, rows, true, device);
            assert_int_equal(l.reason.rows, rows - device > LAYOUT_BOXED_ROWS);
            assert_int_equal(l.bare, rows - device < LAYOUT_BOXED_ROWS);
            assert_int_equal(l.device.rows, rows >= LAYOUT_DEVICE && device);
            assert_int_equal(l.status.y, rows - 1);
            if (l.reason.rows > 0)
                assert_int_equal(l.reason.y, l.measures.y + 1);
            if (l.device.rows > 0 && l.reason.rows > 0)
                assert_int_equal(l.device.y, l.reason.y + 1);
        }
}
