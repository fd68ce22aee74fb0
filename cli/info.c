/* specscope info: describes a model file or folder, and compares auxiliary models with it. Text from files is made
 * printable first. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "base/utf8.h"
#include "cli/options/commands.h"
#include "cli/options/files.h"
#include "cli/options/option_table.h"
#include "engine/events/policy.h"
#include "engine/jinja/chat.h"
#include "engine/model/files/gguf.h"
#include "engine/model/files/hf_folder.h"
#include "engine/model/memory.h"
#include "engine/model/model.h"
#include "engine/model/model_open.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "engine/model/trained/accept_head.h"
#include "engine/session/engine.h"
#include "kernels/tensor.h"

/* Prints how the form differs from Llama's, ", squared ReLU, LayerNorm, …", at the end of a line. */
static void
info_print_form(const struct model_desc *d)
{
    static const char *const activations[] = {"",        ", GELU (tanh)",   ", GELU", ", squared ReLU",
                                              ", xIELU", ", clamped SwiGLU"};
    const struct model_form *f = &d->form;
    uint32_t windows = 0, rotated = 0, recurrent = 0;
    for (uint32_t l = 0; l < d->n_layers; l++) {
        windows += d->window > 0 && !d->layers[l].form.sees_all;
        rotated += d->layers[l].form.rope != LAYER_ROPE_NONE;
        recurrent += d->layers[l].form.kind == LAYER_RECURRENT;
    }
    printf("%s%s%s%s%s%s", activations[f->activation],
           d->layers[0].experts != NULL || tensor_present(&d->layers[0].gate) ? "" : " without a gate",
           f->layer_norm ? ", LayerNorm" : "", f->parallel ? ", attention and MLP side by side" : "",
           tensor_present(&d->layers[0].attn_post) ? ", norms after sublayers" : "",
           f->whole_norms ? " (those of Q and K over whole rows)" : "");
    if (recurrent > 0)
        printf(", %s in %" PRIu32 " layer%s", layer_recurrences(&f->recurrent), recurrent, plural(recurrent));
    if (windows > 0)
        printf(", attends to the last %" PRIu32 " position%s", d->window, plural(d->window));
    if (windows > 0 && windows < d->n_layers)
        printf(" in %" PRIu32 " layer%s", windows, plural(windows));
    if (f->alibi.most > 0)
        printf(", ALiBi");
    else if (tensor_present(&d->positions))
        printf(", learned positions");
    else if (rotated < d->n_layers)
        printf(", no RoPE in %" PRIu32 " layer%s", d->n_layers - rotated, plural(d->n_layers - rotated));
    if (f->value_norms)
        printf(", normalised values");
    if (f->per_layer > 0)
        printf(", inputs of %" PRIu32 " for each layer", f->per_layer);
    if (f->clip > 0)
        printf(", queries, keys and values clipped at %g", (double)f->clip);
    if (f->logit_cap > 0)
        printf(", logits capped at %g", (double)f->logit_cap);
}

/* Prints the rotation of layers that have their own, if there are any. */
static void
info_print_local_rope(const struct model_desc *d)
{
    uint32_t local = 0;
    for (uint32_t l = 0; l < d->n_layers; l++)
        local += d->layers[l].form.rope == LAYER_ROPE_LOCAL;
    if (local > 0)
        printf("              in %" PRIu32 " layer%s %" PRIu32 " dimensions, base %g, positions x 1\n", local,
               plural(local), d->form.local_dims > 0 ? d->form.local_dims : d->rope_dims, (double)d->form.local_base);
}

