/* Draws the model of a case, its shape and its backend. */
#include <glob.h>
#include <string.h>
#include <unistd.h>

#include "cli/options/commands.h"
#include "kernels/cpu/isa.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/heads_rig.h"
#include "tests/soak/soak.h"

#define FROM(random, list) (list)[soak_below(random, (uint32_t)(sizeof(list) / sizeof *(list)))]

static const char *
draw_isa(uint64_t *random)
{
    const char *usable[16];
    uint32_t n = 0;
    for (size_t i = 0; cpu_isas[i] != NULL && n < 16; i++)
        if (cpu_isas[i]->usable())
            usable[n++] = cpu_isas[i]->name;
    return usable[soak_chance(random, 10) ? n - 1
                                          : soak_below(random, n > 1 ? n - 1 : 1)]; /* the portable reference is slow */
}

/* ---- tiny ones ---- */

/* The sums of products depend on blocks, heads and pairs, so all of these are random. */
static struct tinymodel
draw_shape(uint64_t *random)
{
    static const uint32_t widths[] = {32, 64, 96, 128}, head_dims[] = {6, 8, 16, 24, 32};
    static const enum weight_type types[] = {WEIGHT_F32, WEIGHT_F16, WEIGHT_BF16, WEIGHT_Q8_0};
    struct tinymodel m = {.seed = splitmix64(random), .n_layers = 3 + soak_below(random, 6)};
    m.width = FROM(random, widths);
    m.kv_heads = 1 + soak_below(random, 3);
    m.heads = m.kv_heads * (1 + soak_below(random, 3));
    m.head_dim = FROM(random, head_dims);
    m.ffn = 32 * (1 + soak_below(random, 6));
    m.vocab = TINYMODEL_MIN_VOCAB + soak_below(random, 300);
    m.padding = soak_chance(random, 20) ? soak_below(random, 40) : 0;
    m.tied = soak_chance(random, 30);
    m.rope_factors = soak_chance(random, 20);
    m.rope_linear = soak_chance(random, 20) ? 2 : 1;
    m.calm_after = 1 + soak_below(random, m.n_layers - 1);
    m.calm = (float)soak_below(random, 40) / 100;
    m.sharpness = (float)(2 + soak_below(random, 10));
    m.nasty = soak_chance(random, 30);
    m.no_space_prefix = soak_chance(random, 20);
    m.mixed = soak_chance(random, 50);
    m.embedding = FROM(random, types);
    m.attention = m.heads * m.head_dim % 32 == 0 ? FROM(random, types) : WEIGHT_F16;
    m.mlp = FROM(random, types);
    m.head = FROM(random, types);
    return m;
}

/* Draws smaller shapes for an emulated GPU, which is slow. */
static struct tinymodel
draw_small_shape(uint64_t *random)
{
    return (struct tinymodel){.seed = splitmix64(random),
                              .n_layers = 3,
                              .width = 32,
                              .heads = 2,
                              .kv_heads = 1,
                              .ffn = 64,
                              .vocab = TINYMODEL_MIN_VOCAB,
                              .calm_after = 1,
                              .calm = 0.1f,
                              .mixed = soak_chance(random, 50),
                              .sharpness = 8};
}

static bool
write_tiny(struct soak_model *m, const struct tinymodel *shape, uint64_t *random, struct err *err)
{
    m->made = true;
    if (!tinymodel_write_temp(m->path, sizeof m->path, shape, err))
        return false;
    if (soak_chance(random, 30) && !heads_rig_write_beside(m->path, soak_chance(random, 50) ? HEAD_AFFINE : HEAD_FULL,
                                                           splitmix64(random), m->heads, sizeof m->heads, err))
        return false;
    snprintf(m->name, sizeof m->name, "tiny, %u layers, width %u, vocabulary %u", shape->n_layers, shape->width,
             shape->vocab);
    struct tinymodel small = *shape;
    small.first_layers = 1 + soak_below(random, shape->n_layers - 1);
    if (soak_chance(random, 20))
        small.seed++; /* a draft model that is unrelated to the target */
    return soak_chance(random, 30) ? snprintf(m->draft, sizeof m->draft, "self:%u", small.first_layers) > 0
                                   : tinymodel_write_temp(m->draft, sizeof m->draft, &small, err);
}

