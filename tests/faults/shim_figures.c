/* What cairo, fontconfig and freetype ask for while they render a figure is left alone: they die of it or wait for
 * ever, in a process that is there for that (engine/base/subprocess.h). From the surface that is opened to the end of that process only
 * what is written of the figure counts, which the program does itself. */
#include "tests/faults/shim.h"

void *cairo_svg_surface_create_for_stream(void *, void *, double, double);

void *
cairo_svg_surface_create_for_stream(void *put, void *user, double width, double height)
{
    static void *(*next)(void *, void *, double, double);
    if (next == NULL)
        *(void **)&next = shim_next("cairo_svg_surface_create_for_stream");
    shim_rendering(true);
    return next(put, user, width, height);
}
