/* tinymodel OUT.gguf [options]: writes a tiny random model; the options are the fields of struct tinymodel. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "tests/golden/tinymodel.h"

static const char usage[] =
    "usage: tinymodel OUT.gguf [--seed N] [--layers N] [--first-layers N] [--width N] [--heads N] [--kv-heads N] "
    "[--head-dim N]\n"
    "           [--ffn N] [--vocab N] [--ctx N] [--tied] [--type f32|f16|bf16|q8_0|mixed]\n"
    "           [--embedding T] [--attention T] [--mlp T] [--head T] [--rope-dims N] [--rope-base X]\n"
    "           [--rope-linear X] [--rope-factors] [--calm-after N] [--calm X] [--sharpness X] [--nasty]\n"
    "           [--no-space-prefix] [--gguf-version N] [--arch NAME] [--chat-template TEXT]\n";

enum option_id {
    SEED = 256,
    LAYERS,
    FIRST_LAYERS,
    WIDTH,
    HEADS,
    KV_HEADS,
    HEAD_DIM,
    FFN,
    VOCAB,
    CTX,
    TYPE,
    EMBEDDING,
    ATTENTION,
    MLP,
    HEAD,
    ROPE_DIMS,
    ROPE_BASE,
    ROPE_LINEAR,
    CALM_AFTER,
    CALM,
    SHARPNESS,
    VERSION,
    ARCH,
    CHAT_TEMPLATE,
    TIED,
    ROPE_FACTORS,
    NASTY,
    NO_SPACE_PREFIX,
    HELP
};

static const struct option options[] = {
    {"seed", required_argument, NULL, SEED},
    {"layers", required_argument, NULL, LAYERS},
    {"first-layers", required_argument, NULL, FIRST_LAYERS},
    {"width", required_argument, NULL, WIDTH},
    {"heads", required_argument, NULL, HEADS},
    {"kv-heads", required_argument, NULL, KV_HEADS},
    {"head-dim", required_argument, NULL, HEAD_DIM},
    {"ffn", required_argument, NULL, FFN},
    {"vocab", required_argument, NULL, VOCAB},
    {"ctx", required_argument, NULL, CTX},
    {"type", required_argument, NULL, TYPE},
    {"embedding", required_argument, NULL, EMBEDDING},
    {"attention", required_argument, NULL, ATTENTION},
    {"mlp", required_argument, NULL, MLP},
    {"head", required_argument, NULL, HEAD},
    {"rope-dims", required_argument, NULL, ROPE_DIMS},
    {"rope-base", required_argument, NULL, ROPE_BASE},
    {"rope-linear", required_argument, NULL, ROPE_LINEAR},
    {"calm-after", required_argument, NULL, CALM_AFTER},
    {"calm", required_argument, NULL, CALM},
    {"sharpness", required_argument, NULL, SHARPNESS},
    {"gguf-version", required_argument, NULL, VERSION},
    {"arch", required_argument, NULL, ARCH},
    {"chat-template", required_argument, NULL, CHAT_TEMPLATE},
    {"tied", no_argument, NULL, TIED},
    {"rope-factors", no_argument, NULL, ROPE_FACTORS},
    {"nasty", no_argument, NULL, NASTY},
    {"no-space-prefix", no_argument, NULL, NO_SPACE_PREFIX},
    {"help", no_argument, NULL, HELP},
    {0},
};

static bool
parse_whole(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && text[0] != '-';
}

static bool
parse_u32(const char *text, uint32_t *out)
{
    uint64_t v;
    bool ok = parse_whole(text, &v) && v <= UINT32_MAX;
    *out = ok ? (uint32_t)v : 0;
    return ok;
}

static bool
parse_real(const char *text, float *out)
{
    char *end;
    *out = strtof(text, &end);
    return end != text && *end == '\0';
}

static bool
parse_type(const char *text, enum weight_type *out)
{
    static const char *const names[WEIGHT_Q8_0 + 1] = {"f32", "f16", "bf16", "q8_0"};
    for (int t = 0; t <= WEIGHT_Q8_0; t++)
        if (strcmp(text, names[t]) == 0) {
            *out = (enum weight_type)t;
            return true;
        }
    return false;
}

static bool
parse_types(const char *text, struct tinymodel *m)
{
    m->mixed = strcmp(text, "mixed") == 0;
    if (m->mixed)
        return true;
    bool ok = parse_type(text, &m->embedding);
    m->attention = m->mlp = m->head = m->embedding;
    return ok;
}

static bool
apply(int id, const char *text, struct tinymodel *m)
{
    switch (id) {
    case SEED: return parse_whole(text, &m->seed);
    case LAYERS: return parse_u32(text, &m->n_layers);
    case FIRST_LAYERS: return parse_u32(text, &m->first_layers);
    case WIDTH: return parse_u32(text, &m->width);
    case HEADS: return parse_u32(text, &m->heads);
    case KV_HEADS: return parse_u32(text, &m->kv_heads);
    case HEAD_DIM: return parse_u32(text, &m->head_dim);
    case FFN: return parse_u32(text, &m->ffn);
    case VOCAB: return parse_u32(text, &m->vocab);
    case CTX: return parse_u32(text, &m->ctx);
    case TYPE: return parse_types(text, m);
    case EMBEDDING: return parse_type(text, &m->embedding);
    case ATTENTION: return parse_type(text, &m->attention);
    case MLP: return parse_type(text, &m->mlp);
    case HEAD: return parse_type(text, &m->head);
    case ROPE_DIMS: return parse_u32(text, &m->rope_dims);
    case ROPE_BASE: return parse_real(text, &m->rope_base);
    case ROPE_LINEAR: return parse_real(text, &m->rope_linear);
    case CALM_AFTER: return parse_u32(text, &m->calm_after);
    case CALM: return parse_real(text, &m->calm);
    case SHARPNESS: return parse_real(text, &m->sharpness);
    case VERSION: return parse_u32(text, &m->version);
    case ARCH: m->arch = text; return true;
    case CHAT_TEMPLATE: m->chat_template = text; return true;
    case TIED: return m->tied = true;
    case ROPE_FACTORS: return m->rope_factors = true;
    case NASTY: return m->nasty = true;
    case NO_SPACE_PREFIX: return m->no_space_prefix = true;
    default: return false;
    }
}

int
main(int argc, char **argv)
{
    struct tinymodel m = {0};
    int id, index = 0;
    while ((id = getopt_long(argc, argv, "", options, &index)) != -1) {
        if (id == HELP)
            return fputs(usage, stdout) < 0;
        if (!apply(id, optarg, &m)) {
            if (id != '?')
                fprintf(stderr, "tinymodel: '%s' is no value for --%s\n", optarg, options[index].name);
            return 2;
        }
    }
    if (optind + 1 != argc) {
        fputs(usage, stderr);
        return 2;
    }
    struct err err = {0};
    if (tinymodel_write(argv[optind], &m, &err))
        return 0;
    fprintf(stderr, "tinymodel: %s\n", err.text);
    return err.kind == ERR_USAGE ? 2 : 1;
}
