/* Names of the events' enumerations, as they stand in a trace. */
#include "engine/events/event.h"

const char *const token_source_names[TOKEN_SOURCES] = {"prompt", "prefill", "draft", "correction", "bonus"};
const char *const probed_by_names[PROBED_BY] = {"policy", "verify", "scope"};
const char *const layer_model_names[LAYER_MODELS] = {"", "draft", "companion"};

const char *const control_names[] = {
    "run",    /* a run begins (new: start, restart, prompt); the event's `run` is the new one */
    "prompt", /* new: its text */
    "versus", /* the run has two settings: sequence 0 goes on with the one in force, 1 begins with this one (new: "layerskip
                   exit_layer=4", its other knobs are the first's); knobs and policies are then told by `seq` */
    "policy", /* new: its name */
    "state",  /* new: running, paused */
    "probe",  /* new: off, policy, all */
    "head",   /* what looks at layers from then on (new: lens, trained); not told where there is only the lens */
    "break",  /* a breakpoint was reached (new: the round) */
    "until",  /* what was looked out for came in this round of the sequence `seq` (new: what, as until.h prints it) */
    "joined", /* a sequence of a batch, which the event's `seq` numbers, begins (new: its prompt's text) */
    "left",   /* … and ends (new: eos, tokens, context) */
    "back",   /* … and goes on after that: more tokens are wanted */
    "prefill", /* the prompt of the sequence `seq` was read in chunks by a library (new: blas); not told of one that was read
                    as rows are */
    "end",  /* the run is over (new: eos, tokens, context, or "error: …"; batch: all sequences left) */
    "pace", /* what it is slowed down to from then on (new: tokens/s; 0: as fast as it goes); not told of a run that
                   begins as fast as it goes */
    "baseline_se", /* standard error of the baseline that is told next (new: the number) */
    "baseline",    /* autoregressive tokens/s of the same prompt were measured (new: the number) */
    "lossless",    /* and compared (new: "yes", of all that there were "yes: 7 sequences", "no: token 17", "sampled") */
    "note",        /* a bookmark of a person's (new: the position, then the text; none: it was taken back) */
    "device",      /* where the device's time went since it was last told, where the backend measures it (new: words) */
    NULL,
};
