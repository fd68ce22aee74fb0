/* All that a translated kernel needs. */
#ifndef PTX_MACHINE_H
#define PTX_MACHINE_H

#include "compare.h"
#include "convert.h"
#include "library.h"
#include "memory.h"
#include "warp.h"

#endif