/* Prints lines about the experts, if there are any. */
static void
info_print_experts(const struct model *m)
{
    const struct model_desc *d = &m->desc;
    static const char *const ways[ROUTINGS] = {"softmax", "sigmoid", "SparseMixer"};
    const struct experts_form *f = &d->form.experts;
    uint32_t layers = 0;
    for (uint32_t l = 0; l < d->n_layers; l++)
        layers += d->layers[l].experts != NULL;
    if (layers == 0)
        return;
    printf("experts       %" PRIu32 " of %" PRIu32 " units in %" PRIu32 " layer%s, a row goes to %" PRIu32, f->n,
           f->ffn, layers, plural(layers), f->used);
    if (f->groups > 1)
        printf(" from %" PRIu32 " of %" PRIu32 " groups", f->groups_used, f->groups);
    if (f->shared_ffn > 0)
        printf(" and to one of %" PRIu32 " units", f->shared_ffn);
    printf(", by %s%s\n", ways[f->routing], f->renormalised ? ", sums to 1" : "");
    printf("active        %" PRIu64 " parameters for a row\n", m->parameters - model_idle_parameters(m));
}

struct comparison {
    const struct model *target, *aux;
    uint32_t shared; /* ids */
    bool match;
    char difference[sizeof((struct err *)0)->text]; /* in one line; "" if they match */
    double parameters, bytes, layer, head;          /* of the auxiliary model, as shares of the target's */
    uint32_t accept_blocks;                         /* of the acceptance head beside a draft model, */
    uint64_t accept_bytes;                          /* in memory; 0: no acceptance head */
};

/* Finds the acceptance head in the draft model's folder, if it can be read. */
static bool
find_accept(const struct model *aux, enum aux_role role, uint32_t *n_blocks, uint64_t *bytes)
{
    char path[PATH_MAX];
    return role == AUX_DRAFT && engine_beside(aux, ".accept.safetensors", path) &&
           accept_head_measure(path, aux, n_blocks, bytes, NULL);
}

static struct comparison
compare_models(const struct model *target, const struct model *aux, enum aux_role role)
{
    struct comparison c = {.target = target, .aux = aux};
    struct err why = {.kind = ERR_NONE};
    const uint32_t n = tokenizer_size(target->tokenizer), m = tokenizer_size(aux->tokenizer);
    c.shared = n < m ? n : m;
    c.match = vocabularies_match(target->tokenizer, target->name, aux->tokenizer, aux->name, &why);
    snprintf(c.difference, sizeof c.difference, "%s", c.match ? "" : why.text);
    c.parameters = (double)aux->parameters / (double)target->parameters;
    c.bytes = (double)model_weight_bytes(aux, false, false) / (double)model_weight_bytes(target, false, false);
    c.layer = model_layer_bytes(aux, false) / model_layer_bytes(target, false);
    c.head = model_head_bytes(aux, false) / model_head_bytes(target, false);
    if (!find_accept(aux, role, &c.accept_blocks, &c.accept_bytes))
        c.accept_bytes = 0;
    return c;
}

static void
print_comparison(const struct comparison *c, enum aux_role role)
{
    char size[24];
    const struct model *h = c->aux;
    printf("%-14s%s: %" PRIu32 " layer%s of width %" PRIu32 ", %" PRIu64
           " parameters (%.3f of the model's), weights %s (%.3f)\n",
           aux_names[role], h->name, h->desc.n_layers, plural(h->desc.n_layers), h->desc.width, h->parameters,
           c->parameters, memory_text(size, model_weight_bytes(h, false, false)), c->bytes);
    printf("              a layer has %.3f of the bytes of the model's, the head %.3f\n", c->layer, c->head);
    if (c->match)
        printf("              %" PRIu32 " tokens are the same; the model has %" PRIu32 " more, the %s model %" PRIu32
               "\n",
               c->shared, tokenizer_size(c->target->tokenizer) - c->shared, aux_names[role],
               tokenizer_size(h->tokenizer) - c->shared);
    else
        printf("              %s\n", c->difference);
    if (c->accept_bytes > 0)
        printf("              beside it an acceptance head (D = %" PRIu32 "), which takes %s\n", c->accept_blocks,
               memory_text(size, c->accept_bytes));
}

