#include "engine/tokenizer/charsmap.h"

#include <string.h>

#include "engine/base/little_endian.h"

/* A unit of the double array (darts-clone): where its children are, by exclusive or with their byte; the byte that led to
 * it; whether a key ends here, whose value is then the child without a byte. */
#define LABEL(unit)    ((unit) & (1u << 31 | 0xffu))
#define HAS_LEAF(unit) ((unit) >> 8 & 1)
#define OFFSET(unit)   (((unit) >> 10) << ((unit) >> 6 & 8))
#define VALUE(unit)    ((unit)&0x7fffffffu)

static uint32_t
unit_of(const char *bytes)
{
    return (uint32_t)little_endian((const unsigned char *)bytes, 4);
}

bool
charsmap_read(struct charsmap *map, struct slice bytes)
{
    *map = (struct charsmap){.texts = {"", 0}};
    if (bytes.len == 0)
        return true;
    const uint64_t n = bytes.len < 4 ? UINT64_MAX : unit_of(bytes.data);
    if (n % 4 != 0 || n == 0 || n > bytes.len - 4)
        return false;
    *map = (struct charsmap){bytes.data + 4, (size_t)n / 4, {bytes.data + 4 + n, bytes.len - 4 - (size_t)n}};
    return true;
}

/* The unit at this place; a map that leads out of itself leads nowhere. */
static bool
unit_at(const struct charsmap *map, size_t place, uint32_t *unit)
{
    if (place >= map->n_units)
        return false;
    *unit = unit_of(map->units + 4 * place);
    return true;
}

bool
charsmap_find(const struct charsmap *map, const char *text, size_t len, bool longest, size_t *n, struct slice *to)
{
    uint32_t unit, leaf;
    bool found = false;
    if (!unit_at(map, 0, &unit))
        return false;
    size_t place = OFFSET(unit);
    for (size_t i = 0; i < len && (longest || !found); i++) {
        const unsigned char c = (unsigned char)text[i];
        place ^= c;
        if (c == '\0' || !unit_at(map, place, &unit) || LABEL(unit) != c)
            break;
        place ^= OFFSET(unit);
        if (!HAS_LEAF(unit) || !unit_at(map, place, &leaf) || VALUE(leaf) >= map->texts.len)
            continue;
        const char *begin = map->texts.data + VALUE(leaf);
        const char *end = memchr(begin, '\0', map->texts.len - VALUE(leaf));
        *to = (struct slice){begin, end == NULL ? map->texts.len - VALUE(leaf) : (size_t)(end - begin)};
        *n = i + 1;
        found = true;
    }
    return found;
}
