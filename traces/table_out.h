/* One of a trace's tables being written: lines gather in memory until they are handed to the file system. */
#ifndef TRACES_TABLE_OUT_H
#define TRACES_TABLE_OUT_H

#include "traces/schema.h"

struct table_out {
    const struct table *table;
    bool mixture; /* columns of mixtures are written, too */
    int fd;
    char *lines; /* not yet written */
    size_t used, size;
    uint64_t n_lines; /* so far, the header aside */
    char *scratch;
    size_t scratch_size;
};

/* Creates the file with its header (in memory as yet). It must not exist. */
bool table_out_open(struct table_out *, int folder_fd, enum table_id, bool mixture, struct err *);
void table_out_close(struct table_out *);
bool table_out_line(struct table_out *, const struct event *, struct err *); /* false: out of memory */
/* Hands all lines to the file system. */
bool table_out_write(struct table_out *, struct err *);
bool table_out_deleted(const struct table_out *); /* the file has no name any more */

#endif