static void
add_comparison(cJSON *json, const struct comparison *c, enum aux_role role)
{
    cJSON *o = cJSON_AddObjectToObject(json, aux_names[role]);
    char hash[24];
    snprintf(hash, sizeof hash, "%016" PRIx64, c->aux->hash);
    cJSON_AddStringToObject(o, "name", c->aux->name);
    cJSON_AddStringToObject(o, "hash", hash);
    cJSON_AddNumberToObject(o, "layers", c->aux->desc.n_layers);
    cJSON_AddNumberToObject(o, "parameters", (double)c->aux->parameters);
    cJSON_AddNumberToObject(o, "weight_bytes", (double)model_weight_bytes(c->aux, false, false));
    cJSON_AddNumberToObject(o, "parameters_of_target", c->parameters);
    cJSON_AddNumberToObject(o, "bytes_of_target", c->bytes);
    cJSON_AddNumberToObject(o, "layer_of_target", c->layer);
    cJSON_AddNumberToObject(o, "head_of_target", c->head);
    cJSON_AddNumberToObject(o, "shared_tokens", c->shared);
    cJSON_AddBoolToObject(o, "same_vocabulary", c->match);
    if (c->accept_bytes > 0)
        cJSON_AddNumberToObject(o, "accept_head_bytes", (double)c->accept_bytes);
    if (!c->match)
        cJSON_AddStringToObject(o, "difference", c->difference);
}

/* Returns whether layers with a window are causal, and others are not. */
static bool
causal_windows(const struct model_desc *d)
{
    bool any = false;
    for (uint32_t l = 0; l < d->n_layers; l++)
        any = any || d->layers[l].form.causal;
    return any;
}

static void
add_block(cJSON *json, const struct model_desc *d)
{
    const struct drafter_desc *f = d->drafter;
    cJSON_AddNumberToObject(json, "block", f->block);
    cJSON_AddNumberToObject(json, "mask", f->mask);
    cJSON_AddBoolToObject(json, "causal", f->causal);
    cJSON_AddBoolToObject(json, "causal_windows", causal_windows(d));
    cJSON_AddBoolToObject(json, "from_anchor", f->from_anchor);
    cJSON_AddNumberToObject(json, "markov_rank", f->markov_w1.cols);
    cJSON_AddBoolToObject(json, "confidence_head", tensor_present(&f->confidence));
}

static void
print_block(const struct model *target, const struct model_desc *d)
{
    const struct drafter_desc *f = d->drafter;
    const char *causal = f->causal ? ", causal" : causal_windows(d) ? ", causal in layers with a window" : "";
    char shown[32] = "", markov[48] = "no Markov head";
    if (target->tokenizer != NULL && (uint32_t)f->mask < tokenizer_size(target->tokenizer)) {
        const struct slice s = tokenizer_bytes(target->tokenizer, f->mask, true);
        printable_line(shown, sizeof shown, s.data, s.len);
    }
    if (f->markov_w1.cols > 0)
        snprintf(markov, sizeof markov, "a Markov head of rank %" PRIu32, f->markov_w1.cols);
    printf("              blocks of %" PRIu32 " rows: %" PRIu32 " drafts, mask token %" PRId32 " %s%s; %s, %s\n",
           f->block, f->block - !f->from_anchor, f->mask, shown, causal, markov,
           tensor_present(&f->confidence) ? "a confidence head" : "no confidence head");
}

