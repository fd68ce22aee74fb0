#include "tests/rigs/test.h"

#include <math.h>

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

void
compare_numbers(long double a, const char *comparison, long double b, const char *what, const char *file, int line)
{
    const bool or_equal = comparison[1] == '=';
    if ((a < b && *comparison == '<') || (a > b && *comparison == '>') || (a == b && or_equal))
        return;
    print_error("%s is false: %.17Lg, %.17Lg\n", what, a, b);
    _fail(file, line);
}

void
compare_range(long double value, long double low, long double high, const char *what, const char *file, int line)
{
    if (value >= low && value <= high)
        return;
    print_error("%s is %.17Lg, which is not in %.17Lg to %.17Lg\n", what, value, low, high);
    _fail(file, line);
}

void
compare_near(long double a, long double b, long double bound, const char *what, const char *file, int line)
{
    if (fabsl(a - b) < bound)
        return;
    print_error("%s are %.17Lg and %.17Lg, which differ by %Lg; the bound is %Lg\n", what, a, b, fabsl(a - b), bound);
    _fail(file, line);
}

void
search_text(const char *text, const char *part, bool present, const char *file, int line)
{
    if (text && (strstr(text, part) != NULL) == present)
        return;
    print_error("'%s' is %s '%s'\n", part, present ? "not in" : "in", text ? text : "(null)");
    _fail(file, line);
}

/* A program may have a main() of its own. */
__attribute__((weak)) int
main(int argc, char **argv)
{
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return run_listed_tests();
}
