/* What cJSON had no memory for it leaves out, and says so to nobody: a tree may lack members that were added to it. */
#ifndef CLI_BASE_JSON_MEMORY_H
#define CLI_BASE_JSON_MEMORY_H

#include <stdbool.h>

/* From now on it is remembered. To be called once, before any JSON is made or read. */
void json_memory_watch(void);

/* Whether any tree of this process may lack something; none is to be printed then. */
bool json_memory_ran_out(void);

#endif