/* Describes a feature drafter that fits its target, like print_comparison() and add_comparison(). */
static void
describe_head(const struct model *target, const struct model *head, cJSON *json)
{
    const struct model_desc *d = &head->desc;
    const bool is_block = d->drafter->block > 0;
    const char *role = aux_names[is_block ? AUX_BLOCK : AUX_EAGLE];
    if (json != NULL) {
        cJSON *o = cJSON_AddObjectToObject(json, role);
        cJSON *layers = cJSON_AddArrayToObject(o, "reads_layers");
        for (uint32_t i = 0; i < head->n_features; i++)
            cJSON_AddItemToArray(layers, cJSON_CreateNumber(head->features[i]));
        cJSON_AddStringToObject(o, "name", head->name);
        cJSON_AddNumberToObject(o, "parameters", (double)head->parameters);
        cJSON_AddNumberToObject(o, "vocabulary", d->head.rows);
        if (is_block)
            add_block(o, d);
        return;
    }
    if (is_block)
        printf("%-14s%s: a block drafter of %" PRIu32 " layer%s", role, head->name, d->n_layers,
               d->n_layers == 1 ? "" : "s");
    else
        printf("%-14s%s: an EAGLE-3 head", role, head->name);
    printf(" of width %" PRIu32 ", %" PRIu64 " parameters (%.3f of the model's)\n", d->width, head->parameters,
           (double)head->parameters / (double)target->parameters);
    printf("              reads the model after layers ");
    for (uint32_t i = 0; i < head->n_features; i++)
        printf("%s%" PRIu32, i == 0 ? "" : i + 1 < head->n_features ? ", " : " and ", head->features[i]);
    printf("; drafts from %" PRIu32 " tokens of %" PRIu32 "; embedding: %s, head: %s\n", d->head.rows, d->vocab,
           d->embedding.data == target->desc.embedding.data ? "the model's" : "its own",
           d->head.data == target->desc.head.data ? "the model's" : "its own");
    if (is_block)
        print_block(target, d);
}

/* Compares an auxiliary model with its target, into `json` or, if that is NULL, to stdout. Different vocabularies are a
 * finding, not a failure. */
static bool
info_compare(const struct model *target, enum aux_role role, const char *path, cJSON *json, struct err *err)
{
    if (strncmp(path, "self:", 5) == 0 || strcmp(path, "none") == 0)
        return err_set(err, ERR_USAGE, "info --%s %.24s: a model of its own is wanted", aux_names[role], path);
    if (target->vocabulary_only)
        return err_set(err, ERR_USAGE, "info --%s: %.200s has no weights to compare_models", aux_names[role],
                       target->path);
    struct model *aux;
    if (!model_open_with(&aux, path, &(struct model_options){.target = target}, err))
        return false;
    if (aux->desc.drafter != NULL) {
        describe_head(target, aux, json);
    } else {
        const struct comparison c = compare_models(target, aux, role);
        if (json == NULL)
            print_comparison(&c, role);
        else
            add_comparison(json, &c, role);
    }
    model_close(aux);
    return true;
}

/* ---- the description ---- */

#define CTX_SHOWN   4
#define TOKEN_KINDS 6

static const char *const kind_names[TOKEN_KINDS] = {
    [TOKEN_NORMAL] = "normal",     [TOKEN_UNKNOWN] = "unknown", [TOKEN_CONTROL] = "control",
    [TOKEN_USER] = "user-defined", [TOKEN_UNUSED] = "unused",   [TOKEN_BYTE] = "byte"};

struct facts {
    const struct model *model;
    uint64_t layer_parameters, head_parameters;
    uint32_t kinds[TOKEN_KINDS];
    uint32_t ctx[CTX_SHOWN], n_ctx; /* contexts whose memory is shown */
};

static struct facts
gather(const struct model *m, uint32_t ctx)
{
    struct facts f = {.model = m};
    const struct model_desc *d = &m->desc;
    f.head_parameters = (uint64_t)d->vocab * d->width;
    if (d->n_layers > 0)
        f.layer_parameters = (m->parameters - d->width - f.head_parameters * (m->tied ? 1 : 2)) / d->n_layers;
    for (uint32_t id = 0; id < tokenizer_size(m->tokenizer); id++)
        f.kinds[tokenizer_kind(m->tokenizer, (token_t)id)]++;
    if (ctx != 0) {
        f.ctx[f.n_ctx++] = ctx;
        return f;
    }
    for (uint32_t shift = m->ctx_train > 0 ? CTX_SHOWN : 0;
         shift-- > 0;) /* an eighth, a quarter, half and all of the trained context */
        if (m->ctx_train >> shift >= 64 || shift == 0)
            f.ctx[f.n_ctx++] = m->ctx_train >> shift;
    return f;
}

