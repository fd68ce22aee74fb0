/* A server's own counters, from events: what is unknown is left out. */
#include "tests/rigs/panel_rig.h"
#include "tests/rigs/test.h"

PANEL_TEST(the_panel_of_a_server_gives_its_room_away_without_counters)
{
    struct fixture *f = *state;
    see(f);
    use(f, "server");
    assert_false(f->ops->active(&f->view));
    stream_control(&f->stream, "server", "{\"running\": 2}");
    see(f);
    assert_true(f->ops->active(&f->view));
}

PANEL_TEST(counters_of_a_server_are_compared_with_the_run)
{
    struct fixture *f = *state;
    f->stream.round = 1;
    say_round(&f->stream, 2, 1, 2);
    stream_control(&f->stream, "server",
                   "{\"running\": 2, \"waiting\": 5, \"tokens_per_s\": 81.4, \"drafts\": 10, \"drafted\": 20, "
                   "\"accepted\": 11, \"at\": [8, 3]}");
    see(f);
    use(f, "server");
    draw(f, 8, 60);
    assert_string_equal(line(f, 0), "2 in progress · 5 waiting · 81 tok/s");
    assert_string_equal(line(f, 1), "10 rounds with drafts since its start");
    assert_string_equal(line(f, 2), "0.55 of 20 drafts accepted");
    assert_string_equal(line(f, 4), "position 1     2");
    assert_string_equal(line(f, 5), "this run 1.00  0.00");
    assert_string_equal(line(f, 6), "server   0.80  0.30");
}

PANEL_TEST(unknown_counters_of_a_server_are_left_out)
{
    struct fixture *f = *state;
    stream_control(&f->stream, "server", "{\"waiting\": 1, \"running\": \"\\u001b[2J\", \"drafts\": 0, \"at\": 7}");
    see(f);
    use(f, "server");
    draw(f, 8, 60);
    assert_string_equal(line(f, 0), "1 waiting");
    assert_string_equal(line(f, 1), "it has drafted nothing since its start");
    stream_control(&f->stream, "server", "no JSON");
    see(f);
    draw(f, 8, 60);
    assert_string_equal(line(f, 0), "");
}
