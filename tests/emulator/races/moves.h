/* Renames the functions that copy and fill memory in host code, so that their accesses are checked (hooks.cc). */
#ifndef EMULATION_RACES_MOVES_H
#define EMULATION_RACES_MOVES_H

#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
void *emulated_move(void *to, const void *from, size_t n);
void *emulated_fill(void *to, int value, size_t n);
#ifdef __cplusplus
}
#endif

#define memcpy(to, from, n)  emulated_move(to, from, n)
#define memmove(to, from, n) emulated_move(to, from, n)
#define memset(to, value, n) emulated_fill(to, value, n)

#endif
