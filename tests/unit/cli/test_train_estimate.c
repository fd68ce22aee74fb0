/* The estimate that a training prints before it begins. */
#include "cli/train/train.h"
#include "tests/rigs/test.h"

TEST(an_estimate_has_the_time_of_all_and_of_each_part)
{
    char text[96];
    assert_string_equal(train_estimate("answers", 230, 590, text, sizeof text),
                        "about 14 min: answers 4 min, training 10 min");
    assert_string_equal(train_estimate("answers", 12.2, 40, text, sizeof text),
                        "about 53 s: answers 13 s, training 40 s");
    assert_string_equal(train_estimate("answers", 80, 2 * 3600, text, sizeof text),
                        "about 2.0 h: answers 80 s, training 2.0 h");
}
