/* Opening a session: policies, what is known of the run, the prompt, memory, the context. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/model/sv_profile.h"
#include "engine/session/session_internal.h"

/* Every policy is opened, so that the screen and the trace know the declarations of all. */
static bool
open_policies(struct session *s, const struct policy_ops *const *registry, struct err *err)
{
    uint32_t n = 0;
    while (registry[n] != NULL)
        n++;
    s->policies = calloc(n, sizeof *s->policies);
    s->info.policies = calloc(n, sizeof *s->info.policies);
    s->info.start_values = calloc((size_t)n * POLICY_KNOBS, sizeof *s->info.start_values);
    if (s->policies == NULL || s->info.policies == NULL || s->info.start_values == NULL)
        return err_set(err, ERR_WORK, "out of memory opening the policies");
    for (uint32_t i = 0; i < n; i++) {
        struct policy *p = &s->policies[i];
        s->info.n_policies = i + 1; /* closed even when opening fails half-way */
        if (!policy_open(p, registry[i], &s->model, &s->info.sampling, err))
            return false;
        p->info.missing = engine_missing(s->engine, p->ops->needs);
        s->info.policies[i] = p->info;
    }
    return true;
}

static void
describe_trained(struct run_info *info, const struct engine *e)
{
    if (e->accept != NULL) {
        snprintf(info->accept_head.path, sizeof info->accept_head.path, "%s", e->accept->path);
        info->accept_head.hash = e->accept->hash;
    }
    if (e->profile != NULL) {
        snprintf(info->profile.path, sizeof info->profile.path, "%s", e->profile->path);
        info->profile.hash = e->profile->hash;
    }
}

static void
describe(struct session *s, const struct session_options *o)
{
    struct run_info *info = &s->info;
    const struct model *m = s->engine->model;
    info->format = TRACE_FORMAT;
    snprintf(info->version, sizeof info->version, "%s", SPECSCOPE_VERSION);
    snprintf(info->model_path, sizeof info->model_path, "%s", m->path);
    snprintf(info->model_name, sizeof info->model_name, "%s", m->name);
    snprintf(info->arch, sizeof info->arch, "%s", m->arch);
    snprintf(info->types, sizeof info->types, "%s", m->types);
    info->layers = m->desc.n_layers;
    info->width = m->desc.width;
    info->heads = m->desc.heads;
    info->kv_heads = m->desc.kv_heads;
    info->ffn = m->desc.ffn;
    info->vocab = m->desc.vocab;
    info->parameters = m->parameters;
    info->model_hash = m->hash;
    info->rho = m->rho;
    for (enum helper_role role = 0; role < HELPERS; role++) {
        const struct model *helper = s->engine->helpers[role].model;
        struct helper_info *h = &info->helpers[role];
        engine_helper_name(s->engine, role, h->name, sizeof h->name);
        snprintf(h->path, sizeof h->path, "%s", helper != NULL ? helper->path : "");
        h->hash = helper != NULL ? helper->hash : m->hash;
        h->layers = helper != NULL ? helper->desc.n_layers : 0;
    }
    describe_trained(info, s->engine);
    snprintf(info->backend, sizeof info->backend, "%s", s->engine->ops->name);
    snprintf(info->isa, sizeof info->isa, "%s", s->engine->ops->describe(s->engine->backend));
    if (gethostname(info->host, sizeof info->host) != 0)
        info->host[0] = '\0';
    info->host[sizeof info->host - 1] = '\0';
    info->threads = s->engine->threads;
    info->exact = s->engine->exact;
    info->sampling = o->sampling;
    info->seed = o->seed;
    info->tokens = o->tokens;
    info->sequences = info->prompts = 1;
    snprintf(info->policy, sizeof info->policy, "%s", o->policy);
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(info->started, sizeof info->started, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

static bool
allocate(struct session *s, struct err *err)
{
    const size_t layers = s->model.layers, ctx = s->info.ctx;
    struct probing *p = &s->probing;
    p->n = (layers + 1) * VERIFY_NODES;
    p->guesses = calloc(p->n, sizeof *p->guesses);
    p->probes = calloc(p->n, sizeof *p->probes);
    s->run.tokens = calloc(ctx + 2, sizeof *s->run.tokens);
    s->told = calloc(s->model.vocab / 64 + 1, sizeof *s->told);
    s->state.temperature = calloc(layers + 1, sizeof *s->state.temperature);
    if (p->guesses == NULL || p->probes == NULL || s->run.tokens == NULL || s->told == NULL ||
        s->state.temperature == NULL)
        return err_set(err, ERR_WORK, "out of memory for a context of %zu tokens; lower --ctx", ctx);
    return true;
}

static bool
set_knobs(struct session *s, const struct session_options *o, struct err *err)
{
    const uint32_t policy = s->settings.policy;
    for (size_t i = 0; i < o->n_set; i++) {
        uint32_t knob;
        double value;
        if (!session_read_knob(s, policy, o->set[i].name, o->set[i].text, &knob, &value, err))
            return false;
        s->policies[policy].value[knob] = value;
    }
    for (uint32_t p = 0; p < s->info.n_policies; p++)
        memcpy(s->info.start_values + (size_t)p * POLICY_KNOBS, s->policies[p].value, sizeof s->policies[p].value);
    for (uint32_t p = 0; p < s->info.n_policies && o->memory != NULL; p++)
        if (!policy_memory_recall(o->memory, &s->policies[p], err))
            return false;
    s->memory = o->memory;
    return true;
}

static bool
take_prompt(struct session *s, const struct session_options *o, struct err *err)
{
    s->format = (struct prompt_format){.tokenizer = s->engine->model->tokenizer, .ctx = s->info.ctx};
    if (o->chat)
        chat_of_tokenizer(&s->format.chat, s->format.tokenizer); /* an unknown one: prompts stay as they are */
    if (o->system != NULL && (s->format.system = s->system = strdup(o->system)) == NULL)
        return err_set(err, ERR_WORK, "out of memory for the system text");
    if (!prompt_read(&s->run.prompt, &s->format, o->prompt, o->prompt_len, err))
        return false;
    s->info.prompt_len = o->prompt_len;
    s->info.prompt = strndup(o->prompt, o->prompt_len);
    s->run.cause = "start";
    s->run.wanted = o->tokens > 0 ? o->tokens : UINT32_MAX;
    return s->info.prompt != NULL || err_set(err, ERR_WORK, "out of memory for the prompt");
}

bool
session_open_parts(struct session *s, const struct session_options *o, struct err *err)
{
    const struct model *m = s->engine->model;
    s->model = (struct model_info){m->desc.n_layers, m->desc.width, m->desc.vocab, m->rho, s->engine->profile};
    describe(s, o);
    s->info.ctx = o->ctx > 0 ? o->ctx : m->ctx_train;
    if (!(o->sampling.temperature >= 0) || !(o->sampling.top_p > 0) || o->sampling.top_p > 1)
        return err_set(err, ERR_USAGE, "sampling: the temperature must be 0 or more, top-p above 0 and at most 1");
    if (!open_policies(s, o->policies, err) || !session_find_policy(s, o->policy, &s->settings.policy, err) ||
        !set_knobs(s, o, err) || !session_check_head(s, o->head, err) || !take_prompt(s, o, err) || !allocate(s, err) ||
        !event_log_open(&s->log, 0, err))
        return false;
    return session_open_contexts(s, err);
}
