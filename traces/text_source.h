/* Finished texts from a file (engine/scoring/texts.h) or from a trace, whose sequences are conversations. */
#pragma once

#include "engine/scoring/texts.h"

/* As texts_read(); a folder is a trace. Of a trace each sequence of each run is a conversation, with its tokens. */
bool text_source_read(struct texts *, const char *path, struct err *);
