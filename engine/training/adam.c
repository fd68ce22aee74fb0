#include "engine/training/adam.h"

#include <math.h>

#define FIRST  0.9
#define SECOND 0.999
#define TINY   1e-8f

void
adam_open(struct adam *a, size_t n, struct blocks *b)
{
    *a = (struct adam){.first = blocks_take(b, n, sizeof *a->first), .second = blocks_take(b, n, sizeof *a->second)};
}

void
adam_begin(struct adam *a)
{
    a->steps++;
}

void
adam_move(const struct adam *a, size_t at, size_t n, float *values, const float *gradient, float rate, float decay,
          const float *home)
{
    float *m = a->first + at, *v = a->second + at;
    const float unbias_m = (float)(1 / (1 - pow(FIRST, (double)a->steps))),
                unbias_v = (float)(1 / (1 - pow(SECOND, (double)a->steps)));
    for (size_t i = 0; i < n; i++) {
        m[i] = (float)FIRST * m[i] + (float)(1 - FIRST) * gradient[i];
        v[i] = (float)SECOND * v[i] + (float)(1 - SECOND) * gradient[i] * gradient[i];
        const float from_home = home != NULL ? values[i] - home[i] : values[i];
        values[i] -= rate * (m[i] * unbias_m / (sqrtf(v[i] * unbias_v) + TINY) + decay * from_home);
    }
}
