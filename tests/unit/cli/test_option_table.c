/* The table of options: its rows are consistent, and each type refuses texts that are not values of it. */
#include "cli/options/option_table.h"
#include "kernels/cpu/isa.h"
#include "tests/rigs/test.h"
#include "tui/figures/bench_table.h"

/* fail_msg() with the row's name. */
#define ROW_ASSERT(row, condition)                                                                                     \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail_msg("--%s: %s", (row)->name, #condition);                                                             \
    } while (0)

TEST(every_row_has_a_name_a_help_and_a_command)
{
    for (size_t i = 0; i < n_option_rows; i++) {
        const struct option_row *row = &option_rows[i];
        assert_non_null(row->name);
        ROW_ASSERT(row, strlen(row->name) > 1 && strspn(row->name, "abcdefghijklmnopqrstuvwxyz-") == strlen(row->name));
        ROW_ASSERT(row, row->help != NULL && row->help[0] != '\0' && strpbrk(row->help, "\n\t") == NULL);
        ROW_ASSERT(row, strlen(row->help) <= 60);
        ROW_ASSERT(row, row->commands != 0 && (row->commands & ~(unsigned)COMMAND_ALL) == 0);
        ROW_ASSERT(row, row->def == NULL || row->without == NULL);
        ROW_ASSERT(row, (row->words == NULL) == (row->n_words == 0));
    }
}

TEST(names_and_letters_are_unique_in_a_command)
{
    for (size_t i = 0; i < n_option_rows; i++)
        for (size_t k = 0; k < i; k++) {
            const struct option_row *a = &option_rows[i], *b = &option_rows[k];
            if ((a->commands & b->commands) == 0)
                continue;
            ROW_ASSERT(a, strcmp(a->name, b->name) != 0);
            ROW_ASSERT(a, a->letter == 0 || a->letter != b->letter);
        }
}

TEST(types_have_the_fields_that_they_need)
{
    for (size_t i = 0; i < n_option_rows; i++) {
        const struct option_row *row = &option_rows[i];
        const bool plain = row->type == OPTION_SWITCH || row->type == OPTION_PRINT;
        ROW_ASSERT(row, plain == (row->argument == NULL));
        ROW_ASSERT(row, (row->type == OPTION_CALL) == (row->set != NULL));
        ROW_ASSERT(row, (row->type == OPTION_PRINT) == (row->print != NULL));
        ROW_ASSERT(row, row->type != OPTION_CHOICE || row->n_words > 1);
        if (row->type != OPTION_CALL && row->type != OPTION_PRINT)
            ROW_ASSERT(row, row->size > 0 && row->at + row->size <= sizeof(struct options));
        switch (row->type) {
        case OPTION_SWITCH: ROW_ASSERT(row, row->size == sizeof(bool)); break;
        case OPTION_TEXT: ROW_ASSERT(row, row->size == sizeof(char *)); break;
        case OPTION_LIST: ROW_ASSERT(row, row->size == sizeof(struct option_list) && row->repeats); break;
        case OPTION_WHOLE:
            ROW_ASSERT(row, row->size == sizeof(uint32_t) || row->size == sizeof(uint64_t));
            ROW_ASSERT(row, row->least < row->most && (row->size == 8 || row->most <= UINT32_MAX));
            break;
        case OPTION_REAL:
            ROW_ASSERT(row, row->size == sizeof(float) || row->size == sizeof(double));
            ROW_ASSERT(row, row->low < row->high);
            break;
        case OPTION_CHOICE:
            ROW_ASSERT(row, row->size == sizeof(unsigned) || (row->size == sizeof(bool) && row->n_words == 2));
            break;
        case OPTION_CALL:
        case OPTION_PRINT: break;
        }
    }
}

TEST(the_default_of_each_option_is_a_value_that_it_accepts)
{
    for (size_t i = 0; i < n_option_rows; i++) {
        struct options o;
        struct err err = {0};
        options_init(&o, COMMAND_SCOPE);
        if (option_rows[i].def != NULL && !option_set(&o, &option_rows[i], option_rows[i].def, &err))
            fail_msg("%s", err.text);
        options_free(&o);
    }
}