static const char *
token_text(char out[48], const struct model *m, token_t id)
{
    if (id == TOKEN_NONE)
        return "none";
    const struct slice s = tokenizer_bytes(m->tokenizer, id, true);
    char shown[32];
    snprintf(out, 48, "%" PRId32 " %s", id, printable_line(shown, sizeof shown, s.data, s.len));
    return out;
}

/* Prints the templates, and marks those that cannot run. */
static void
print_chat(const struct tokenizer *t)
{
    const char *name;
    for (size_t i = 0; (name = tokenizer_chat_template_name(t, i)) != NULL; i++) {
        const struct slice template = tokenizer_chat_template(t, name);
        struct chat *chat;
        struct err why = {0};
        char shown[80];
        printf("%-13s a template of %zu bytes", i == 0 ? "chat" : "", template.len);
        if (strcmp(name, "default") != 0)
            printf(", '%s'", printable_line(shown, sizeof shown, name, strlen(name)));
        if (!chat_open(&chat, template, &why))
            printf(", which can't be run: %s", why.text);
        putchar('\n');
        chat_close(chat);
    }
    if (tokenizer_chat_template_name(t, 0) == NULL)
        printf("chat          no template\n");
}

static void
print_tokenizer(const struct facts *f)
{
    char one[48], two[48];
    const struct tokenizer *t = f->model->tokenizer;
    printf("tokenizer     %s, %" PRIu32 " tokens:", tokenizer_description(t), tokenizer_size(t));
    const char *between = " ";
    for (int kind = 0; kind < TOKEN_KINDS; kind++)
        if (f->kinds[kind] > 0) {
            printf("%s%" PRIu32 " %s", between, f->kinds[kind], kind_names[kind]);
            between = ", ";
        }
    printf("\n              BOS %s, EOS %s\n", token_text(one, f->model, tokenizer_bos(t)),
           token_text(two, f->model, tokenizer_eos(t)));
    if (tokenizer_note(t)[0] != '\0')
        printf("              %s\n", tokenizer_note(t));
    printf("stops after  ");
    between = " ";
    for (uint32_t id = 0; id < tokenizer_size(t); id++)
        if (tokenizer_is_end(t, (token_t)id)) {
            printf("%s%s", between, token_text(one, f->model, (token_t)id));
            between = ", ";
        }
    printf("%s\n", between[0] == ' ' ? " nothing" : "");
    print_chat(t);
}

static size_t
n_files(const struct model *m)
{
    return m->folder != NULL ? m->folder->n_files : m->file != NULL ? m->file->n_parts + 1u : 0;
}

/* Prints how layers differ in shape: those with a window, and those that read keys and values of others. */
static void
info_print_shapes(const struct model_desc *d)
{
    uint32_t sharing = 0, smaller = 0;
    struct layer_sizes least = {.head_dim = d->head_dim, .kv_heads = d->kv_heads, .ffn = d->ffn};
    for (uint32_t l = 0; l < d->n_layers; l++) {
        const struct layer_sizes n = layer_sizes(d, &d->layers[l].form);
        sharing += d->layers[l].form.kv_layer > 0;
        smaller += n.head_dim < d->head_dim || n.kv_heads < d->kv_heads || n.ffn < d->ffn;
        least.head_dim = n.head_dim < least.head_dim ? n.head_dim : least.head_dim;
        least.kv_heads = n.kv_heads < least.kv_heads ? n.kv_heads : least.kv_heads;
        least.ffn = n.ffn < least.ffn ? n.ffn : least.ffn;
    }
    if (smaller > 0)
        printf(" (in some layers heads of %" PRIu32 ", %" PRIu32 " KV head%s, FFN %" PRIu32 ")", least.head_dim,
               least.kv_heads, plural(least.kv_heads), least.ffn);
    if (sharing > 0)
        printf(", %" PRIu32 " layer%s read keys and values of earlier layers", sharing, plural(sharing));
}

