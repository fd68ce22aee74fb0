#include "tui/scope/glimpses.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 256
#define STEPS      126.0f

uint8_t
glimpse_make(float confidence, bool spurious)
{
    const float held = isnan(confidence) ? 0 : fminf(fmaxf(confidence, 0), 1);
    return (uint8_t)(1 + lrintf(held * STEPS)) | (uint8_t)(spurious ? GLIMPSE_SPURIOUS : 0);
}

float
glimpse_confidence(uint8_t g)
{
    const uint8_t step = g & (uint8_t)~GLIMPSE_SPURIOUS;
    return step == 0 ? NAN : (float)(step - 1) / STEPS;
}

static bool
room(struct glimpses *g, uint32_t at)
{
    uint32_t n = g->n > FIRST_ROOM ? g->n : FIRST_ROOM;
    while (n <= at)
        n *= 2;
    n = n < g->max_positions ? n : g->max_positions;
    if (n <= g->n)
        return true;
    uint32_t *of = realloc(g->of, n * sizeof *of);
    g->of = of != NULL ? of : g->of;
    uint8_t *byte = of == NULL ? NULL : realloc(g->byte, (size_t)n * g->layers);
    if (byte == NULL)
        return false;
    memset(of + g->n, 0, (n - g->n) * sizeof *of);
    g->byte = byte;
    g->n = n;
    return true;
}

uint8_t *
glimpses_keep(struct glimpses *g, uint32_t max_positions, uint32_t layers, uint32_t pos)
{
    if (g->max_positions == 0) {
        g->max_positions = max_positions;
        g->layers = layers;
    }
    const uint32_t at = pos % g->max_positions;
    if (!room(g, at))
        return NULL;
    g->of[at] = pos + 1;
    return g->byte + (size_t)at * g->layers;
}

const uint8_t *
glimpses_at(const struct glimpses *g, uint32_t pos)
{
    const uint32_t at = g->max_positions > 0 ? pos % g->max_positions : 0;
    return at < g->n && g->of[at] == pos + 1 ? g->byte + (size_t)at * g->layers : NULL;
}

size_t
glimpses_bytes(const struct glimpses *g)
{
    return g->n * (sizeof *g->of + g->layers);
}

void
glimpses_close(struct glimpses *g)
{
    free(g->of);
    free(g->byte);
    *g = (struct glimpses){0};
}
