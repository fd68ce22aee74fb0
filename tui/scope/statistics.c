#include "tui/scope/statistics.h"

#include <math.h>

void
share_interval(uint64_t n, uint64_t of, double *low, double *high)
{
    const double z = 1.959963985, trials = (double)of;
    *low = 0;
    *high = 1;
    if (of == 0)
        return;
    const double share = (double)n / trials, shrink = 1 + z * z / trials;
    const double middle = (share + z * z / (2 * trials)) / shrink;
    const double half = z * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials)) / shrink;
    *low = fmax(0, middle - half);
    *high = fmin(1, middle + half);
}

int
calibration_bin(double confidence)
{
    if (!(confidence >= 0 && confidence <= 1))
        return -1;
    const int bin = (int)(confidence * CALIBRATION_BINS);
    return bin < CALIBRATION_BINS ? bin : CALIBRATION_BINS - 1;
}

void
calibration_add(struct calibration *c, double confidence, int right)
{
    const int bin = calibration_bin(confidence);
    if (bin < 0)
        return;
    c->n[bin]++;
    c->right[bin] += right != 0;
    c->confidence[bin] += confidence;
    c->all++;
}

double
calibration_error(const struct calibration *c)
{
    double sum = 0;
    for (int i = 0; i < CALIBRATION_BINS; i++)
        sum += fabs((double)c->right[i] - c->confidence[i]);
    return c->all > 0 ? sum / (double)c->all : (double)NAN;
}
