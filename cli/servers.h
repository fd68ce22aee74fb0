/* A server from the command line: --server, --server-kind, --key-env, --key-file. */
#pragma once

#include "cli/options/options.h"
#include "engine/remote/remote.h"

struct server_given {
    /* Sampling, length and messages are those of the options; the caller may change everything. */
    struct remote_options remote;
    struct policy_info policies[2]; /* POLICY_SERVER and POLICY_BASELINE */
    char *key;                      /* owned */
};

/* Fails with ERR_USAGE if an option is not one for a server, or there is no key where one is to be. */
bool server_given_read(struct server_given *, const struct options *, struct err *);
void server_given_free(struct server_given *); /* overwrites the key */
