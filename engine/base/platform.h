/* What the system is asked, for those who stand on the engine and know no backend. */
#ifndef ENGINE_BASE_PLATFORM_H
#define ENGINE_BASE_PLATFORM_H

#include "kernels/platform.h"

#endif
