/* specscope connect: the scope on a server. */
#include <string.h>

#include "base/program.h"
#include "cli/options/commands.h"
#include "cli/options/files.h"
#include "cli/options/option_table.h"
#include "cli/scope.h"
#include "cli/servers.h"

static int
show_server(const struct options *o, const struct prompt_list *prompts, struct server_given *server, struct err *err)
{
    struct live *live = NULL;
    server->remote.paused = o->script != NULL;
    server->remote.stay = server->remote.counters = server->remote.watched = true;
    if (o->prompts_file != NULL) {
        server->remote.prompt = prompts->texts[0];
        server->remote.prompt_len = strlen(prompts->texts[0]);
    }
    if (!remote_open(&live, &server->remote, err))
        return command_failed(err);
    /* A server that others pay for gets no prompts that the user did not choose. */
    const struct app_options app = {
        .prompts = prompts->texts, .n_prompts = prompts->n, .once = o->once || o->prompts_file == NULL};
    const int status = scope_show(o, live, app, NULL, err);
    live_close(live);
    return status;
}

bool
connect_main(struct options *o, int *status, struct err *err)
{
    struct server_given server = {0};
    struct prompt_list prompts = {0};
    o->server.url = o->model;
    bool ok = o->model != NULL || err_set(err, ERR_USAGE, "which server? %s connect http://HOST:PORT", program_name());
    if (ok && o->prompts_file != NULL)
        ok = prompts_read(o->prompts_file, &prompts, err);
    ok = ok && server_given_read(&server, o, err) && scope_has_terminal("run --server", err);
    if (ok)
        *status = show_server(o, &prompts, &server, err);
    server_given_free(&server);
    prompts_free(&prompts);
    return ok;
}
