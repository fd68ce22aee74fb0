#include "tests/rigs/test.h"

enum { MOST = 64 };

static struct CMUnitTest tests[MOST];
static size_t n_tests;
static CMFixtureFunction group_prepare, group_clean;

void
add_test(const struct CMUnitTest *test)
{
    if (n_tests == MOST)
        abort();
    tests[n_tests++] = *test;
}

void
set_fixture(CMFixtureFunction prepare, CMFixtureFunction clean)
{
    group_prepare = prepare;
    group_clean = clean;
}

int
run_listed_tests(void)
{
    return _cmocka_run_group_tests("tests", tests, n_tests, group_prepare, group_clean);
}

/* A program may have a main() of its own. */
__attribute__((weak)) int
main(int argc, char **argv)
{
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return run_listed_tests();
}
