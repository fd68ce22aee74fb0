#include "base/colour.h"

#include <math.h>

/* WCAG 2.1, "relative luminance" */
static double
luminance(int32_t rgb)
{
    static const double weight[3] = {0.0722, 0.7152, 0.2126}; /* blue, green, red */
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        const double s = ((rgb >> (8 * i)) & 0xff) / 255.0;
        sum += weight[i] * (s <= 0.04045 ? s / 12.92 : pow((s + 0.055) / 1.055, 2.4));
    }
    return sum;
}

double
colour_lightness(int32_t rgb)
{
    const double y = luminance(rgb);
    return y > 216.0 / 24389 ? 116 * cbrt(y) - 16 : y * 24389 / 27;
}

double
colour_contrast_ratio(int32_t one, int32_t other)
{
    const double a = luminance(one), b = luminance(other);
    return (fmax(a, b) + 0.05) / (fmin(a, b) + 0.05);
}

int32_t
colour_contrast(int32_t background)
{
    return colour_contrast_ratio(background, 0x000000) >= colour_contrast_ratio(background, 0xffffff) ? 0x000000
                                                                                                      : 0xffffff;
}
