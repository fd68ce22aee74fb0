/* Memory of arrays whose length is not known in advance. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Gives an array room for at least `wanted` elements of `size` bytes. `array` points to the pointer to its elements,
 * and *room is the number of elements that it has room for. If memory runs out, the array stays as it is. */
static inline bool
array_grow(void *array, size_t *room, size_t wanted, size_t size)
{
    void *elements;
    if (wanted <= *room)
        return true;
    const size_t more = wanted + wanted / 2 + 64;
    memcpy(&elements, array, sizeof elements);
    elements = more < wanted || more > SIZE_MAX / size ? NULL : realloc(elements, more * size);
    if (elements == NULL)
        return false;
    memcpy(array, &elements, sizeof elements);
    *room = more;
    return true;
}
