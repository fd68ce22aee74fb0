/* Scripts: any bytes are refused with file and line, or become lines that can safely be run, split, completed and
 * shown. */
#include "base/text.h"
#include "tests/fuzz/fuzz.h"
#include "tui/app/command.h"
#include "tui/terminal/input.h"

static bool
run(struct app *app, const char *rest, struct err *err)
{
    uint64_t n;
    (void)app;
    return command_number(rest, "n", 1, 100, &n, err);
}

static const char *
offer(struct app *app, int i)
{
    static const char *const knobs[] = {"knob0", "knob1", "knob2"};
    (void)app;
    return i < 3 ? knobs[i] : NULL;
}

static const struct verb table[] = {{"set", "", "", run, offer},
                                    {"step", "", "", run, NULL},
                                    {"wait", "", "", run, NULL},
                                    {NULL, NULL, NULL, NULL, NULL}};

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct script s;
    struct err err = {0};
    if (!script_parse(&s, (const char *)data, size, "fuzz", &err)) {
        must_refuse(&err);
        return 0;
    }
    for (const char *line; (line = script_next(&s)) != NULL;) {
        bool unknown;
        char verb[COMMAND_VERB], out[80], list[40];
        const char *rest;
        MUST(line[0] != '\0' && strpbrk(line, "\n\033") == NULL);
        MUST(!command_split(line, verb, &rest) || (rest >= line && rest <= line + strlen(line)));
        command_run(table, NULL, line, &unknown, &err);
        command_complete(table, NULL, line, out, sizeof out, list, sizeof list);
        input_named(line);
        MUST(strlen(out) < sizeof out && text_width(list) <= (int)sizeof list);
    }
    script_close(&s);
    return 0;
}

MUTATOR(mutate_lines(data, size, max_size, seed));
