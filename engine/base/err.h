/* Errors, for those who stand on the engine and know no backend. */
#ifndef ENGINE_BASE_ERR_H
#define ENGINE_BASE_ERR_H

#include "kernels/err.h"

#endif
