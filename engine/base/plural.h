/* Counts with their nouns, for those who stand on the engine and know no backend. */
#ifndef ENGINE_BASE_PLURAL_H
#define ENGINE_BASE_PLURAL_H

#include "kernels/plural.h"

#endif
