/* Panels at any size, on any events, with any keys: they draw only inside their area, and draw the same at any time. */
#include "tests/rigs/panel_rig.h"
#include "tests/rigs/test.h"

#define PANELS 32 /* at most */

#define MARGIN 3

/* Draws every panel at the size, and fails if a cell outside of it changed. */
static void
draw_inside(struct fixture *f, void **states, int rows, int cols)
{
    assert_true(grid_open(&f->grid, rows + 2 * MARGIN, cols + 2 * MARGIN));
    for (size_t i = 0; panel_registry[i] != NULL; i++) {
        for (int k = 0; k < f->grid.rows * f->grid.cols; k++)
            f->grid.cells[k] = (struct grid_cell){.text = "#", .columns = 1, .heat = GRID_NO_HEAT};
        const struct canvas c = {.y = MARGIN, .x = MARGIN, .rows = rows, .cols = cols, .grid = &f->grid};
        char note[160] = "";
        if (panel_registry[i]->active != NULL)
            panel_registry[i]->active(&f->view);
        if (panel_registry[i]->note != NULL)
            panel_registry[i]->note(states[i], &f->view, note, (int)sizeof note);
        assert_non_null(memchr(note, '\0', sizeof note));
        panel_registry[i]->draw(states[i], &f->view, &c);
        for (int y = 0; y < f->grid.rows; y++)
            for (int x = 0; x < f->grid.cols; x++) {
                const struct grid_cell *cell = grid_at(&f->grid, y, x);
                const bool inside = y >= MARGIN && y < MARGIN + rows && x >= MARGIN && x < MARGIN + cols;
                if (!inside && strcmp(cell->text, "#") != 0)
                    fail_msg("%s drew outside of %d×%d", panel_registry[i]->name, rows, cols);
                for (const char *t = cell->text; *t != '\0'; t++)
                    if ((unsigned char)*t < ' ' || *t == 0x7f || (!f->grid.utf8 && (unsigned char)*t > 0x7f))
                        fail_msg("%s put byte %02x on the screen", panel_registry[i]->name, (unsigned char)*t);
            }
    }
}

static void
use_at_random(struct fixture *f, void **states)
{
    static const int keys[] = {'h',
                               'j',
                               'k',
                               'l',
                               'g',
                               'G',
                               'v',
                               'c',
                               '+',
                               '-',
                               '0',
                               '$',
                               'f',
                               '5',
                               '.',
                               '=',
                               INPUT_UP,
                               INPUT_DOWN,
                               INPUT_LEFT,
                               INPUT_RIGHT,
                               INPUT_PAGE_UP,
                               INPUT_HOME,
                               INPUT_END,
                               INPUT_PAGE_DOWN,
                               INPUT_ENTER,
                               INPUT_ESCAPE,
                               INPUT_BACKSPACE,
                               INPUT_SHIFT_LEFT,
                               INPUT_SHIFT_RIGHT};
    struct stream *s = &f->stream;
    const struct canvas c = {.rows = 10, .cols = 40, .grid = &f->grid};
    for (size_t i = 0; panel_registry[i] != NULL; i++) {
        if (panel_registry[i]->key != NULL)
            panel_registry[i]->key(states[i], &f->view, keys[stream_below(s, sizeof keys / sizeof keys[0])]);
        if (panel_registry[i]->mouse != NULL)
            panel_registry[i]->mouse(states[i], &f->view, &c, (int)stream_below(s, 14) - 2,
                                     (int)stream_below(s, 50) - 5, (enum mouse_action)stream_below(s, 6));
        if (panel_registry[i]->command != NULL && stream_below(s, 8) == 0)
            panel_registry[i]->command(states[i], &f->view, "search", "a");
    }
}

