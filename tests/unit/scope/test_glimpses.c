/* The values that remain of discarded cells, against the events. */
#include "engine/scope/sequence_cells.h"
#include "tests/rigs/scope_rig.h"
#include "tests/rigs/test.h"

TEST(a_glimpse_is_a_byte_of_a_confidence_and_whether_it_was_spurious)
{
    for (int i = 0; i <= 1000; i++) {
        const float p = (float)i / 1000;
        for (int spurious = 0; spurious < 2; spurious++) {
            const uint8_t g = glimpse_make(p, spurious != 0);
            assert_at_most(fabsf(glimpse_confidence(g) - p), 0.5f / 126 + 1e-6f);
            assert_int_equal(glimpse_spurious(g), spurious);
        }
    }
    assert_true(isnan(glimpse_confidence(0)));
    assert_number_equal(glimpse_confidence(glimpse_make(NAN, false)), 0);
    assert_number_equal(glimpse_confidence(glimpse_make(7, false)), 1);
}

TEST(the_ring_of_glimpses_keeps_the_newest)
{
    struct ring g = {0};
    assert_null(ring_at(&g, 0));
    for (uint32_t pos = 0; pos < 5000; pos += 1 + pos % 3)
        memset(ring_keep(&g, 1000, 3, pos), (int)(pos % 251), 3);
    assert_int_equal(ring_bytes(&g), 1000 * (3 + sizeof(uint32_t)));
    for (uint32_t pos = 0, next = 0; pos < 6000; pos++) {
        const bool kept = pos == next && pos < 5000;
        next = kept ? pos + 1 + pos % 3 : next;
        const uint8_t *at = ring_at(&g, pos);
        if (kept && pos >= 4000) {
            assert_non_null(at);
            assert_int_equal(at[0], pos % 251);
            assert_int_equal(at[2], pos % 251);
        } else if (!kept)
            assert_null(at);
    }
    ring_close(&g);
    assert_null(ring_at(&g, 4999));
}

struct heard { /* the last probe of a position in the stream */
    token_t token[FAKE_LAYERS + 1];
    float confidence[FAKE_LAYERS + 1];
    uint32_t round;
};

SCOPE_TEST(a_long_run_is_kept_as_glimpses)
{
    struct fixture *f = *state;
    struct decoder d = {.probe_all = true};
    static struct heard heard[4 * SCOPE_COLUMNS];
    memset(heard, 0, sizeof heard);
    f->info.ctx = 1u << 20;
    decode_begin(&d, &f->stream, &f->info, 20);
    while (d.length < 3 * SCOPE_COLUMNS)
        decode_round(&d);
    seen(f);
    for (size_t i = 0; i < f->stream.n; i++) {
        const struct event *e = &f->stream.events[i];
        const struct layer_event *g = &e->layer;
        if (e->type != EVENT_LAYER || g->probed_by != PROBED_SCOPE || e->round == 0 || e->run != 2)
            continue;
        assert_less(g->pos, 4 * SCOPE_COLUMNS);
        heard[g->pos].token[g->layer] = g->token;
        heard[g->pos].confidence[g->layer] = g->confidence;
        heard[g->pos].round = e->round;
    }
    uint32_t compared = 0, spurious = 0;
    for (uint32_t pos = 0; pos < scope_now(f->scope)->committed; pos++) {
        uint8_t bytes[FAKE_LAYERS];
        const struct heard *h = &heard[pos];
        if (h->round == 0)
            continue;
        assert_true(scope_glimpse(f->scope, pos, bytes));
        for (uint32_t l = 1; l <= FAKE_LAYERS; l++) {
            const bool wrong = h->token[l] != h->token[FAKE_LAYERS] && h->confidence[l] >= 0.6f;
            assert_int_equal(bytes[l - 1], glimpse_make(h->confidence[l], wrong));
            spurious += wrong;
        }
        compared += pos < scope_first_cells(f->scope);
    }
    assert_greater(compared, SCOPE_COLUMNS);
    assert_greater(spurious, 100);
    /* A new run begins with nothing. */
    uint8_t bytes[FAKE_LAYERS];
    decode_begin(&d, &f->stream, &f->info, 20);
    seen(f);
    assert_false(scope_glimpse(f->scope, 30, bytes));
}

SCOPE_TEST(glimpses_are_bounded)
{
    struct fixture *f = *state;
    uint8_t bytes[FAKE_LAYERS];
    f->info.ctx = 1u << 20;
    const uint32_t n = SCOPE_POSITIONS + SCOPE_COLUMNS + 500;
    for (uint32_t pos = 4; pos < n; pos++) {
        f->stream.round = pos - 3;
        say_token(&f->stream, SOURCE_BONUS, pos, 5);
        say_layer(&f->stream, pos, 1, 9, 0.5f);
        say_round(&f->stream, 0, 0, 1);
    }
    seen(f);
    assert_false(scope_glimpse(f->scope, n - SCOPE_POSITIONS - 1, bytes));
    assert_true(scope_glimpse(f->scope, n - SCOPE_POSITIONS, bytes));
    assert_int_equal(bytes[0], glimpse_make(0.5f, false));
    assert_int_equal(bytes[1], 0);
    assert_true(scope_glimpse(f->scope, n - 1, bytes));
    assert_false(scope_glimpse(f->scope, n, bytes));
}
