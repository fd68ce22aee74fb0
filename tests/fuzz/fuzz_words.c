/* Texts of one line from users and files: values of options and knobs, grids, spans of a sweep, the end of a run,
 * second settings, synthetic models, reports of a terminal. The first byte selects one. Each is refused in one line, or
 * has a valid value. */
#include <math.h>

#include "base/text.h"
#include "base/utf8.h"
#include "cli/options/option_table.h"
#include "engine/events/sampling_knobs.h"
#include "engine/events/settings.h"
#include "engine/events/until.h"
#include "engine/model/synthetic/synthetic.h"
#include "engine/tune/knob_sweep.h"
#include "tests/fuzz/fuzz.h"
#include "tui/terminal/input.h"

#define TEXT_MOST 600

static void
try_axis(const char *text)
{
    static const struct knob knob = {"tau", "t", "", KNOB_REAL, 0, 1, 0.05, 0.5, NULL};
    struct knob_axis axis;
    struct err err = {0};
    const bool ok = knob_axis_parse(&axis, text, "--grid", &err);
    if (!ok)
        must_refuse(&err);
    if (!ok || !knob_axis_check(&axis, &knob, "p", "--grid", &err))
        return;
    const struct knob_axis *const one[] = {&axis};
    const uint32_t n = knob_grid_points(one, 1);
    MUST(n >= 1 && n <= KNOB_GRID_MOST);
    for (uint32_t i = 0; i < n; i++) {
        const double value = knob_axis_value(&axis, &knob, i);
        MUST(value >= knob.min && value <= knob.max);
    }
}

static void
try_until(const char *text)
{
    struct until u, again;
    struct err err = {0};
    char out[UNTIL_TEXT_MOST + 16];
    if (!until_parse(text, &u, &err)) {
        must_refuse(&err);
        return;
    }
    until_print(&u, out, sizeof out);
    MUST(until_parse(out, &again, &err) && again.kind == u.kind && again.round == u.round &&
         strcmp(again.text, u.text) == 0);
    until_ends_text(&u, text, strlen(text), strlen(text) / 2);
}

static void
try_knobs(const char *text)
{
    static const char *const choices[] = {"on", "off", "perhaps"};
    const struct knob knobs[] = {{"a", "", "", KNOB_REAL, -3, 7, 0.125, 0, NULL},
                                 {"b", "", "", KNOB_INTEGER, 1, 64, 1, 4, NULL},
                                 {"c", "", "", KNOB_CHOICE, 0, 2, 1, 0, choices}};
    struct err err = {0};
    for (size_t i = 0; i < 3 + SAMPLING_KNOBS; i++) {
        const struct knob *k = i < 3 ? &knobs[i] : &sampling_knobs[i - 3];
        double value, again;
        char out[64];
        if (!knob_parse(k, text, &value, &err)) {
            must_refuse(&err);
            continue;
        }
        MUST(value >= k->min && value <= k->max);
        knob_format(k, value, out, sizeof out);
        MUST(knob_parse(k, out, &again, &err) && fabs(again - value) <= 1e-9 * fmax(1, fabs(value)));
    }
}

static void
try_versus(const char *text)
{
    static struct policy_info policies[] = {{.name = "layerskip",
                                             .n_knobs = 2,
                                             .knobs = {{"exit_layer", "E", "", KNOB_INTEGER, 1, 8, 1, 4, NULL},
                                                       {"gamma", "", "", KNOB_INTEGER, 1, 32, 1, 5, NULL}}},
                                            {.name = "ar"}};
    const struct run_info info = {.n_policies = 2, .policies = policies};
    struct settings s = {0};
    settings_read_versus(&s, &info, text);
    MUST(s.policy <= info.n_policies);
    for (int i = 0; i < 2; i++) /* 0: the text does not name the knob */
        MUST(s.value[0][i] >= 0 && s.value[0][i] <= policies[0].knobs[i].max && s.value[1][i] == 0);
}

static void
try_synthetic(const char *text)
{
    struct synthetic_spec spec;
    struct err err = {0};
    if (synthetic_read_spec(text, &spec, &err))
        MUST(spec.shape != NULL && spec.acceptance >= 0 && spec.acceptance <= 1);
    else
        must_refuse(&err);
}

/* Reads the value of an option that reads no file; the first byte selects the option. */
static void
try_options(const char *text)
{
    static const char *const files[] = {"file", "tools", "chat-template", "preset"};
    const struct option_row *row = &option_rows[(unsigned char)text[0] % n_option_rows];
    struct options o;
    struct err err = {0};
    bool reads = row->type == OPTION_PRINT || text[0] == '\0';
    for (size_t k = 0; k < sizeof files / sizeof *files; k++)
        reads = reads || strcmp(row->name, files[k]) == 0;
    if (reads)
        return;
    options_init(&o, COMMAND_RUN);
    if (!option_set(&o, row, text + 1, &err))
        must_refuse(&err);
    options_free(&o);
}

/* Checks that the events of a text are the same whether it arrives at once or byte by byte. */
static void
try_input(const char *text)
{
    struct input_decoder whole = {0}, bytes = {0};
    struct input one, other;
    whole.n = strnlen(text, sizeof whole.bytes);
    memcpy(whole.bytes, text, whole.n);
    for (size_t i = 0; i < whole.n + 1;) {
        if (input_decode(&bytes, false, &other)) {
            MUST(input_decode(&whole, false, &one) && one.key == other.key && one.pasted == other.pasted);
            MUST(one.key != INPUT_MOUSE || (one.y == other.y && one.x == other.x && one.y >= 0 && one.x >= 0));
        } else if (i++ < strnlen(text, sizeof whole.bytes)) {
            bytes.bytes[bytes.n++] = text[i - 1];
        }
    }
}

static void
try_shown(const char *text)
{
    char line[64];
    printable_line(line, sizeof line, text, strlen(text));
    MUST(strlen(line) < sizeof line && text_width(line) >= 0);
    input_named(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const tries[])(const char *) = {try_axis,      try_until,   try_knobs, try_versus,
                                                  try_synthetic, try_options, try_input, try_shown};
    char *text = size > 0 && size <= TEXT_MOST ? strndup((const char *)data + 1, size - 1) : NULL;
    if (text != NULL)
        tries[data[0] % (sizeof tries / sizeof *tries)](text);
    free(text);
    return 0;
}

MUTATOR(size > 1 && seed % 8 != 0 ? 1 + mutate_lines(data + 1, size - 1, max_size - 1, seed / 8)
                                  : LLVMFuzzerMutate(data, size, max_size));
