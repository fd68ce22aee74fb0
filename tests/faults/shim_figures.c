/* What cairo, fontconfig and freetype ask for while they render a figure is left alone: they die of it. From the surface that is
 * opened to the fonts that are let go, only what is written of the figure counts, which the program does itself. */
#include "tests/faults/shim.h"

void *cairo_svg_surface_create_for_stream(void *, void *, double, double);
void FcFini(void);

void *
cairo_svg_surface_create_for_stream(void *put, void *user, double width, double height)
{
    static void *(*next)(void *, void *, double, double);
    if (next == NULL)
        *(void **)&next = shim_next("cairo_svg_surface_create_for_stream");
    shim_rendering(true);
    return next(put, user, width, height);
}

void
FcFini(void)
{
    static void (*next)(void);
    if (next == NULL)
        *(void **)&next = shim_next("FcFini");
    next();
    shim_rendering(false);
}
