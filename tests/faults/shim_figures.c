/* While cairo, fontconfig and freetype render a figure, their calls do not fail, because they crash or hang then. The
 * program runs them in a process of their own for this reason (base/subprocess.h). From the opening of the
 * surface to the end of that process only writes of the figure count, which the program makes itself. */
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
