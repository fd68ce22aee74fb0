/* A table of kinds of servers, one file each: how a server of the kind is recognised, what it tells of its model, how it
 * is asked for tokens and for an answer, and how the events of the answer become rounds (docs/design-servers.md). The
 * bytes of a server are not trusted: numbers are checked before they are used. */
#ifndef ENGINE_REMOTE_SERVER_KIND_H
#define ENGINE_REMOTE_SERVER_KIND_H

#include <cjson/cJSON.h>

#include "engine/events/event.h"
#include "engine/remote/http.h"
#include "engine/remote/remote.h"

/* The ids of a server that does not tell the size of its vocabulary are below this number. */
#define SERVER_VOCAB (1u << 20)

struct server_facts {
    char version[32], model[64], types[32], id[256]; /* id: the model's name in requests */
    uint32_t vocab, ctx, width;                      /* 0: unknown */
    uint64_t parameters;
    uint32_t drafts;   /* of each round with drafts, if they are as many in every round; else 0 */
    bool marks_spaces; /* pieces of tokens have U+2581 for a space, else they spell bytes as a byte-level BPE does */
};

struct server_token {
    token_t token;
    uint32_t n_top;
    token_t top[PREDICTION_TOP];
    float top_p[PREDICTION_TOP]; /* the target's probabilities, descending */
};

struct server_round {
    uint64_t us; /* when its first event came, clock_us() */
    size_t n;    /* tokens */
    uint32_t drafted, accepted;
    bool uncounted; /* the server does not tell whether tokens were drafts */
};

/* An answer, while its events come. */
struct server_answer {
    const struct server_facts *facts;
    /* A token's bytes, before its first use. */
    void (*word)(void *user, token_t, const char *bytes, size_t n);
    bool (*known)(void *user, token_t);
    /* Another request, also while the answer comes, as server_ask(); NULL: failed. */
    cJSON *(*ask)(void *user, const char *path, cJSON *);
    /* A round is complete; its first token is `tokens`. Returns false to end the answer. */
    bool (*round)(void *user, const struct server_round *, const struct server_token *tokens);
    void *user;
    uint64_t us;                 /* when the present event came */
    struct server_token *tokens; /* (n_tokens) of rounds that are not complete; owned */
    size_t n_tokens, room;
    struct server_round now;    /* the round of these tokens */
    uint64_t drafted, accepted; /* so far */
    uint64_t made;              /* tokens so far */
    uint64_t most, read;        /* tokens that were requested (0: no limit), and that came */
    bool first;                 /* the answer's first token, which the prompt's forward pass gave, is still to come */
    struct server_round *later; /* (n_later) events whose drafts the last one tells, and */
    struct server_round *steps; /* (n_steps) the rounds that have drafts; both owned */
    size_t n_later, later_room, n_steps, steps_room;
    bool counted;   /* the server told its steps */
    bool watched;   /* rounds are complete as they come, without what only the last event tells */
    uint32_t empty; /* events without a token since the last one with one */
    char end[16];   /* eos, tokens; "": it is not over */
    struct err err; /* why the answer is refused */
};

/* A prompt: bytes, or with `chat` a message after others (JSON; NULL: none) and a system message (NULL: none). */
struct server_prompt {
    const char *text, *before, *system;
    bool chat;
};

struct server_request {
    const char *model;
    uint32_t tokens;
    bool ignore_eos;
    struct sampling sampling;
    uint64_t seed;
};

struct server_kind {
    const char *name, *path; /* of the request for an answer */
    /* Returns false if the server is of another kind (err->kind is ERR_NONE), or if it cannot be asked. */
    bool (*recognise)(struct http *, struct server_facts *, struct err *);
    /* Adds the members of the request for a prompt's tokens, and reads its answer; `word` as in an answer. */
    bool (*tokens)(struct http *, const struct server_prompt *, struct server_answer *, struct err *);
    /* The members of the request besides the ids, and the name of these. */
    cJSON *(*request)(const struct server_request *);
    const char *ids;
    bool (*event)(struct server_answer *, const cJSON *); /* false: the answer is over, or refused */
    /* Completes rounds after the last event; false: refused, or a round ended it. NULL: they are complete. */
    bool (*finish)(struct server_answer *);
    struct server_metric { /* a counter of RECORDED_SERVER (remote.h) and its name in /metrics; a NULL ends them */
        const char *name, *metric;
    } metrics[8];
};

extern const struct server_kind llama_server_kind, vllm_kind, sglang_kind;
extern const struct server_kind *const server_kinds[]; /* ends with NULL */

/* Parses the text of /metrics, and changes it. */
cJSON *server_counters(const struct server_kind *, char *text);

/* ---- for the kinds ---- */

/* Posts, or gets with json NULL, and parses an answer with status 200; consumes json. Returns NULL with the server's own
 * message, or with ERR_NONE if the server has no such path. */
cJSON *server_ask(struct http *, const char *path, cJSON *json, struct err *);
cJSON *server_json(const char *format, ...) __attribute__((format(printf, 1, 2))); /* parses what it prints */
const cJSON *server_at(const cJSON *, const char *name);                           /* a member; NULL: none */
const char *server_text(const cJSON *, const char *name);                          /* "": no such text */
/* A whole number below `limit`, else 0. */
uint64_t server_number(const cJSON *, const char *name, uint64_t limit);
void server_label(char *out, size_t n, const char *text); /* printable */
/* Writes the part of a model's name after the last slash, printable. */
void server_model(char *out, size_t n, const char *name);
/* Writes the messages of a prompt. */
cJSON *server_messages(const struct server_prompt *);
/* Begins a token of the round; NULL: refused. `piece`: its bytes as the server spells them, NULL: unknown. */
struct server_token *answer_token(struct server_answer *, const cJSON *id);
void answer_piece(struct server_answer *, token_t, const char *piece, size_t n);
/* Adds one of the likeliest tokens, if the vocabulary has it and there is room; they become descending. */
void answer_top(const struct server_answer *, struct server_token *, double id, double logprob);
/* Completes a round of the first n tokens. */
bool answer_round(struct server_answer *, const struct server_round *);
/* Refuses the answer; returns false. */
bool answer_refuse(struct server_answer *, const char *why);

#endif
