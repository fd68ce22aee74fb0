/* What layers said of all positions that are held, a byte a layer: what is left of cells that had to go, for whoever looks at
 * the whole of a run. A ring that grows with what is in it. Lies below the sequence. */
#ifndef TUI_SCOPE_GLIMPSES_H
#define TUI_SCOPE_GLIMPSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GLIMPSE_SPURIOUS 0x80u /* sure and wrong; beside it 0: not known, else 1 + the confidence in steps of 1 / 126 */

uint8_t glimpse_make(float confidence, bool spurious); /* NAN: as 0 */
float glimpse_confidence(uint8_t);                     /* NAN: not known */
static inline bool
glimpse_spurious(uint8_t g)
{
    return (g & GLIMPSE_SPURIOUS) != 0;
}

struct glimpses {
    uint32_t max_positions, layers; /* 0: nothing was kept, and nothing is held */
    uint32_t n;                     /* positions allocated */
    uint32_t *of;                   /* (n) 1 + the position whose bytes stand there, 0: none */
    uint8_t *byte;                  /* (n * layers) position p at p % max_positions, layer l at l - 1 */
};

/* Of an empty one max_positions and layers become those. NULL: no memory, and it is not kept. */
uint8_t *glimpses_keep(struct glimpses *, uint32_t max_positions, uint32_t layers, uint32_t pos); /* (layers) to fill */
const uint8_t *glimpses_at(const struct glimpses *, uint32_t pos);                                /* NULL: not held */
size_t glimpses_bytes(const struct glimpses *);
void glimpses_close(struct glimpses *); /* empty again */

#endif
