/* Operations of vectors that C's operators express, for any vector type. Included by quants.h, after the instruction
 * set has defined vec, ints, LANES and V_REGISTER, the constraint of a vector register in inline assembly. (The
 * compiler never turns a product and a sum into v_fma: -ffp-contract=off.) */
#ifndef KERNELS_CPU_VECTOR_H
#define KERNELS_CPU_VECTOR_H

#include "kernels/cpu/isa.h"

SIMD_INLINE vec
v_zero(void)
{
    return (vec){0};
}

SIMD_INLINE vec
v_set1(float x)
{
    return x - v_zero();
}

typedef float unaligned_vec __attribute__((vector_size(sizeof(vec)), aligned(sizeof(float)), may_alias));

SIMD_INLINE vec
v_load(const float *p)
{
    return (vec) * (const unaligned_vec *)(const void *)p;
}

SIMD_INLINE void
v_store(float *p, vec v)
{
    *(unaligned_vec *)(void *)p = (unaligned_vec)v;
}

/* Forces a into a register: an operand in memory would be loaded again by each instruction that uses it. */
SIMD_INLINE vec
v_keep(vec a)
{
    __asm__("" : "+" V_REGISTER(a));
    return a;
}

#define V_OPERATOR(name, operator)                                                                                     \
    SIMD_INLINE vec v_##name(vec a, vec b)                                                                             \
    {                                                                                                                  \
        return a operator b;                                                                                           \
    }
V_OPERATOR(add, +)
V_OPERATOR(sub, -)
V_OPERATOR(mul, *)
V_OPERATOR(div, /)
#undef V_OPERATOR

SIMD_INLINE vec
v_real(ints n)
{
    return __builtin_convertvector(n, vec);
}

#endif
