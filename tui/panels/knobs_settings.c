#include "tui/panels/knobs_settings.h"

#include <string.h>

void
knobs_draw_settings(const struct view *v, const struct canvas *c, int y)
{
    uint64_t seed;
    const struct sampling *sampling = scope_sampling(v->scope, &seed);
    const char *probe = scope_now(v->scope)->probe;
    int x = canvas_print(c, y, 1, ROLE_DIM, "probe %s", probe[0] != '\0' ? probe : "–") + 1;
    if (scope_head(v->scope)[0] != '\0')
        x += canvas_print(c, y, x, ROLE_DIM, " · %s%s", scope_head(v->scope),
                          strcmp(scope_head(v->scope), "trained") == 0 ? " heads" : "");
    if (!(sampling->temperature > 0)) {
        canvas_text(c, y, x, ROLE_DIM, " · greedy");
        return;
    }
    x += canvas_print(c, y, x, ROLE_DIM, " · T %.3g", (double)sampling->temperature);
    if (sampling->top_k > 0)
        x += canvas_print(c, y, x, ROLE_DIM, " · top-k %u", (unsigned)sampling->top_k);
    if (sampling->top_p < 1)
        x += canvas_print(c, y, x, ROLE_DIM, " · top-p %.3g", (double)sampling->top_p);
    canvas_print(c, y, x, ROLE_DIM, " · seed %llu", (unsigned long long)seed);
}
