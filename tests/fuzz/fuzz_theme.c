/* Themes are untrusted files: any bytes are refused in one line, or become a usable theme. */
#include "tests/fuzz/fuzz.h"
#include "tui/terminal/theme.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct theme t;
    struct err err = {0};
    if (!theme_parse(&t, (const char *)data, size, "fuzz", &err)) {
        must_refuse(&err);
        return 0;
    }
    for (int i = 0; i <= GRID_HEATS; i++) {
        const int32_t rgb = theme_heat(&t, (float)i / GRID_HEATS);
        MUST(rgb <= 0xffffff && (rgb >= 0 || t.stops == 0));
    }
    for (int i = 0; i < ROLES; i++)
        MUST(t.role[i].fg >= -1 && t.role[i].fg <= 0xffffff && t.role[i].bg >= -1 && t.role[i].bg <= 0xffffff);
    return 0;
}

MUTATOR(mutate_json(data, size, max_size, seed));