/* ---- models of the repository ---- */

static bool
draw_file(struct soak_model *m, uint64_t *random, struct err *err)
{
    static const char *const patterns[] = {"tests/golden/families/*.gguf", "tests/golden/families/*/config.json",
                                           "tests/golden/models/*.gguf", "tests/golden/models/*/config.json"};
    glob_t found = {0};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        glob(patterns[i], i > 0 ? GLOB_APPEND : 0, NULL, &found);
    const bool any = found.gl_pathc > 0 || err_set(err, ERR_WORK, "no golden models: run it from the tree's root");
    do { /* one of the files contains only a vocabulary */
        const char *path = any ? found.gl_pathv[soak_below(random, (uint32_t)found.gl_pathc)] : "";
        const char *config = strstr(path, "/config.json");
        snprintf(m->path, sizeof m->path, "%.*s", (int)(config != NULL ? config - path : (ptrdiff_t)strlen(path)),
                 path);
    } while (strstr(m->path, "vocabulary") != NULL);
    globfree(&found);
    snprintf(m->draft, sizeof m->draft, "%s", soak_chance(random, 50) ? m->path : "self:1");
    return any;
}

static void
draw_bundled(struct soak_model *m, uint64_t *random)
{
    snprintf(m->path, sizeof m->path, "%s", bundled_model_path());
    if (soak_chance(random, 30))
        snprintf(m->draft, sizeof m->draft, "self:%u", 1 + soak_below(random, 4));
    else
        snprintf(m->draft, sizeof m->draft, "models/fables-draft-q8_0.gguf");
}

static void
draw_synthetic(struct soak_model *m, uint64_t *random)
{
    static const char *const types[] = {"f32", "f16", "bf16", "q8_0"};
    static const char *const shapes[] = {"tiny", "tiny", "tiny-mixture"};
    m->synth = true;
    m->quantize = false; /* these files are written in the requested type */
    snprintf(m->path, sizeof m->path, "%s:%s,%u,0.%u", FROM(random, shapes), FROM(random, types),
             1 + soak_below(random, 6), 40 + soak_below(random, 50));
    snprintf(m->draft, sizeof m->draft, "self:%u", 1 + soak_below(random, 6));
}

bool
soak_model_draw(struct soak_model *m, bool cuda, uint64_t *random, struct err *err)
{
    *m = (struct soak_model){.backend = soak_chance(random, 30) ? "check" : "cpu"};
    const bool on_gpu = soak_chance(random, 5); /* always drawn, so that other cases do not depend on `cuda` */
    if (cuda && on_gpu) {
        const struct tinymodel small = draw_small_shape(random);
        m->backend = "cuda";
        m->slow = true;
        return write_tiny(m, &small, random, err);
    }
    m->isa = draw_isa(random);
    m->exact = soak_chance(random, 10);
    m->quantize = !m->exact && soak_chance(random, 10);
    const uint32_t kind = soak_below(random, 100);
    if (kind < 50) {
        const struct tinymodel shape = draw_shape(random);
        return write_tiny(m, &shape, random, err);
    }
    if (kind < 93)
        return draw_file(m, random, err);
    (kind < 95 ? draw_synthetic : draw_bundled)(m, random);
    m->slow = strcmp(m->isa, "reference") == 0;
    return true;
}

void
soak_model_remove(const struct soak_model *m)
{
    if (m->heads[0] != '\0')
        unlink(m->heads);
    if (m->made) {
        unlink(m->path);
        unlink(m->draft); /* no such file for "self:2" */
    }
}

bool
soak_model_engine(const struct soak_model *m, uint32_t threads, struct engine **engine, struct err *err)
{
    const struct engine_options options = {
        .model_path = m->path,
        .synth = m->synth,
        .backend = m->backend,
        .backend_options = {.threads = threads, .isa = m->isa, .exact = m->exact, .gpu = -1},
        .quantize = m->quantize,
        .aux = {[AUX_DRAFT] = m->draft}};
    return session_rig_engine_open(engine, &options, err);
}
