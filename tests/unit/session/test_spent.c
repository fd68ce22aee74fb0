/* A round's accounts: each amount is added to exactly one of them, and none is subtracted. */
#include "engine/session/sequence.h"
#include "tests/rigs/rest.h"
#include "tests/rigs/test.h"

TEST(loads_go_to_the_account_that_runs_and_those_aside_are_not_the_rounds_work)
{
    struct spent s;
    spent_begin(&s, SPENT_DRAFT, (struct loads){100, 10});
    spent_heads(&s, 5);
    const enum account before = spent_switch(&s, SPENT_LEARNING, (struct loads){104, 11});
    assert_int_equal(before, SPENT_DRAFT);
    spent_heads(&s, 1000); /* no drafts came from it */
    spent_switch(&s, before, (struct loads){120, 15});
    spent_switch(&s, SPENT_VERIFY, (struct loads){122, 16});
    spent_switch(&s, SPENT_LEARN, (struct loads){128.5, 17});
    spent_heads(&s, 7);
    spent_switch(&s, SPENT_PROBE, (struct loads){128.5, 18});
    spent_switch(&s, SPENT_PROBE, (struct loads){128.5, 30});
    assert_number_equal(s.loads[SPENT_DRAFT].layers, 6);
    assert_number_equal(s.loads[SPENT_DRAFT].heads, 2);
    assert_number_equal(s.loads[SPENT_LEARNING].layers, 16);
    assert_number_equal(s.loads[SPENT_LEARNING].heads, 4);
    assert_number_equal(s.loads[SPENT_VERIFY].layers, 6.5);
    assert_number_equal(s.loads[SPENT_VERIFY].heads, 1);
    assert_number_equal(s.loads[SPENT_LEARN].layers, 0);
    assert_number_equal(s.loads[SPENT_LEARN].heads, 1);
    assert_number_equal(s.loads[SPENT_PROBE].layers, 0);
    assert_number_equal(s.loads[SPENT_PROBE].heads, 12);
    const struct loads work = spent_work(&s);
    assert_number_equal(work.layers, 12.5);
    assert_number_equal(work.heads, 4);
    assert_int_equal(s.heads_ns, 12);
}

TEST(the_accounts_add_up_to_the_rounds_time)
{
    const struct loads none = {0};
    struct spent s;
    const uint64_t start = clock_ns();
    spent_begin(&s, SPENT_DRAFT, none);
    spent_switch(&s, SPENT_WAIT, none);
    rest_ms(3);
    spent_switch(&s, SPENT_DRAFT, none);
    spent_switch(&s, SPENT_VERIFY, none);
    rest_ms(3);
    spent_switch(&s, SPENT_PROBE, none);
    const uint64_t whole = clock_ns() - start;
    uint64_t sum = 0;
    for (int i = 0; i < ACCOUNTS; i++)
        sum += s.ns[i];
    assert_between(sum, 6000000, whole);
    assert_at_least(s.ns[SPENT_WAIT], 3000000);
    assert_at_least(s.ns[SPENT_VERIFY], 3000000);
    assert_int_equal(s.ns[SPENT_LEARNING] + s.ns[SPENT_LEARN], 0);
}

/* Two sequences one after the other, and the work that they share. */
TEST(time_of_one_sequence_alone_is_its_own)
{
    struct spent s, then, own[2] = {{.heads_ns = 0}};
    spent_begin(&s, SPENT_DRAFT, (struct loads){100, 10});
    spent_switch(&s, SPENT_DRAFT, (struct loads){101, 10}); /* for both */
    for (int i = 0; i < 2; i++) {
        const double more = 4 * i;
        then = s;
        if (i == 1)
            rest_ms(3);
        spent_heads(&s, 30 + (uint64_t)i);
        spent_switch(&s, SPENT_LEARNING, (struct loads){103 + more, 12});
        spent_switch(&s, SPENT_DRAFT, (struct loads){105 + more, 12});
        spent_own(&own[i], &then, &s);
    }
    spent_switch(&s, SPENT_VERIFY, (struct loads){109, 12});
    spent_switch(&s, SPENT_LEARN, (struct loads){115, 13});
    then = s;
    spent_heads(&s, 7);
    spent_switch(&s, SPENT_LEARN, (struct loads){115, 14});
    spent_own(&own[0], &then, &s);
    struct spent together = s;
    for (int i = 0; i < 2; i++)
        spent_less(&together, &own[i]);
    const struct loads work = spent_work(&together), first = spent_work(&own[0]), second = spent_work(&own[1]);
    assert_number_equal(work.layers, 1 + 6);
    assert_number_equal(work.heads, 1);
    assert_number_equal(first.layers, 2);
    assert_number_equal(first.heads, 2 + 1);
    assert_number_equal(own[0].loads[SPENT_LEARNING].layers, 2);
    assert_number_equal(second.layers, 2);
    assert_number_equal(second.heads, 0);
    assert_number_equal(own[1].loads[SPENT_LEARNING].layers, 2);
    assert_int_equal(own[0].heads_ns, 37);
    assert_int_equal(own[1].heads_ns, 31);
    assert_int_equal(together.heads_ns, 0);
    assert_at_least(own[1].ns[SPENT_DRAFT], 3000000);
    for (int i = 0; i < ACCOUNTS; i++)
        assert_int_equal(together.ns[i] + own[0].ns[i] + own[1].ns[i], s.ns[i]);
}
