/* Facts that stay the same from a run's start to its end: written to run.json, shown in the title bar. */
#ifndef ENGINE_EVENTS_RUN_INFO_H
#define ENGINE_EVENTS_RUN_INFO_H

#include "engine/events/cost_model.h"
#include "engine/events/draft_vocab.h"
#include "engine/events/policy.h"

#define TRACE_FORMAT  1
#define POLICIES_MOST 64 /* policies of a run */

struct aux_info {             /* an auxiliary model; name "": none */
    char name[64], path[512]; /* "self:3" and "" for the target's own first layers */
    uint64_t hash;
    uint32_t layers; /* 0: no layers of its own, or not in an older trace */
    /* Loads of a forward pass in the target's layers, and of a head call and of its acceptance or confidence head in the
     * target's head; 0: none, or not in an older trace */
    double pass_load, head_load, accept_load;
};

struct trained_info { /* a file of trained parameters or measurements; path "": none */
    char path[512];
    uint64_t hash;
};

#define ASKED_VARS 4096 /* bytes */
#define ASKED_LORA 2048

struct asked_info { /* further options that influence the result; all 0: none, or an older trace */
    bool chat, chat_special, ignore_eos, quantize, no_heads;
    char *system;               /* NULL: the template's own; owned */
    char chat_vars[ASKED_VARS]; /* NAME=VALUE, one per line */
    char lora[ASKED_LORA];      /* adapters of the model, FILE[:SCALE], one per line */
    char tools[512];            /* a file; "": none */
    char chat_template[512];    /* a name, or a file; "": the model's own */
    char chat_date[24];         /* "2026-03-05 14:30"; "": the day of the run */
    char isa[16];               /* forced by an option; "": not */
    char gpu[12];               /* its number; "": not set */
    uint32_t batch;             /* sequences at a time; 0: no batch */
    uint32_t threads;           /* set by an option; 0: the program chose their number */
    char prompts[512];          /* the file of the batch's prompts; "": none */
};

/* Predictions of layers that a trace contains: all; those requested by the policy or the verification, and the scope's
 * probes in every n-th round; none. */
enum trace_layers { TRACE_LAYERS_ALL, TRACE_LAYERS_SOME, TRACE_LAYERS_OFF };

struct trace_bounds { /* limits of a trace; zeros: none */
    uint64_t bytes;   /* most bytes of all files; 0: no limit */
    enum trace_layers layers;
    uint32_t every; /* with TRACE_LAYERS_SOME: the scope's probes of every n-th round; 0: of no round */
};

#define RUN_LAYERS_MOST  4096u /* most layers of a model in a run that can be traced */
#define RUN_EXPERTS_MOST 4096u /* most experts of a layer in a run that can be traced */

struct run_info {
    uint32_t format;      /* TRACE_FORMAT */
    char version[16];     /* of specscope */
    char model_path[512]; /* a file; "TinyLlama-1.1B,6,0.75", weights by formula; "http://…", a server */
    char model_name[64], arch[32], types[64];
    uint32_t layers, width, heads, kv_heads, ffn, vocab, ctx;
    /* A letter for each layer of a model whose layers differ: 'a' attention, 'w' attention within a window, 'r'
     * recurrent. "": all layers are of one kind, or in an older trace */
    char layer_kinds[RUN_LAYERS_MOST + 1];
    /* of a layer that has experts, and those that a row is routed to; 0: none, or unknown */
    uint32_t experts, experts_used;
    uint64_t parameters, model_hash;
    double rho;
    struct aux_info aux[AUX_MODELS];
    struct trained_info accept_head, profile, exit_heads;
    struct trained_info vocab_counts; /* the counts that order the vocabulary for drafts; path "": by id, and */
    char vocab_last[DRAFT_LAST_MOST]; /* the tokens that are last (draft_vocab.h); "": none, or an older trace */
    const struct draft_rank *rank;    /* the order, of an engine, borrowed; NULL: in a trace */
    char backend[16], isa[96], host[64];
    uint32_t threads;
    bool exact;
    struct cost_model costs; /* of steps; unknown if they were not measured before the run */
    char *prompt;            /* bytes and a NUL (a prompt contains none); owned */
    size_t prompt_len;
    struct sampling sampling;
    uint64_t seed;
    uint32_t tokens; /* -n */
    struct asked_info asked;
    uint32_t sequences, prompts;  /* of a batch: at a time, and in all; else 1 and 1 */
    char policy[16];              /* policy at the start */
    char started[32];             /* ISO 8601, UTC */
    uint32_t n_policies;          /* at most POLICIES_MOST */
    struct policy_info *policies; /* every policy of the registry, declared for this model; owned */
    double *start_values;         /* (n_policies * POLICY_KNOBS) knob values at the start; owned */
    void *choice_memory;          /* memory of knobs[].choices if read from a file, else NULL; owned */
    const struct run_info
        *second; /* of two saved runs (traces/trace_pair.h): that of sequence 1, with the same policies; else NULL */
    const char *saved_as;      /* and the name of its trace; else NULL */
    struct trace_bounds trace; /* limits of the trace that is read or written */
    bool cut;                  /* the trace ended at trace.bytes, before the run did */
};

static inline const struct run_info *
run_info_of(const struct run_info *info, uint32_t seq)
{
    return info->second != NULL && seq == 1 ? info->second : info;
}

static inline bool
run_info_apart(const struct run_info *info) /* Are sequences 0 and 1 two saved runs? */
{
    return info->second != NULL;
}

/* In a versus: does a control concern sequence `seq`, 0 or 1? In one run, sampling, pace, probes, baselines and
 * comparisons concern both; two saved runs have their own. */
bool run_info_concerns(const struct run_info *, uint32_t seq, const struct event *control);
/* Does a control concern all sequences of a run? */
bool run_info_common(const struct control_event *);

/* "attention", "window" or "recurrent"; "" for a model of one kind of layers. Layers count from 1. */
const char *run_info_kind(const struct run_info *, uint32_t layer);
const struct policy_info *run_info_policy(const struct run_info *, const char *name); /* NULL: unknown */
uint32_t run_info_layers(const struct run_info *, enum layer_model);                  /* 0: no such model, or unknown */
/* Sets what every live source has: format, version, computer, time, and these. */
void run_info_begin(struct run_info *, const struct sampling *, uint64_t seed, uint32_t tokens, const char *policy);
void run_info_free(struct run_info *); /* frees what it owns, not the struct */

#endif
