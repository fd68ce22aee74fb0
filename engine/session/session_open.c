/* Opens a session: description of the run, sequences and their policies, settings, prompts, memory, contexts. */
#include <stdlib.h>
#include <string.h>

#include "engine/model/trained/sv_profile.h"
#include "engine/session/engine_internal.h"
#include "engine/session/session_internal.h"

/* ---- description of the run ---- */

static void
describe_trained(struct run_info *info, const struct engine *e)
{
    snprintf(info->exit_heads.path, sizeof info->exit_heads.path, "%s", e->heads_path);
    info->exit_heads.hash = e->heads_hash;
    if (e->accept != NULL) {
        snprintf(info->accept_head.path, sizeof info->accept_head.path, "%s", e->accept->path);
        info->accept_head.hash = e->accept->hash;
    }
    info->vocab_counts = e->counts;
    info->rank = &e->rank;
    if (e->counts.path[0] == '\0' && !draft_rank_print_last(&e->rank, info->vocab_last, sizeof info->vocab_last))
        info->vocab_last[0] = '\0';
    if (e->profile != NULL) {
        snprintf(info->profile.path, sizeof info->profile.path, "%s", e->profile->path);
        info->profile.hash = e->profile->hash;
    }
}

/* Writes one line for each value; longer values were refused as options. */
static void
describe_chat(struct asked_info *asked, const struct chat_setting *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_variables && n < sizeof asked->chat_vars; i++) {
        const struct chat_variable *v = &c->variables[i];
        n += (size_t)snprintf(asked->chat_vars + n, sizeof asked->chat_vars - n, "%s%.*s=%.*s", i > 0 ? "\n" : "",
                              (int)v->name.len, v->name.data, (int)v->value.len, v->value.data);
    }
    snprintf(asked->tools, sizeof asked->tools, "%s", c->tools_path != NULL ? c->tools_path : "");
    snprintf(asked->chat_template, sizeof asked->chat_template, "%s",
             c->template_path != NULL ? c->template_path
             : c->name != NULL        ? c->name
                                      : "");
    if (c->day != NULL)
        strftime(asked->chat_date, sizeof asked->chat_date, "%Y-%m-%d %H:%M", c->day);
}

static bool
describe_asked(struct asked_info *asked, const struct engine *e, const struct session_options *o, struct err *err)
{
    asked->chat = o->chat.on;
    asked->chat_special = o->chat.special;
    if (o->chat.on)
        describe_chat(asked, &o->chat);
    asked->ignore_eos = o->ignore_eos;
    asked->quantize = e->asked.quantize;
    asked->no_heads = e->asked.no_heads;
    asked->batch = o->batch;
    asked->threads = e->asked.threads;
    memcpy(asked->isa, e->asked.isa, sizeof asked->isa);
    memcpy(asked->lora, e->asked.lora, sizeof asked->lora);
    if (e->asked.gpu >= 0)
        snprintf(asked->gpu, sizeof asked->gpu, "%d", e->asked.gpu);
    snprintf(asked->prompts, sizeof asked->prompts, "%s",
             o->n_prompts > 0 && o->prompts_path != NULL ? o->prompts_path : "");
    return o->chat.system == NULL || (asked->system = strdup(o->chat.system)) != NULL ||
           err_set(err, ERR_WORK, "out of memory for the system text");
}

/* Writes a letter for each layer, or nothing if all layers are of one kind. */
static void
describe_kinds(const struct model_desc *d, char out[RUN_LAYERS_MOST + 1])
{
    bool differ = false;
    for (uint32_t l = 0; l < d->n_layers && l < RUN_LAYERS_MOST; l++) {
        const struct layer_form *f = &d->layers[l].form;
        out[l] = f->kind == LAYER_RECURRENT ? 'r' : d->window > 0 && !f->sees_all ? 'w' : 'a';
        out[l + 1] = '\0';
        differ = differ || out[l] != out[0];
    }
    if (!differ)
        out[0] = '\0';
}

