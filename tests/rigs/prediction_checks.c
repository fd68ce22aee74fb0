#include "tests/rigs/prediction_checks.h"

#include "tests/rigs/test.h"

#include <math.h>

static void
assert_value(float got, float want, double bound, const char *what)
{
    if (isnan(want) ? !isnan(got) : !(fabs((double)got - (double)want) <= bound * fmax(1, fabs((double)want))))
        fail_msg("%s is %g, not %g", what, (double)got, (double)want);
}

void
assert_prediction(const struct prediction *got, const struct prediction *want)
{
    assert_int_equal(got->token, want->token);
    assert_memory_equal(got->top, want->top, sizeof got->top);
    assert_int_equal(got->rank_final, want->rank_final);
    assert_value(got->confidence, want->confidence, 1e-5, "confidence");
    assert_value(got->annealed, want->annealed, 1e-5, "annealed");
    assert_value(got->entropy, want->entropy, 1e-4, "entropy");
    assert_value(got->kl_final, want->kl_final, 1e-4, "KL");
    for (size_t i = 0; i < PREDICTION_TOP; i++)
        assert_value(got->top_p[i], want->top_p[i], 1e-5, "probability");
}