static void
print_weights(const struct facts *f)
{
    const struct model *m = f->model;
    const struct model_desc *d = &m->desc;
    const struct layer_desc *first = &d->layers[0];
    char size[24], exact[24], all[24];
    printf("architecture  %s, %" PRIu32 " layer%s, width %" PRIu32 ", %" PRIu32 " head%s of %" PRIu32 ", %" PRIu32
           " KV head%s, FFN %" PRIu32,
           m->arch, d->n_layers, plural(d->n_layers), d->width, d->heads, plural(d->heads), d->head_dim, d->kv_heads,
           plural(d->kv_heads), d->ffn);
    printf("%s%s", tensor_present(&first->bq) ? ", biases on Q, K and V" : "",
           tensor_present(&first->q_norm) ? ", norms on the heads of Q and K" : "");
    info_print_shapes(d);
    info_print_form(d);
    if (m->folder != NULL && m->folder->part_of[0] != '\0')
        printf("; the language part of a %s", m->folder->part_of);
    printf("\nparameters    %" PRIu64 ": %" PRIu64 " a layer, %" PRIu64 " in the head%s; head / layer ρ = %.3f\n",
           m->parameters, f->layer_parameters, f->head_parameters, m->tied ? " (tied to the embedding)" : "", m->rho);
    info_print_experts(m);
    printf("types        ");
    for (int t = 0; t < WEIGHT_TYPES; t++)
        if (m->tensors_of[t] > 0)
            printf(" %s %" PRIu64 " parameters in %" PRIu32 " tensor%s;", tensor_type_name((enum weight_type)t),
                   m->parameters_of[t], m->tensors_of[t], plural(m->tensors_of[t]));
    if (m->packing != NULL)
        printf(" unpacked from %s on load%s", m->packing, m->quantized ? "," : "");
    printf("%s\n", m->quantized ? " quantised to Q8_0 on load" : "");
    if (m->ahead != NULL)
        printf("mtp           a layer for multi-token prediction, %" PRIu64 " parameters (--policy mtp)\n",
               m->ahead->parameters);
    else if (m->ahead_refused[0] != '\0')
        printf("mtp           not used: %s\n", m->ahead_refused);
    if (m->merged[0] != '\0')
        printf("adapters      %s\n", m->merged);
    if (!tensor_present(&d->positions) && !(d->form.alibi.most > 0)) {
        printf("RoPE          %s pairs, %" PRIu32 " of %" PRIu32 " dimensions, base %g, positions x %g%s\n",
               d->rope == ROPE_ADJACENT ? "adjacent" : "half-split", d->rope_dims, d->head_dim, (double)d->rope_base,
               (double)d->rope_scale, d->rope_factors != NULL ? ", a factor for each frequency" : "");
        info_print_local_rope(d);
    }
    printf("%s     epsilon %g\n", d->form.layer_norm ? "LayerNorm" : "RMS norm ", (double)d->rms_eps);
    printf("memory        weights %s (with --exact %s)\n", memory_text(size, model_weight_bytes(m, false, false)),
           memory_text(exact, model_weight_bytes(m, true, false)));
    for (uint32_t i = 0; i < f->n_ctx; i++)
        printf("              keys and values of %" PRIu32 " tokens: %s (with --exact %s); a run takes %s\n", f->ctx[i],
               memory_text(size, model_kv_bytes(m, f->ctx[i], false)),
               memory_text(exact, model_kv_bytes(m, f->ctx[i], true)),
               memory_text(all, memory_of_run(m, f->ctx[i], false)));
    const uint64_t available = memory_available();
    if (available != UINT64_MAX)
        printf("              %s are available here\n", memory_text(size, available));
    else
        printf("              the system does not report how much is available here\n");
}