static void
describe(struct session *s, const struct session_options *o)
{
    struct run_info *info = &s->info;
    const struct model *m = s->engine->model;
    snprintf(info->model_path, sizeof info->model_path, "%s", m->path);
    snprintf(info->model_name, sizeof info->model_name, "%s", m->name);
    snprintf(info->arch, sizeof info->arch, "%s", m->arch);
    snprintf(info->types, sizeof info->types, "%s", m->types);
    info->layers = m->desc.n_layers;
    describe_kinds(&m->desc, info->layer_kinds);
    info->width = m->desc.width;
    info->heads = m->desc.heads;
    info->kv_heads = m->desc.kv_heads;
    info->ffn = m->desc.ffn;
    info->experts = m->desc.form.experts.n;
    info->experts_used = m->desc.form.experts.used;
    info->vocab = m->desc.vocab;
    info->parameters = m->parameters;
    info->model_hash = m->hash;
    info->rho = m->rho;
    for (enum aux_role role = 0; role < AUX_MODELS; role++) {
        const struct model *aux = s->engine->aux[role].model;
        struct aux_info *h = &info->aux[role];
        engine_aux_name(s->engine, role, h->name, sizeof h->name);
        snprintf(h->path, sizeof h->path, "%s", aux != NULL ? aux->path : "");
        h->hash = aux != NULL ? aux->hash : m->hash;
        h->layers = aux != NULL ? aux->desc.n_layers : 0;
        if (aux != NULL) {
            h->pass_load =
                h->layers * model_layer_bytes(aux, s->engine->exact) / model_layer_bytes(m, s->engine->exact);
            h->head_load = model_head_bytes(aux, s->engine->exact) / model_head_bytes(m, s->engine->exact);
        }
    }
    describe_trained(info, s->engine);
    snprintf(info->backend, sizeof info->backend, "%s", s->engine->ops->name);
    snprintf(info->isa, sizeof info->isa, "%s", s->engine->ops->describe(s->engine->backend));
    info->threads = s->engine->threads;
    info->exact = s->engine->exact;
    info->costs = s->engine->costs;
    const bool chosen = strcmp(o->policy, POLICY_AUTO) == 0;
    run_info_begin(info, &o->sampling, o->seed, o->tokens, chosen ? session_first_policy(s, o->policies) : o->policy);
    s->chooses = chosen && policy_is_baseline(info->policy);
}

/* ---- sequences and their policies ---- */

static uint32_t
at_a_time(const struct session *s) /* sequences of different settings take turns */
{
    return s->batch ? s->n_sequences : 1;
}

/* Opens every policy: the screen and the trace need all declarations. */
static bool
open_policies(struct session *s, const struct policy_ops *const *registry, uint32_t n, struct err *err)
{
    if (n > POLICIES_MOST)
        return err_set(err, ERR_WORK, "%u policies are too many: a session opens %d", (unsigned)n, POLICIES_MOST);
    s->info.policies = calloc(n, sizeof *s->info.policies);
    s->info.start_values = calloc((size_t)n * POLICY_KNOBS, sizeof *s->info.start_values);
    if (s->info.policies == NULL || s->info.start_values == NULL)
        return err_set(err, ERR_WORK, "out of memory opening the policies");
    struct policy *first = s->sequences[0].policies;
    for (uint32_t i = 0; i < n; i++) {
        s->info.n_policies = i + 1; /* for closing after a failure */
        if (!policy_open(&first[i], registry[i], &s->model, &s->info.sampling, err))
            return false;
        engine_recall(s->engine, &first[i], at_a_time(s));
        first[i].info.missing = engine_missing(s->engine, registry[i]->needs);
        s->info.policies[i] = first[i].info;
    }
    for (uint32_t l = 1; l < s->open_sequences; l++)
        for (uint32_t i = 0; i < n; i++)
            if (!policy_open_beside(&s->sequences[l].policies[i], &first[i], &s->model, &s->info.sampling, err))
                return false;
    return true;
}

