/* The servers of `tune --launch`: the policies that their engine has, and the command of each setting. */
#ifndef CLI_TUNE_SERVER_H
#define CLI_TUNE_SERVER_H

#include "cli/servers.h"
#include "engine/tune/preset.h"

struct tune_server {
    const struct options *o;
    struct server_given given;
    enum other_engine engine; /* known after the first start */
    uint32_t n;               /* policies */
    struct policy_info policies[POLICIES_MOST];
    struct policy_ops ops[POLICIES_MOST];                 /* with what the engine has, and their list */
    const struct policy_ops *registry[POLICIES_MOST + 1]; /* NULL-terminated */
    double start_s;                                       /* that the first start took */
};

/* Starts the server with plain decoding, as a source that restarts it for another setting. Fails with ERR_USAGE if the
 * command has no {flags}, an option is not for a server, or the engine has no policy of a name that was given. */
bool tune_server_open(struct tune_server *, const struct options *, const char *prompt, struct live **, struct err *);
void tune_server_close(struct tune_server *); /* after the source is closed */
/* Writes the command of a setting, as the user would type it. Returns out. */
const char *tune_server_command(const struct tune_server *, const struct preset *, char *out, size_t n);

#endif
