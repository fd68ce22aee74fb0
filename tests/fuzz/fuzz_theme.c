/* Themes are files from unsupported: any bytes are refused in one line, or become a theme that can be used. */
#include "tests/fuzz/mutate.h"
#include "tui/terminal/theme.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct theme t;
    struct err err = {0};
    if (!theme_parse(&t, (const char *)data, size, "fuzz", &err)) {
        if (err.kind != ERR_USAGE || err.text[0] == '\0' || strpbrk(err.text, "\n\033\r") != NULL)
            __builtin_trap();
        return 0;
    }
    for (int i = 0; i <= GRID_HEATS; i++) {
        const int32_t rgb = theme_heat(&t, (float)i / GRID_HEATS);
        if (rgb > 0xffffff || (rgb < 0 && t.stops > 0))
            __builtin_trap();
    }
    for (int i = 0; i < ROLES; i++)
        if (t.role[i].fg > 0xffffff || t.role[i].bg > 0xffffff || t.role[i].fg < -1 || t.role[i].bg < -1)
            __builtin_trap();
    return 0;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    return mutate_json(data, size, max_size, seed);
}
