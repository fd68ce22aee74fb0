#include "cli/tune_server.h"

#include <string.h>

#include "base/clock.h"
#include "engine/tune/engine_flags.h"
#include "policies/registry.h"

#define FLAGS      "{flags}"
#define FLAGS_MOST 2000 /* bytes */

/* Writes the options of a setting. Plain decoding needs none, also before the engine is known. */
static bool
write_flags(const struct tune_server *s, const struct preset *p, char *out, size_t n, struct err *err)
{
    char text[FLAGS_MOST];
    const struct engine_models models = {"", s->o->aux[AUX_DRAFT]};
    out[0] = '\0';
    if (policy_is_baseline(p->policy))
        return true;
    engine_flags(s->engine, policy_named(policy_registry, p->policy), p, &models, NULL, 0, text, sizeof text);
    if (engine_folder_note(text) != NULL)
        return err_set(err, ERR_USAGE, "--draft '%.200s': %s reads no GGUF file; give a Hugging Face folder",
                       models.draft, engine_names[s->engine]);
    snprintf(out, n, "%s", text + (text[0] == ' '));
    return true;
}

/* As struct remote_launch's member. */
static bool
flags_of_settings(void *user, const struct settings *settings, char *out, size_t n, struct err *err)
{
    const struct tune_server *s = user;
    const struct policy_info *info = &s->policies[settings->policy];
    struct preset p = {.n_set = info->n_knobs};
    memcpy(p.policy, info->name, sizeof p.policy);
    for (uint32_t k = 0; k < info->n_knobs; k++) {
        memcpy(p.set[k].name, info->knobs[k].name, sizeof p.set[k].name);
        knob_format(&info->knobs[k], settings->value[settings->policy][k], p.set[k].text, sizeof p.set[k].text);
    }
    sampling_knob_text(&settings->sampling, 0, SAMPLING_TEMPERATURE, p.sampling[SAMPLING_TEMPERATURE],
                       sizeof p.sampling[SAMPLING_TEMPERATURE]);
    return write_flags(s, &p, out, n, err);
}

const char *
tune_server_command(const struct tune_server *s, const struct preset *p, char *out, size_t n)
{
    const char *command = s->o->launch, *place = strstr(command, FLAGS);
    char flags[FLAGS_MOST] = "";
    write_flags(s, p, flags, sizeof flags, NULL);
    snprintf(out, n, "%.*s%s%s", (int)(place - command), command, flags, place + strlen(FLAGS));
    for (size_t end = strlen(out); end > 0 && out[end - 1] == ' ';)
        out[--end] = '\0';
    return out;
}

static bool
is_named(const struct options *o, const char *policy)
{
    size_t i = 0;
    while (i < o->policies.n && strcmp(o->policies.at[i], policy) != 0)
        i++;
    return i < o->policies.n;
}

/* Declares the policies that some server's engine has. A draft model may be an EAGLE-3 head or a block drafter, and
 * the model may have layers for multi-token prediction: only the server knows, so these policies race if they are named. */
static bool
declare(struct tune_server *s, struct err *err)
{
    const struct model_info model = {.layers = 1, .width = 1, .vocab = 1, .rho = 1};
    const unsigned here = s->o->aux[AUX_DRAFT] != NULL ? NEEDS_DRAFTER | NEEDS_MARKOV : NEEDS(AUX_MTP),
                   uncertain = NEEDS_DRAFTER & ~NEEDS(AUX_DRAFT);
    for (size_t i = 0; policy_registry[i] != NULL; i++) {
        const struct policy_ops *ops = policy_registry[i];
        struct policy p;
        if (ops->command[ENGINE_LLAMA_CPP] == NULL && ops->command[ENGINE_VLLM] == NULL &&
            ops->command[ENGINE_SGLANG] == NULL)
            continue;
        const bool opened = policy_open(&p, ops, &model, &s->o->sampling, err);
        struct policy_info *info = &s->policies[s->n++];
        *info = p.info;
        policy_close(&p);
        if (!opened)
            return false;
        const bool unsure = (ops->needs & uncertain) != 0 && !is_named(s->o, ops->name);
        info->missing = unsure ? ops->needs : ops->needs & ~here;
    }
    return true;
}

/* Lists the policies of the server's engine, which draft trees only if it has an option for them. */
static bool
choose_engine(struct tune_server *s, const char *kind, struct err *err)
{
    static const char *const kinds[] = {
        [ENGINE_LLAMA_CPP] = "llama-server", [ENGINE_VLLM] = "vllm", [ENGINE_SGLANG] = "sglang"};
    uint32_t n = 0;
    for (s->engine = ENGINE_LLAMA_CPP; s->engine < ENGINE_SGLANG && strcmp(kinds[s->engine], kind) != 0;)
        s->engine++;
    for (size_t i = 0; policy_registry[i] != NULL; i++) {
        struct policy_ops *ops = &s->ops[n];
        char tree[32];
        *ops = *policy_registry[i];
        if (ops->command[s->engine] == NULL) {
            if (is_named(s->o, ops->name))
                return err_set(err, ERR_USAGE, "cannot race %s on %s: %s", ops->name, kind,
                               ops->no_command != NULL ? ops->no_command : "it has no such policy");
            continue;
        }
        snprintf(tree, sizeof tree, "<%s>", ops->breadth != NULL ? ops->breadth : "");
        if (strstr(ops->command[s->engine], tree) == NULL)
            ops->breadth = NULL;
        s->registry[n++] = ops;
    }
    return true;
}

bool
tune_server_open(struct tune_server *s, const struct options *o, const char *prompt, struct live **live,
                 struct err *err)
{
    const char *other = o->model != NULL    ? o->model
                        : o->synth != NULL  ? "--synth"
                        : o->drafts != NULL ? "--drafts"
                                            : NULL;
    s->o = o;
    if (strstr(o->launch, FLAGS) == NULL)
        return err_set(err, ERR_USAGE,
                       "--launch: the command has no " FLAGS
                       ", the place of the options that race: 'llama-server -m MODEL " FLAGS "'");
    if (other != NULL)
        return err_set(err, ERR_USAGE, "--launch: the command names the server's model; leave out '%.100s'", other);
    if (!server_given_read(&s->given, o, err) || !declare(s, err))
        return false;
    struct remote_options *r = &s->given.remote;
    r->launch = (struct remote_launch){o->launch, flags_of_settings, s};
    r->policies = s->policies;
    r->n_policies = s->n;
    r->policy = POLICY_BASELINE;
    r->prompt = prompt;
    r->prompt_len = strlen(prompt);
    r->stay = true;
    fputs("specscope: starts the server\n", stderr);
    const uint64_t begun = clock_us();
    if (!remote_open(live, r, err))
        return false;
    s->start_s = (double)(clock_us() - begun) * 1e-6;
    return choose_engine(s, (*live)->ops->info(*live)->backend, err);
}

void
tune_server_close(struct tune_server *s)
{
    server_given_free(&s->given);
}