static void
refuses(const struct option_row *row, const char *text)
{
    struct options o;
    struct err err = {0};
    options_init(&o, COMMAND_SCOPE);
    if (option_set(&o, row, text, &err))
        fail_msg("--%s took %s", row->name, text);
    ROW_ASSERT(row, err.kind == ERR_USAGE && strchr(err.text, '\n') == NULL && strstr(err.text, row->name) != NULL);
    options_free(&o);
}

TEST(bad_values_are_refused)
{
    static const char *const no_numbers[] = {"", "x", "-1", "1x", " 1", "+1", "1e99", "nan", "0x"};
    for (size_t i = 0; i < n_option_rows; i++) {
        const struct option_row *row = &option_rows[i];
        char text[64];
        if (row->type == OPTION_WHOLE) {
            for (size_t k = 0; k < sizeof no_numbers / sizeof *no_numbers; k++)
                refuses(row, no_numbers[k]);
            refuses(row, "1.5");
            refuses(row, "18446744073709551616");
            if (row->most < UINT64_MAX) {
                snprintf(text, sizeof text, "%llu", (unsigned long long)row->most + 1);
                refuses(row, text);
            }
            if (row->least > 0) {
                snprintf(text, sizeof text, "%llu", (unsigned long long)row->least - 1);
                refuses(row, text);
            }
        } else if (row->type == OPTION_REAL) {
            static const char *const no_reals[] = {"", "x", "1x", "nan", "inf", "-1", "1e300"};
            for (size_t k = 0; k < sizeof no_reals / sizeof *no_reals; k++)
                refuses(row, no_reals[k]);
        } else if (row->n_words > 0 && row->type != OPTION_TEXT) {
            refuses(row, "");
            refuses(row, "bogus");
        }
    }
}

TEST(the_bounds_of_each_option_are_values_that_it_accepts)
{
    for (size_t i = 0; i < n_option_rows; i++) {
        const struct option_row *row = &option_rows[i];
        struct options o;
        char text[64];
        options_init(&o, COMMAND_SCOPE);
        if (row->type == OPTION_WHOLE) {
            snprintf(text, sizeof text, "%llu", (unsigned long long)row->most);
            ROW_ASSERT(row, option_set(&o, row, text, NULL));
            const void *member = (const char *)&o + row->at;
            ROW_ASSERT(row, (row->size == 8 ? *(const uint64_t *)member : *(const uint32_t *)member) == row->most);
        }
        for (size_t k = 0; row->type == OPTION_CHOICE && k < row->n_words; k++)
            ROW_ASSERT(row, option_set(&o, row, row->words[k], NULL));
        options_free(&o);
    }
}

TEST(isa_has_the_names_of_this_build)
{
    const struct option_row *row = option_find("isa", COMMAND_RUN);
    for (size_t i = 0; cpu_isas[i] != NULL; i++) {
        bool found = false;
        for (size_t k = 0; k < row->n_words; k++)
            found = found || strcmp(row->words[k], cpu_isas[i]->name) == 0;
        if (!found)
            fail_msg("--isa does not know %s", cpu_isas[i]->name);
    }
}

TEST(plot_has_the_measures_of_this_build)
{
    const struct option_row *measure = option_find("measure", COMMAND_PLOT);
    size_t n = 0;
    for (; named_measures[n].name != NULL; n++) {
        assert_less(n, measure->n_words);
        assert_string_equal(measure->words[n], named_measures[n].name);
    }
    assert_int_equal(n, measure->n_words);
}

TEST(every_command_has_a_row_with_help)
{
    unsigned all = 0;
    for (size_t i = 0; i < n_command_rows; i++) {
        const struct command_row *c = &command_rows[i];
        assert_ptr_equal(command_row(c->command), c);
        assert_non_null(c->main);
        assert_non_null(c->too_many);
        assert_non_null(c->what);
        assert_int_equal(strncmp(c->usage, c->name, strlen(c->name)), 0);
        assert_non_null(option_find("help", c->command));
        all |= c->command;
    }
    assert_int_equal(all, COMMAND_ALL);
}