static void
print_text(const struct facts *f)
{
    const struct model *m = f->model;
    char path[512], size[24];
    printf("%s\n%-14s%s, ", m->name,
           m->synthetic != NULL ? "synthetic"
           : m->folder != NULL  ? "folder"
                                : "file",
           printable_line(path, sizeof path, m->path, strlen(m->path)));
    if (n_files(m) > 1)
        printf("%zu files, ", n_files(m));
    printf("%s, hash %016" PRIx64 "\n", memory_text(size, m->file_bytes), m->hash);
    if (m->vocabulary_only)
        printf("architecture  %s; a vocabulary only, no weights\n", m->arch);
    print_tokenizer(f);
    if (m->ctx_train > 0)
        printf("context       %" PRIu32 " token%s\n", m->ctx_train, plural(m->ctx_train));
    if (!m->vocabulary_only)
        print_weights(f);
}

/* ---- JSON: what memory ran out for is missing, and print_json() then fails ---- */

static void
add_lists(cJSON *o, const struct facts *f)
{
    const struct model *m = f->model;
    cJSON *types = cJSON_AddObjectToObject(o, "types"), *kinds = cJSON_AddObjectToObject(o, "tokens");
    cJSON *kv = cJSON_AddArrayToObject(o, "kv_memory");
    cJSON *ends = cJSON_AddArrayToObject(o, "stop_tokens");
    const struct experts_form *experts = &m->desc.form.experts;
    cJSON_AddStringToObject(o, "adapters", m->merged);
    cJSON_AddStringToObject(o, "packing", m->packing != NULL ? m->packing : "none");
    cJSON_AddNumberToObject(o, "active_parameters", (double)(m->parameters - model_idle_parameters(m)));
    cJSON_AddNumberToObject(o, "experts", experts->n);
    cJSON_AddNumberToObject(o, "experts_used", experts->used);
    cJSON_AddNumberToObject(o, "recurrent_layers", model_recurrent_layers(m));
    for (uint32_t id = 0; id < tokenizer_size(m->tokenizer); id++)
        if (tokenizer_is_end(m->tokenizer, (token_t)id))
            cJSON_AddItemToArray(ends, cJSON_CreateNumber(id));
    for (int t = 0; t < WEIGHT_TYPES; t++) {
        if (m->tensors_of[t] == 0)
            continue;
        cJSON *one = cJSON_AddObjectToObject(types, tensor_type_name((enum weight_type)t));
        cJSON_AddNumberToObject(one, "tensors", m->tensors_of[t]);
        cJSON_AddNumberToObject(one, "parameters", (double)m->parameters_of[t]);
    }
    for (int kind = 0; kind < TOKEN_KINDS; kind++)
        cJSON_AddNumberToObject(kinds, kind_names[kind], f->kinds[kind]);
    for (uint32_t i = 0; i < f->n_ctx; i++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddItemToArray(kv, one);
        cJSON_AddNumberToObject(one, "ctx", f->ctx[i]);
        cJSON_AddNumberToObject(one, "bytes", (double)model_kv_bytes(m, f->ctx[i], false));
        cJSON_AddNumberToObject(one, "bytes_exact", (double)model_kv_bytes(m, f->ctx[i], true));
        cJSON_AddNumberToObject(one, "run_bytes", (double)memory_of_run(m, f->ctx[i], false));
    }
}

/* Adds whether the chat template runs, or why it does not. */
static void
add_chat(cJSON *o, const struct model *m)
{
    const struct slice template = tokenizer_chat_template(m->tokenizer, "default");
    struct chat *chat = NULL;
    struct err why = {0};
    const bool runs = template.len > 0 && chat_open(&chat, template, &why);
    chat_close(chat);
    cJSON_AddStringToObject(o, "chat", runs ? "runs" : template.len > 0 ? why.text : "none");
}

