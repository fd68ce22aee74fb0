#include "engine/session/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/session/session_internal.h"

const char *const probe_mode_names[PROBE_MODES] = {"off", "policy", "all"};
const char *const head_mode_names[HEAD_MODES] = {"policy", "lens", "trained"};

/* ---- opening ---- */

bool
session_encode(const struct session *s, const char *prompt, size_t len, token_t **ids, size_t *n, struct err *err)
{
    const struct tokenize_options options = {.bos = true, .special = true};
    const struct tokenizer *t = s->engine->model->tokenizer;
    if (s->chat.format == CHAT_NONE)
        return tokenizer_encode(t, prompt, len, options, ids, n, err);
    char *turn = NULL;
    size_t n_turn;
    *ids = NULL;
    const bool ok = chat_prompt(&s->chat, s->system, prompt, len, &turn, &n_turn, err) &&
                    tokenizer_encode(t, turn, n_turn, options, ids, n, err);
    free(turn);
    return ok;
}

static bool
encode_prompt(struct session *s, const char *prompt, size_t len, token_t **ids, size_t *n, struct err *err)
{
    if (!session_encode(s, prompt, len, ids, n, err))
        return false;
    if (*n == 0 || *n >= s->info.ctx) {
        size_t tokens = *n;
        free(*ids);
        *ids = NULL;
        if (tokens == 0)
            return err_set(err, ERR_USAGE,
                           "the prompt is empty and this model has no token to begin with; give some text");
        return err_set(err, ERR_USAGE, "the prompt has %zu tokens, the context holds %u; shorten it or raise --ctx",
                       tokens, (unsigned)s->info.ctx);
    }
    return true;
}

static int
find_policy(const struct session *s, const char *name)
{
    for (uint32_t i = 0; i < s->info.n_policies; i++)
        if (strcmp(s->info.policies[i].name, name) == 0)
            return (int)i;
    return -1;
}

static bool
unknown_policy(const struct session *s, const char *name, struct err *err)
{
    char list[256] = "";
    size_t n = 0;
    for (uint32_t i = 0; i < s->info.n_policies && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i > 0 ? ", " : "", s->info.policies[i].name);
    return err_set(err, ERR_USAGE, "there is no policy '%.32s'; there are %s", name, list);
}

