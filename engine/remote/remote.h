/* A server as a live source of events (engine/events/live.h). A thread posts prompts to it, reads its answers as
 * server-sent events, and appends what it can know: the run, the prompt's tokens, rounds (times, drafted, accepted),
 * tokens with the target's probabilities, the end. docs/design-servers.md defines how a round follows from each kind of
 * server. */
#ifndef ENGINE_REMOTE_REMOTE_H
#define ENGINE_REMOTE_REMOTE_H

#include "engine/events/live.h"

/* The name under which an unknown speculation of a server is recorded. */
#define POLICY_SERVER "server"

/* Starts servers, one at a time: at a prompt whose setting is not that of the running one. */
struct remote_launch {
    /* Words of a shell in which {flags} is replaced; the server gets --host 127.0.0.1 and a free --port at the end. NULL:
     * none is started. */
    const char *command;
    /* Writes the options of these settings; fails with a reason if the engine has no such policy. */
    bool (*flags)(void *user, const struct settings *, char *out, size_t n, struct err *);
    void *user;
};

struct remote_options {
    const char *url;  /* http or https; NULL with a launch */
    const char *kind; /* "llama-server", "vllm", "sglang"; NULL: the server is asked */
    const char *key;  /* sent as a bearer token, never logged; NULL: none */
    struct remote_launch launch;
    /* (n_policies) declared policies, among them POLICY_BASELINE and POLICY_SERVER; borrowed */
    const struct policy_info *policies;
    uint32_t n_policies;
    const char *policy; /* the one at the start */
    const char *prompt; /* bytes */
    size_t prompt_len;
    bool chat;          /* prompts are messages, in the form of the server's own template */
    const char *system; /* NULL: none */
    struct sampling sampling;
    uint64_t seed;
    uint32_t tokens; /* to generate; 0: until the end */
    bool ignore_eos;
    bool watched; /* each round is appended as it comes, without counts that only the end of an answer has (vLLM) */
    bool paused, stay;         /* as in struct session_options */
    const atomic_bool *cancel; /* ends remote_open(), also the start of a server; NULL: nothing does */
    /* Every second RECORDED_SERVER has the server's counters: {"at": [9, 7, 4], "running": 1, "waiting": 0,
     * "tokens_per_s": 81, "drafts": 12, "drafted": 36, "accepted": 20}, as far as they are known. Not with a launch. */
    bool counters;
};

/* Asks the server for its kind and its model; a launch starts it first. Fails in one line if there is none, it is of no
 * known kind, or an option cannot be carried out. */
bool remote_open(struct live **, const struct remote_options *, struct err *);

#endif