static void
add_facts(cJSON *o, const struct facts *f)
{
    const struct model *m = f->model;
    const struct model_desc *d = &m->desc;
    char hash[24], path[512];
    snprintf(hash, sizeof hash, "%016" PRIx64, m->hash);
    printable_line(path, sizeof path, m->path, strlen(m->path));
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"file_bytes", (double)m->file_bytes},
        {"layers", d->n_layers},
        {"width", d->width},
        {"heads", d->heads},
        {"kv_heads", d->kv_heads},
        {"head_dim", d->head_dim},
        {"ffn", d->ffn},
        {"vocab", d->vocab},
        {"window", d->window},
        {"files", (double)n_files(m)},
        {"weight_bytes", (double)model_weight_bytes(m, false, false)},
        {"weight_bytes_exact", (double)model_weight_bytes(m, true, false)},
        {"chat_template_bytes", (double)tokenizer_chat_template(m->tokenizer, "default").len},
        {"ctx_train", m->ctx_train},
        {"parameters", (double)m->parameters},
        {"layer_parameters", (double)f->layer_parameters},
        {"head_parameters", (double)f->head_parameters},
        {"rho", m->rho},
        {"rope_dims", d->rope_dims},
        {"rope_base", (double)d->rope_base},
        {"rope_scale", (double)d->rope_scale},
        {"rope_local_base", (double)d->form.local_base},
        {"rms_eps", (double)d->rms_eps},
        {"bos", tokenizer_bos(m->tokenizer)},
        {"eos", tokenizer_eos(m->tokenizer)},
    };
    add_chat(o, m);
    cJSON_AddStringToObject(o, "name", m->name);
    cJSON_AddStringToObject(o, "path", path);
    cJSON_AddStringToObject(o, "architecture", m->arch);
    cJSON_AddStringToObject(o, "hash", hash);
    cJSON_AddStringToObject(o, "rope", d->rope == ROPE_ADJACENT ? "adjacent" : "halves");
    cJSON_AddBoolToObject(o, "rope_factors", d->rope_factors != NULL);
    cJSON_AddBoolToObject(o, "tied", m->tied);
    cJSON_AddBoolToObject(o, "quantized", m->quantized);
    cJSON_AddBoolToObject(o, "vocabulary_only", m->vocabulary_only);
    cJSON_AddBoolToObject(o, "qkv_bias", d->n_layers > 0 && tensor_present(&d->layers[0].bq));
    cJSON_AddBoolToObject(o, "qk_norm", d->n_layers > 0 && tensor_present(&d->layers[0].q_norm));
    cJSON_AddStringToObject(o, "tokenizer", tokenizer_description(m->tokenizer));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        cJSON_AddNumberToObject(o, numbers[i].key, numbers[i].value);
    add_lists(o, f);
}

static bool
compare_aux(const struct facts *f, const struct options *o, cJSON *json, struct err *err)
{
    for (enum aux_role role = 0; role < AUX_MODELS; role++)
        if (o->aux[role] != NULL && !info_compare(f->model, role, o->aux[role], json, err))
            return false;
    return true;
}

static bool
print_json(const struct facts *f, const struct options *options, struct err *err)
{
    cJSON *o = cJSON_CreateObject();
    const bool ok = compare_aux(f, options, o, err);
    if (ok)
        add_facts(o, f);
    char *text = ok && !json_memory_ran_out() ? cJSON_Print(o) : NULL;
    if (text != NULL)
        puts(text);
    else if (ok)
        err_set(err, ERR_WORK, "out of memory writing JSON");
    cJSON_free(text);
    cJSON_Delete(o);
    return text != NULL;
}

bool
info_main(struct options *o, int *status, struct err *err)
{
    (void)status;
    const struct model_options how = {.vocabulary = true,
                                      .quantize = o->quantize,
                                      .glance = !o->quantize && o->lora.n == 0,
                                      .lora = o->lora.at,
                                      .n_lora = o->lora.n};
    struct model *m;
    bool ok = o->synth != NULL ? model_open_synthetic(&m, o->synth, &how, err)
                               : model_open_with(&m, o->model != NULL ? o->model : bundled_model_path(), &how, err);
    if (ok) {
        const struct facts f = gather(m, o->ctx);
        if (o->as_json)
            ok = print_json(&f, o, err);
        else
            print_text(&f);
        ok = ok && (o->as_json || compare_aux(&f, o, NULL, err));
        ok = ok && stream_close(stdout, "stdout", err);
        model_close(m);
    }
    return ok;
}
