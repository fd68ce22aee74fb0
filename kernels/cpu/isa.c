#include "kernels/cpu/isa.h"

#include <string.h>

#include "kernels/tensor.h"

#define ADDRESS(name) &cpu_isa_##name,
const struct cpu_isa *const cpu_isas[] = {CPU_ISAS(ADDRESS) NULL};

const struct cpu_isa *
cpu_isa_choose(const char *family, struct err *err)
{
    const bool any = family == NULL || family[0] == '\0' || strcmp(family, "auto") == 0;
    bool known = false;
    char names[128] = "auto";
    for (size_t i = 0, n = strlen(names); cpu_isas[i] != NULL; i++) {
        n += (size_t)snprintf(names + n, sizeof names - n, ", %s", cpu_isas[i]->name);
        if (!any && strcmp(cpu_isas[i]->family, family) != 0 && strcmp(cpu_isas[i]->name, family) != 0)
            continue;
        known = true;
        if (cpu_isas[i]->usable())
            return cpu_isas[i];
    }
    if (known)
        err_set(err, ERR_USAGE, "this processor does not have the instruction set '%s'; use --isa auto", family);
    else
        err_set(err, ERR_USAGE, "no instruction set '%s' in this build; --isa takes %s", family, names);
    return NULL;
}

#define PART 256 /* values converted to F32 at a time: a multiple of every block, and the grouping of sums */

/* Multiplies a matrix of any type in its file format: dequantises a block at a time. Reads x in F32. */
static void
matmul_dequantised(const struct matrix *w, const struct acts *x, size_t n, size_t first, size_t last, float *y,
                   size_t ld)
{
    const size_t row_bytes = tensor_row_bytes(w->type, w->cols);
    float part[PART];
    for (size_t o = first; o < last; o++) {
        const char *row = (const char *)w->data + o * row_bytes;
        for (size_t k = 0; k < w->cols; k += PART) {
            const size_t m = w->cols - k < PART ? w->cols - k : PART;
            tensor_blocks(w->type, row + tensor_row_bytes(w->type, k), m, part);
            for (size_t r = 0; r < n; r++) {
                const float *xr = x->x + r * w->cols + k;
                float sum[8] = {0}; /* several sums lose less precision than one, and are computed in parallel */
                for (size_t i = 0; i < m; i++)
                    sum[i % 8] += part[i] * xr[i];
                const float all = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
                y[r * ld + o] = k == 0 ? all : y[r * ld + o] + all;
            }
        }
    }
}

void
multiply(const struct cpu_isa *isa, const struct matrix *w, const struct acts *x, size_t n, size_t first, size_t last,
         float *y, size_t ld)
{
    const struct matmul_many *many = &isa->many[w->type];
    matmul_fn f = isa->matmul[w->type] != NULL ? isa->matmul[w->type] : matmul_dequantised;
    if (many->matmul != NULL && n >= many->from)
        f = many->matmul;
    if (first < last)
        f(w, x, n, first, last, y, ld);
}
