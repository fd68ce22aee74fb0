/* Lightness and contrast of sRGB colours, 0xRRGGBB. */
#pragma once

#include <stdint.h>

double colour_lightness(int32_t rgb);           /* CIE L*, 0 to 100, under D65 */
double colour_contrast_ratio(int32_t, int32_t); /* 1 to 21, WCAG 2 */
int32_t colour_contrast(int32_t background);    /* black or white, by WCAG's relative luminance */