static bool
open_sequences(struct session *s, const struct policy_ops *const *registry, struct err *err)
{
    uint32_t n = 0;
    while (registry[n] != NULL)
        n++;
    s->sequences = calloc(s->open_sequences, sizeof *s->sequences);
    bool ok = s->sequences != NULL;
    for (uint32_t i = 0; i < s->open_sequences && ok; i++) {
        struct sequence *q = &s->sequences[i];
        q->session = s;
        q->over = true;
        q->state.sequence = q;
        q->tokens = calloc((size_t)s->info.ctx + 2, sizeof *q->tokens);
        q->policies = calloc(n, sizeof *q->policies);
        q->state.temperature = calloc((size_t)s->model.layers + 1, sizeof *q->state.temperature);
        ok = q->tokens != NULL && q->policies != NULL && q->state.temperature != NULL;
    }
    if (!ok)
        return err_set(err, ERR_WORK, "out of memory for a context of %u tokens; lower --ctx", (unsigned)s->info.ctx);
    return open_policies(s, registry, n, err);
}

void
session_close_sequences(struct session *s)
{
    for (uint32_t i = s->sequences != NULL ? s->open_sequences : 0;
         i-- > 0;) { /* the first sequence owns the policies' shared state */
        struct sequence *q = &s->sequences[i];
        for (uint32_t p = 0; p < s->info.n_policies && q->policies != NULL; p++) {
            if (i == 0)
                engine_keep(s->engine, &q->policies[p], at_a_time(s));
            policy_close(&q->policies[p]);
        }
        free(q->policies);
        free(q->tokens);
        free(q->state.temperature);
    }
    free(s->sequences);
}

/* ---- settings, prompts, memory ---- */

static bool
allocate(struct session *s, struct err *err)
{
    struct probing *p = &s->probing;
    size_t layers = s->model.layers;
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        layers = s->info.aux[role].layers > layers ? s->info.aux[role].layers : layers;
    p->n = (layers + 1) * VERIFY_NODES;
    p->predictions = calloc(p->n, sizeof *p->predictions);
    p->probes = calloc(p->n, sizeof *p->probes);
    s->emitted_ids = calloc(s->model.vocab / 64 + 1, sizeof *s->emitted_ids);
    return (p->predictions != NULL && p->probes != NULL && s->emitted_ids != NULL) ||
           err_set(err, ERR_WORK, "out of memory for the predictions of layers");
}

static bool
set_knobs(struct session *s, const struct session_options *o, struct err *err)
{
    const uint32_t policy = s->sequences[0].current.policy, n_policies = s->info.n_policies;
    const struct policy *first = s->sequences[0].policies;
    for (size_t i = 0; i < o->n_set; i++) {
        uint32_t knob;
        double value;
        if (!session_read_knob(s, policy, o->set[i].name, o->set[i].text, &knob, &value, err))
            return false;
        for (uint32_t l = 0; l < s->open_sequences; l++)
            s->sequences[l].current.value[policy][knob] = value;
    }
    for (uint32_t l = 0; l < s->open_sequences; l++)
        seq_take_settings(&s->sequences[l]);
    for (uint32_t p = 0; p < n_policies; p++)
        memcpy(s->info.start_values + (size_t)p * POLICY_KNOBS, first[p].value, sizeof first[p].value);
    for (uint32_t l = 0; l < s->open_sequences && o->memory != NULL; l++)
        for (uint32_t p = 0; p < o->memory->n; p++)
            if (o->memory->learned[p] != NULL &&
                !first[p].ops->load(&s->sequences[l].policies[p], o->memory->learned[p]))
                return err_set(err, ERR_WORK, "out of memory for what %s has learned", first[p].ops->name);
    s->memory = o->memory;
    return true;
}

static bool
read_prompts(struct session *s, const struct prompt_text *texts, size_t n, struct err *err)
{
    s->run.prompts = calloc(n, sizeof *s->run.prompts);
    if (s->run.prompts == NULL)
        return err_set(err, ERR_WORK, "out of memory for %zu prompts", n);
    for (size_t i = 0; i < n; i++) {
        struct err why;
        if (!prompt_read(&s->run.prompts[i], &s->format, texts[i].text, texts[i].len, NULL, &why))
            return n == 1 ? err_set(err, why.kind, "%s", why.text)
                          : err_set(err, why.kind, "prompt %zu: %s", i + 1, why.text);
        s->run.n_prompts++;
    }
    return true;
}

