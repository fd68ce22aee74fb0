#include "cli/servers.h"

#include <stdlib.h>
#include <string.h>

#include "cli/generation/generation.h"
#include "cli/options/files.h"

/* Reads the key from the environment or a file: it is on no command line, which other users can see. */
static bool
read_key(struct server_given *s, const struct options *o, struct err *err)
{
    size_t n = 0;
    if (o->server.key_env != NULL && o->server.key_file != NULL)
        return err_set(err, ERR_USAGE, "--key-env and --key-file: one key is enough");
    if (o->server.key_env != NULL) {
        const char *value = getenv(o->server.key_env);
        s->key = strdup(value != NULL ? value : "");
        n = s->key != NULL ? strlen(s->key) : 0;
        if (value == NULL)
            return err_set(err, ERR_USAGE, "--key-env %.64s: the environment has no such variable", o->server.key_env);
    } else if (o->server.key_file != NULL) {
        if (!file_read(o->server.key_file, &s->key, &n, err))
            return false;
    } else {
        return true;
    }
    while (n > 0 && strchr(" \t\r\n", s->key[n - 1]) != NULL)
        s->key[--n] = '\0';
    s->remote.key = s->key;
    if (s->key == NULL)
        return err_set(err, ERR_WORK, "out of memory for the server's key");
    return n > 0 || err_set(err, ERR_USAGE, "--key-env or --key-file: the key is empty");
}

bool
server_given_read(struct server_given *s, const struct options *o, struct err *err)
{
    *s = (struct server_given){
        .policies = {{.name = POLICY_SERVER, .title = "the server's own speculation"},
                     {.name = POLICY_BASELINE, .title = "plain decoding"}},
    };
    s->remote = (struct remote_options){
        .url = o->server.url,
        .kind = o->server.kind,
        .policies = s->policies,
        .n_policies = 2,
        .policy = POLICY_SERVER,
        .prompt = o->prompt != NULL ? o->prompt : default_prompt,
        .prompt_len = o->prompt != NULL ? o->prompt_len : strlen(default_prompt),
        .chat = o->chat.on,
        .system = o->chat.system,
        .sampling = o->sampling,
        .seed = o->seed,
        .tokens = o->tokens,
        .ignore_eos = o->ignore_eos,
        .cancel = generation_interruption(),
    };
    if (o->n_set > o->n_config_set || o->versus != NULL || o->batch > 0)
        return err_set(err, ERR_USAGE,
                       "--server: the server has a setting of its own and takes a prompt at a time; "
                       "leave out --set, --versus and --batch");
    return read_key(s, o, err);
}

void
server_given_free(struct server_given *s)
{
    for (size_t i = 0; s->key != NULL && s->key[i] != '\0'; i++)
        s->key[i] = '\0';
    free(s->key);
    s->key = NULL;
}
