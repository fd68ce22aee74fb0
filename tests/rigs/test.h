/* Included by every unit test program: cmocka with the headers that it needs, and the list of the program's tests.
 *
 * TEST(sentence) { … } defines the test test_sentence(void **state) and adds it to the list. TEST_WITH also has a
 * function that prepares *state and one that cleans up, and FIXTURE has the two of the whole program. main() is in
 * test.c: it runs the list in the order of definition, or the tests that its argument matches ('test_a_*'). A program
 * with a main() of its own calls run_listed_tests(). */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEST(name) TEST_WITH(name, NULL, NULL)
#define TEST_WITH(name, prepare, clean)                                                                                \
    static void test_##name(void **state);                                                                             \
    __attribute__((constructor)) static void add_##name(void)                                                          \
    {                                                                                                                  \
        add_test(&(struct CMUnitTest){"test_" #name, test_##name, prepare, clean, NULL});                              \
    }                                                                                                                  \
    static void test_##name(__attribute__((unused)) void **state)

#define FIXTURE(prepare, clean)                                                                                        \
    __attribute__((constructor)) static void add_fixture(void)                                                         \
    {                                                                                                                  \
        set_fixture(prepare, clean);                                                                                   \
    }                                                                                                                  \
    _Static_assert(true, "a semicolon follows")

/* Fails the test with the error's text unless the call, which fills `err` in, succeeds. */
#define assert_ok(call, err)                                                                                           \
    do {                                                                                                               \
        if (!(call))                                                                                                   \
            fail_msg("%s", (err).text);                                                                                \
    } while (0)

/* Comparisons that cmocka lacks; a failure prints the values. Each takes integers and floating-point numbers and
 * compares them exactly, as long double. */
#define assert_number_equal(a, b) compare_numbers(a, "==", b, #a " == " #b, __FILE__, __LINE__)
#define assert_less(a, b)         compare_numbers(a, "<", b, #a " < " #b, __FILE__, __LINE__)
#define assert_at_most(a, b)      compare_numbers(a, "<=", b, #a " <= " #b, __FILE__, __LINE__)
#define assert_greater(a, b)      compare_numbers(a, ">", b, #a " > " #b, __FILE__, __LINE__)
#define assert_at_least(a, b)     compare_numbers(a, ">=", b, #a " >= " #b, __FILE__, __LINE__)
/* low <= value <= high */
#define assert_between(value, low, high) compare_range(value, low, high, #value, __FILE__, __LINE__)
/* |a - b| < bound */
#define assert_near(a, b, bound)    compare_near(a, b, bound, #a ", " #b, __FILE__, __LINE__)
#define assert_contains(text, part) search_text(text, part, true, __FILE__, __LINE__)
#define assert_lacks(text, part)    search_text(text, part, false, __FILE__, __LINE__)

/* Adds a test for one entry of a table, whose name is in its title and is *state. For functions that run before
 * main(). */
void add_test_of(const char *name, const char *sentence, CMUnitTestFunction);

/* Used by the macros. */
void compare_numbers(long double a, const char *comparison, long double b, const char *what, const char *file,
                     int line);
void compare_range(long double value, long double low, long double high, const char *what, const char *file, int line);
void compare_near(long double a, long double b, long double bound, const char *what, const char *file, int line);
void search_text(const char *text, const char *part, bool present, const char *file, int line);
void add_test(const struct CMUnitTest *);
void set_fixture(CMFixtureFunction prepare, CMFixtureFunction clean);

/* Runs the tests of the list; returns the number of failed ones. */
int run_listed_tests(void);