TEST(panels_stay_inside_in_random_states)
{
    static const int sizes[][2] = {{0, 0},  {1, 1},  {1, 30}, {2, 3},   {3, 12},   {4, 25},
                                   {30, 4}, {6, 26}, {9, 38}, {12, 72}, {30, 110}, {60, 20}};
    static const uint32_t layers[] = {1, 2, FAKE_LAYERS, 32, 126};
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct fixture f;
        void *states[PANELS];
        print_message("seed %u\n", (unsigned)seed);
        open_panels(&f, layers[seed % 5]);
        stream_begin(&f.stream, seed);
        f.view.live = seed % 4 != 0;
        f.view.search = seed % 2 == 0 ? "the" : "";
        f.grid.utf8 = seed % 5 != 1;
        f.grid.mono = seed % 2 == 0;
        for (size_t i = 0; panel_registry[i] != NULL; i++)
            assert_true(panel_open(panel_registry[i], &states[i]));
        if (seed <= 3) { /* unrelated events */
            if (seed > 1)
                stream_batch(&f.stream, 5, 14);
            if (seed > 2)
                stream_control(&f.stream, "versus", "forms");
            stream_fill(&f.stream);
        } else {
            struct decoder d = {.trees = seed % 2 == 0, .probe_all = seed % 3 == 0, .block = seed % 4 < 2};
            for (int run = 0; run < 2; run++) {
                decode_begin(&d, &f.stream, &f.info, 6);
                if (seed % 4 == 0)
                    stream_control(&f.stream, "versus", "judges");
                for (int i = 0; i < 12; i++)
                    decode_round(&d);
                stream_control(&f.stream, "policy", seed % 3 == 0 ? "judges" : seed % 2 == 0 ? "forms" : "ar");
            }
        }
        const size_t n = f.stream.n;
        for (size_t fed = 0; fed < n;) {
            const size_t until = fed + stream_below(&f.stream, (uint32_t)n / 10 + 2);
            for (; fed < until && fed < n; fed++)
                scope_event(f.scope, &f.stream.events[fed]);
            const bool unseen = seed % 2 != 0 && fed < n / 2; /* keys may come before the first frame */
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                if (!unseen)
                    draw_inside(&f, states, sizes[i][0], sizes[i][1]);
                use_at_random(&f, states);
            }
        }
        for (size_t i = 0; panel_registry[i] != NULL; i++)
            panel_close(panel_registry[i], states[i]);
        close_panels(&f);
    }
}

/* A panel that was drawn throughout a run and one that is first drawn at its end show the same. */
TEST(a_picture_does_not_depend_on_when_it_was_drawn)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct fixture f, g;
        print_message("seed %u\n", (unsigned)seed);
        open_panels(&f, FAKE_LAYERS);
        open_panels(&g, FAKE_LAYERS);
        stream_begin(&f.stream, seed);
        struct decoder d = {.trees = seed % 2 == 0, .probe_all = seed % 3 == 0, .block = seed % 4 < 2};
        decode_begin(&d, &f.stream, &f.info, 6);
        if (seed % 2 == 0)
            stream_control(&f.stream, "policy", "judges");
        for (int i = 0; i < 40; i++)
            decode_round(&d);
        feed(g.scope, &f.stream, 0);
        static const char *const still[] = {"text", "layers", "rounds", "series", "knobs", "judge"};
        for (size_t k = 0; k < sizeof still / sizeof still[0]; k++) {
            use(&f, still[k]);
            use(&g, still[k]);
            f.selection = g.selection = (struct selection){.follow = true};
            scope_reset(f.scope);
            const size_t n = f.stream.n;
            for (size_t i = 0; i < n; i++) {
                scope_event(f.scope, &f.stream.events[i]);
                f.fed = n;
                if (i % 7 == 0)
                    draw(&f, 12, 50);
            }
            draw(&f, 12, 50);
            draw(&g, 12, 50);
            for (int i = 0; i < 9 && strcmp(still[k], "layers") == 0; i++) { /* the same keys in both */
                press(&f, i % 3 == 2 ? 'k' : 'h');
                press(&g, i % 3 == 2 ? 'k' : 'h');
                draw(&f, 12, 50);
                draw(&g, 12, 50);
            }
            for (int y = 0; y < 12; y++) {
                char other[4096];
                snprintf(other, sizeof other, "%s", line(&g, y));
                assert_string_equal(line(&f, y), other);
            }
            panel_close(f.ops, f.panel);
            panel_close(g.ops, g.panel);
            f.ops = g.ops = NULL;
        }
        close_panels(&f);
        close_panels(&g);
    }
}