static bool
take_prompts(struct session *s, const struct session_options *o, struct err *err)
{
    if (!prompt_format_open(&s->format, s->engine->model->tokenizer, &o->chat, s->info.ctx, err))
        return false;
    const struct prompt_text one = {o->prompt, o->prompt_len}, *texts = o->n_prompts > 0 ? o->prompts : &one;
    if (!read_prompts(s, texts, o->n_prompts > 0 ? o->n_prompts : 1, err))
        return false;
    s->info.prompt_len = texts->len;
    s->info.prompt = strndup(texts->text, texts->len);
    s->run.cause = "start";
    s->run.wanted = o->tokens > 0 ? o->tokens : UINT32_MAX;
    return s->info.prompt != NULL || err_set(err, ERR_WORK, "out of memory for the prompt");
}

/* Counts the sequences at a time, and in all. */
static bool
count_sequences(struct session *s, const struct session_options *o, struct err *err)
{
    if (o->batch > BATCH_MOST)
        return err_set(err, ERR_USAGE, "%u sequences at a time are too many: %d are possible", (unsigned)o->batch,
                       BATCH_MOST);
    s->batch = o->batch > 0;
    s->n_sequences = s->batch ? o->batch : 1;
    s->run.total = s->n_sequences;
    if (o->n_prompts > 1) {
        s->run.total = s->batch ? (uint32_t)o->n_prompts : 1;
        s->n_sequences = s->n_sequences < s->run.total ? s->n_sequences : s->run.total;
    }
    s->open_sequences = !s->batch && (o->stay || o->versus != NULL) ? SETTINGS_MOST : s->n_sequences;
    s->n_settings = 1;
    s->info.sequences = s->n_sequences;
    s->info.prompts = s->run.total;
    return true;
}

/* The knobs are those that the policies opened with. */
static bool
open_settings(struct session *s, const struct session_options *o, struct err *err)
{
    struct settings settings = {.head = o->head,
                                .probe = o->probe,
                                .probe_percent = o->probe_percent,
                                .sampling = o->sampling,
                                .seed = o->seed};
    if (!session_find_policy(s, s->info.policy, &settings.policy, err))
        return false;
    for (uint32_t p = 0; p < s->info.n_policies; p++)
        memcpy(settings.value[p], s->sequences[0].policies[p].value, sizeof settings.value[p]);
    for (uint32_t i = 0; i < s->open_sequences; i++)
        s->sequences[i].current = settings;
    return true;
}

/* Stores the settings requested at the beginning. Different settings are a change at the beginning of the run. */
static bool
request_settings(struct session *s, const struct session_options *o, struct err *err)
{
    struct settings *requested = s->mailbox.requested;
    for (uint32_t i = 0; i < SETTINGS_MOST; i++)
        requested[i] = s->sequences[0].current;
    if (o->versus == NULL)
        return true;
    if ((s->changes = calloc(1, sizeof *s->changes)) == NULL)
        return err_set(err, ERR_WORK, "out of memory for a second setting");
    s->changes->kind = CONTROL_VERSUS;
    if (!session_read_versus(s, o->versus, &requested[0], s->changes, err))
        return false;
    s->n_settings = s->mailbox.n_settings = s->changes->n_settings;
    if (session_alternates(s)) {
        requested[1] = s->changes->settings[1];
        s->n_sequences = s->n_settings;
    } else {
        mail_free(s->changes);
        s->changes = NULL;
    }
    return true;
}

bool
session_open_parts(struct session *s, const struct session_options *o, struct err *err)
{
    const struct model *m = s->engine->model;
    s->model = engine_model_info(s->engine);
    describe(s, o);
    s->info.ctx = o->ctx > 0 ? o->ctx : m->ctx_train;
    if (!(o->sampling.temperature >= 0) || !(o->sampling.top_p > 0) || o->sampling.top_p > 1)
        return err_set(err, ERR_USAGE, "sampling: the temperature must be 0 or more, top-p above 0 and at most 1");
    return describe_asked(&s->info.asked, s->engine, o, err) && count_sequences(s, o, err) &&
           open_sequences(s, o->policies, err) && open_settings(s, o, err) && set_knobs(s, o, err) &&
           request_settings(s, o, err) && session_check_head(s, o->head, err) && take_prompts(s, o, err) &&
           allocate(s, err) && event_log_open(&s->log, 0, err) && session_open_contexts(s, err);
}
