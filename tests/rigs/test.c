#include "tests/rigs/test.h"

enum { MOST = 512 };

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
add_test_of(const char *name, const char *sentence, CMUnitTestFunction test)
{
    static char titles[MOST][128];
    char *title = titles[n_tests < MOST ? n_tests : 0];
    snprintf(title, sizeof titles[0], "test_%s_%s", name, sentence);
    add_test(&(struct CMUnitTest){title, test, NULL, NULL, (void *)(uintptr_t)name});
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
