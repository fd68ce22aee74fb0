/* Reads a trace back as the stream of events it was written from: the tables merged in event order, streaming, so that
 * a trace larger than memory replays. What comes after the last whole round is dropped, unless run.json says that the
 * trace was closed cleanly; of one that says how long its tables were then, and is longer or shorter by now, all that is there
 * is handed out, and then that. Unknown columns are ignored; a missing one is refused with file, line and column.
 *
 * Drafts come with accepted and committed unknown (-1), as they were proposed; their EVENT_VERDICTs follow where they
 * were: in the gap that their numbers left, at the latest before the round's correction or bonus, or its end. Numbers
 * never descend.
 *
 * A trace is never trusted; what comes out of here holds: token ids are below vocab (a layer's guess and `top` may be
 * TOKEN_NONE), layers are 1..L, exit layers and d_max at most L (-1: none), positions at most ctx, candidates below
 * VERIFY_NODES, counts at most 65535, enumerations within theirs, runs never go back, texts are terminated, and names
 * (policy, knob, key, stop_reason) hold no control characters; a round's and a `policy` control's policy is declared.
 * Old and new texts of controls and vocab's bytes are as they were: any bytes. Reals are any float. */
#ifndef TRACES_READER_H
#define TRACES_READER_H

#include "engine/events/event.h"
#include "engine/events/run_info.h"

struct trace_reader;

bool trace_reader_open(struct trace_reader **, const char *folder, struct err *);
/* One that another process is still writing, perhaps. Its end is where it ends now; trace_reader_look() goes and sees (at a
 * monotonic time): then the next event may be there where there was none. A round counts when its line is whole; the end of
 * a run when nothing has come for a second after it, or the trace was closed. False: it is another trace by now, or cut, and
 * so is every later call. */
bool trace_reader_follow(struct trace_reader **, const char *folder, struct err *);
bool trace_reader_look(struct trace_reader *, uint64_t now_us, struct err *);
void trace_reader_close(struct trace_reader *);
const struct run_info *trace_reader_info(const struct trace_reader *);
uint64_t trace_reader_rounds(const struct trace_reader *); /* in it; all sequences' lines under a number are one */
/* After a ROUND event: no other sequence has a line of that round. */
bool trace_reader_round_ended(const struct trace_reader *);
bool trace_reader_closed(const struct trace_reader *);          /* was it closed cleanly? */
uint64_t trace_reader_duration_us(const struct trace_reader *); /* of all its runs, one after another */
/* Where an event is on that time line. */
uint64_t trace_reader_time(const struct trace_reader *, const struct event *);
/* The next event; its texts live until the next call. False with err->kind == ERR_NONE at the end. */
bool trace_reader_next(struct trace_reader *, struct event *, struct err *);
bool trace_reader_rewind(struct trace_reader *, struct err *);
/* The same, and what layers and policies said is passed over this time, which is most of a trace. */
bool trace_reader_rewind_brief(struct trace_reader *, struct err *);

#endif