/* Finds the knob and checks the value. */
static bool
check_knob(const struct policy_info *policy, const char *name, const char *text, int *index, double *value,
           struct err *err)
{
    *index = policy_knob_index(policy, name);
    if (*index >= 0)
        return knob_parse(&policy->knobs[*index], text, value, err);
    char list[256] = "";
    size_t n = 0;
    for (uint32_t i = 0; i < policy->n_knobs && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i > 0 ? ", " : "", policy->knobs[i].name);
    return err_set(err, ERR_USAGE, "policy %s has no knob '%.16s'; it has %s", policy->name, name,
                   policy->n_knobs > 0 ? list : "none");
}

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
        if (!policy_open(p, registry[i], &s->model, &s->sampling, err))
            return false;
        s->info.policies[i] = p->info;
    }
    return true;
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
    snprintf(info->policy, sizeof info->policy, "%s", o->policy);
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(info->started, sizeof info->started, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

static bool
allocate(struct session *s, struct err *err)
{
    size_t layers = s->model.layers, ctx = s->info.ctx;
    size_t guesses = s->n_probes = (layers + 1) * VERIFY_NODES;
    s->tokens = calloc(ctx + 2, sizeof *s->tokens);
    s->seen = calloc(s->model.vocab / 64 + 1, sizeof *s->seen);
    s->guesses = calloc(guesses, sizeof *s->guesses);
    s->probes = calloc(guesses, sizeof *s->probes);
    s->state.temperature = calloc(layers + 1, sizeof *s->state.temperature);
    if (s->tokens == NULL || s->seen == NULL || s->guesses == NULL || s->probes == NULL || s->state.temperature == NULL)
        return err_set(err, ERR_WORK, "out of memory for a context of %zu tokens; lower --ctx", ctx);
    return true;
}

static bool
apply_settings(struct session *s, const struct session_options *o, struct err *err)
{
    for (size_t i = 0; i < o->n_set; i++) {
        int index;
        double value;
        if (!check_knob(&s->info.policies[s->policy], o->set[i].name, o->set[i].text, &index, &value, err))
            return false;
        s->policies[s->policy].value[index] = value;
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
check_head(const struct session *s, enum head_mode mode, struct err *err)
{
    return mode != HEADS_TRAINED || s->engine->heads != HEAD_LENS ||
           err_set(err, ERR_USAGE,
                   "there are no trained heads for %.60s; make some with `specscope train heads` and give them with "
                   "--heads FILE",
                   s->engine->model->name);
}

static bool
open_parts(struct session *s, const struct session_options *o, struct err *err)
{
    const struct model *m = s->engine->model;
    s->model = (struct model_info){m->desc.n_layers, m->desc.width, m->desc.vocab, m->rho};
    describe(s, o);
    s->info.ctx = o->ctx > 0 ? o->ctx : m->ctx_train;
    if (!(o->sampling.temperature >= 0) || !(o->sampling.top_p > 0) || o->sampling.top_p > 1)
        return err_set(err, ERR_USAGE, "sampling: the temperature must be 0 or more, top-p above 0 and at most 1");
    if (!open_policies(s, o->policies, err))
        return false;
    int policy = find_policy(s, o->policy);
    if (policy < 0)
        return unknown_policy(s, o->policy, err);
    s->policy = s->asked_policy = (uint32_t)policy;
    if (!apply_settings(s, o, err) || !check_head(s, o->head, err))
        return false;
    if (o->chat)
        chat_of_tokenizer(&s->chat, m->tokenizer); /* an unknown one: prompts stay as they are */
    if (o->system != NULL && (s->system = strdup(o->system)) == NULL)
        return err_set(err, ERR_WORK, "out of memory for the system text");
    token_t *ids;
    size_t n_ids;
    if (!encode_prompt(s, o->prompt, o->prompt_len, &ids, &n_ids, err))
        return false;
    free(ids);
    s->info.prompt = malloc(o->prompt_len + 1);
    s->prompt = malloc(o->prompt_len + 1);
    if (s->info.prompt == NULL || s->prompt == NULL)
        return err_set(err, ERR_WORK, "out of memory for the prompt");
    memcpy(s->info.prompt, o->prompt, o->prompt_len);
    memcpy(s->prompt, o->prompt, o->prompt_len);
    s->info.prompt[o->prompt_len] = s->prompt[o->prompt_len] = '\0';
    s->info.prompt_len = s->prompt_len = o->prompt_len;
    s->wanted = o->tokens > 0 ? o->tokens : UINT32_MAX;
    s->run_cause = "start";
    if (!allocate(s, err) || !event_log_open(&s->log, 0, err))
        return false;
    const struct context_options limits = {.ctx = s->info.ctx, .cancel = &s->cancel, .heads = s->engine->heads};
    if (!context_open(&s->ctx, s->engine->ops, s->engine->weights, &m->desc, &limits, err))
        return false;
    s->seq = context_sequence(s->ctx);
    return s->seq != SEQ_NONE ||
           err_set(err, ERR_WORK, "the context gave no sequence: %s", context_error(s->ctx)->text);
}

bool
session_open(struct session **out, struct engine *engine, const struct session_options *o, struct err *err)
{
    *out = NULL;
    struct session *s = calloc(1, sizeof *s);
    if (s == NULL)
        return err_set(err, ERR_WORK, "out of memory");
    s->engine = engine;
    s->sampling = o->sampling;
    s->ignore_eos = o->ignore_eos;
    s->stay = o->stay;
    s->probe = o->probe;
    s->head_mode = o->head;
    s->paused = o->paused;
    s->pace = o->pace;
    s->state.session = s;
    pthread_mutex_init(&s->lock, NULL);
    condition_open(&s->wake);
    if (!open_parts(s, o, err)) {
        session_close(s);
        return false;
    }
    *out = s;
    return true;
}

const struct run_info *
session_info(const struct session *s)
{
    return &s->info;
}

struct event_log *
session_log(struct session *s)
{
    return s->log;
}

bool
session_failed(const struct session *s, struct err *err)
{
    if (!atomic_load(&s->failed))
        return false;
    *err = s->failure;
    return true;
}

/* ---- the thread ---- */

static void *
session_thread(void *user)
{
    struct session *s = user;
    while (!s->quit) {
        session_generate(s);
        if (!s->stay && !s->new_run)
            break;
        while (!s->quit && !s->new_run && session_idle(s) == MOOD_GO)
            ;
    }
    event_log_finish(s->log);
    return NULL;
}

bool
session_start(struct session *s, struct err *err)
{
    if (pthread_create(&s->thread, NULL, session_thread, s) != 0)
        return err_set(err, ERR_WORK, "no thread for the engine; too many processes?");
    s->started = true;
    return true;
}

static void
free_mail(struct mail *m)
{
    while (m != NULL) {
        struct mail *next = m->next;
        free(m->text);
        free(m);
        m = next;
    }
}

void
session_close(struct session *s)
{
    if (s == NULL)
        return;
    if (s->started) {
        session_post(s, &(struct control){.kind = CONTROL_QUIT}, NULL);
        pthread_join(s->thread, NULL);
    }
    context_close(s->ctx);
    event_log_close(s->log);
    for (uint32_t i = 0; i < s->info.n_policies; i++) {
        if (s->memory != NULL)
            policy_memory_keep(s->memory, &s->policies[i]);
        policy_close(&s->policies[i]);
    }
    free(s->policies);
    run_info_free(&s->info);
    free_mail(s->first);
    free_mail(s->pending);
    free(s->prompt);
    free(s->system);
    free(s->tokens);
    free(s->seen);
    free(s->guesses);
    free(s->probes);
    free(s->state.temperature);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->wake);
    free(s);
}

/* ---- posting ---- */

static bool
interrupts(enum control_kind kind)
{
    return kind == CONTROL_PROMPT || kind == CONTROL_RESTART || kind == CONTROL_QUIT;
}

/* Called with the lock held. */
static bool
check_control(struct session *s, const struct control *c, struct err *err)
{
    int index;
    double value;
    switch (c->kind) {
    case CONTROL_KNOB: return check_knob(&s->info.policies[s->asked_policy], c->name, c->text, &index, &value, err);
    case CONTROL_POLICY:
        index = find_policy(s, c->text);
        if (index < 0)
            return unknown_policy(s, c->text, err);
        s->asked_policy = (uint32_t)index;
        return true;
    case CONTROL_PROMPT: {
        token_t *ids;
        size_t n;
        bool ok = encode_prompt(s, c->text, strlen(c->text), &ids, &n, err);
        if (ok)
            free(ids);
        return ok;
    }
    case CONTROL_PROBE:
        for (int i = 0; i < PROBE_MODES; i++)
            if (strcmp(c->text, probe_mode_names[i]) == 0)
                return true;
        return err_set(err, ERR_USAGE, "probe '%.16s' is not known; there are off, policy and all", c->text);
    case CONTROL_HEAD:
        for (int i = 0; i < HEAD_MODES; i++)
            if (strcmp(c->text, head_mode_names[i]) == 0)
                return check_head(s, (enum head_mode)i, err);
        return err_set(err, ERR_USAGE, "head '%.16s' is not known; there are policy, lens and trained", c->text);
    case CONTROL_BREAK:
        if (c->n > 0 && s->interrupts == 0 && c->n < atomic_load(&s->round_number)) /* a new run may be asked for */
            return err_set(err, ERR_USAGE, "round %u is past, this is round %u; restart to stop there", (unsigned)c->n,
                           (unsigned)atomic_load(&s->round_number));
        return true;
    case CONTROL_PACE:
        return pace_parse(c->text, &value) ||
               err_set(err, ERR_USAGE, "speed %.16s: tokens a second are wanted, 0 for as fast as it goes", c->text);
    case CONTROL_EXTEND: return c->n > 0 || err_set(err, ERR_USAGE, "extend by how many tokens? give a number above 0");
    default: return true;
    }
}

bool
session_post(struct session *s, const struct control *c, struct err *err)
{
    struct mail *m = calloc(1, sizeof *m);
    if (m == NULL)
        return err_set(err, ERR_WORK, "out of memory");
    m->control = *c;
    if (c->text != NULL && (m->text = strdup(c->text)) == NULL) {
        free(m);
        return err_set(err, ERR_WORK, "out of memory");
    }
    m->control.text = m->text;
    m->asked_round = atomic_load(&s->round_number);
    pthread_mutex_lock(&s->lock);
    bool ok = check_control(s, c, err);
    if (ok) {
        if (s->last != NULL)
            s->last->next = m;
        else
            s->first = m;
        s->last = m;
        if (interrupts(c->kind)) {
            s->interrupts++;
            atomic_store(&s->cancel, true);
        }
        pthread_cond_signal(&s->wake);
    }
    pthread_mutex_unlock(&s->lock);
    if (!ok)
        free_mail(m);
    return ok;
}
