/* A server's own counters (RECORDED_SERVER): requests of all its users, and acceptance by position since its start
 * against that of this run. */
#include <math.h>
#include <string.h>

#include "base/json_read.h"
#include "tui/panels/panel.h"

#define LABEL 9 /* columns before the values of positions */
#define VALUE 6 /* columns of each */

static double
number(const cJSON *of, const char *name)
{
    const cJSON *n = cJSON_GetObjectItem(of, name);
    return cJSON_IsNumber(n) && n->valuedouble >= 0 ? n->valuedouble : (double)NAN;
}

/* Draws numbers that are known, one after the other. */
static void
draw_requests(const struct canvas *c, const cJSON *counters)
{
    static const struct {
        const char *name, *of;
    } item[] = {{"running", "in progress"}, {"waiting", "waiting"}, {"tokens_per_s", "tok/s"}};
    int x = 0;
    for (size_t i = 0; i < sizeof item / sizeof item[0]; i++) {
        const double value = number(counters, item[i].name);
        if (isnan(value) || (i == 2 && !(value > 0))) /* some tell their speed only at the end of a request */
            continue;
        x += canvas_print(c, 0, x, ROLE_TITLE, "%s%.0f", x > 0 ? " · " : "", value);
        x += canvas_print(c, 0, x, ROLE_DIM, " %s", item[i].of);
    }
}

static void
draw_share(const struct canvas *c, int y, uint32_t i, double share)
{
    if (isnan(share))
        canvas_text(c, y, LABEL + VALUE * (int)i, ROLE_DIM, "–");
    else
        canvas_print(c, y, LABEL + VALUE * (int)i, ROLE_TEXT, "%.2f", share);
}

/* Draws the shares of rounds with drafts that accepted each position. */
static void
draw_positions(const struct canvas *c, const cJSON *counters, const struct positions *here)
{
    const cJSON *at = cJSON_GetObjectItem(counters, "at");
    const double drafts = number(counters, "drafts");
    const uint32_t of_server = (uint32_t)cJSON_GetArraySize(at), of_run = positions_count(here),
                   n = of_server > of_run ? of_server : of_run;
    canvas_text(c, 4, 0, ROLE_DIM, "position");
    canvas_text(c, 5, 0, ROLE_TEXT, "this run");
    canvas_text(c, 6, 0, ROLE_TEXT, "server");
    for (uint32_t i = 0; i < n && LABEL + VALUE * (int)(i + 1) <= c->cols; i++) {
        const cJSON *accepted = cJSON_GetArrayItem(at, (int)i);
        canvas_print(c, 4, LABEL + VALUE * (int)i, ROLE_DIM, "%u", (unsigned)i + 1);
        draw_share(c, 5, i, here->tested[0] > 0 ? (double)here->accepted[i] / (double)here->tested[0] : (double)NAN);
        draw_share(c, 6, i, cJSON_IsNumber(accepted) && drafts > 0 ? accepted->valuedouble / drafts : (double)NAN);
    }
}

static void
draw_server(void *state, const struct view *v, const struct canvas *c)
{
    (void)state;
    const char *text = scope_now(v->scope)->server;
    cJSON *counters = NULL;
    json_read(&counters, text, strlen(text));
    const double drafts = number(counters, "drafts"), drafted = number(counters, "drafted");
    draw_requests(c, counters);
    if (drafts > 0) {
        canvas_print(c, 1, 0, ROLE_TEXT, "%.0f rounds with drafts since its start", drafts);
        canvas_print(c, 2, 0, ROLE_TEXT, "%.2f of %.0f drafts accepted", number(counters, "accepted") / drafted,
                     drafted);
        draw_positions(c, counters, &scope_run_aggregates(v->scope)->positions);
    } else {
        canvas_text(c, 1, 0, ROLE_DIM, "it has drafted nothing since its start");
    }
    cJSON_Delete(counters);
}

static bool
active_server(const struct view *v)
{
    return scope_now(v->scope)->server[0] != '\0';
}

static const struct key_help keys[] = {
    {"this run, server",
     "of the rounds with drafts, the share that accepted the draft at the position: of this run, and "
     "of all requests since the server's start"},
    {NULL, NULL},
};

const struct panel_ops panel_server = {
    .name = "server",
    .title = "server",
    .active = active_server,
    .place = PANEL_MIDDLE,
    .weight = 4,
    .min_cols = 30,
    .keys = keys,
    .draw = draw_server,
};
