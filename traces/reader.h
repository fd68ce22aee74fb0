/* Reads a trace back as the stream of events it was written from: the five tables merged in event order, streaming, so
 * that a trace larger than memory replays. What comes after the last whole round is dropped, unless run.json says that
 * the trace was closed cleanly. Unknown columns are ignored; a missing one is refused with file, line and column. */
#ifndef TRACES_READER_H
#define TRACES_READER_H

#include "engine/event.h"
#include "engine/run_info.h"

struct trace_reader;

bool trace_reader_open(struct trace_reader **, const char *folder, struct err *);
void trace_reader_close(struct trace_reader *);
const struct run_info *trace_reader_info(const struct trace_reader *);
uint64_t trace_reader_rounds(const struct trace_reader *);      /* whole rounds in it */
uint64_t trace_reader_duration_us(const struct trace_reader *); /* of all its runs, one after another */
/* The next event; its texts live until the next call. False with err->kind == ERR_NONE at the end. */
bool trace_reader_next(struct trace_reader *, struct event *, struct err *);
bool trace_reader_rewind(struct trace_reader *, struct err *);

#endif
