/* Scripts of ':' commands in a live session on a tiny model. Each command is executed or refused in one line, and the
 * session ends without an error. The first byte selects the first policy, and one or three sequences. */
#include <unistd.h>

#include "policies/registry.h"
#include "tests/fuzz/app_rig.h"
#include "tests/fuzz/fuzz.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/session_rig.h"

#define LINES_MOST 40
#define LINE_MOST  200

static struct engine *
open_engine(void)
{
    const struct tinymodel tiny = {.seed = 5,
                                   .n_layers = 4,
                                   .width = 32,
                                   .heads = 2,
                                   .kv_heads = 1,
                                   .ffn = 32,
                                   .vocab = 288,
                                   .calm_after = 1,
                                   .calm = 0.1f,
                                   .sharpness = 8,
                                   .nasty = true};
    char path[80];
    struct engine *engine;
    MUST(tinymodel_write_temp(path, sizeof path, &tiny, NULL));
    MUST(session_rig_engine_with(&engine, path, "self:2", "cpu", 1, NULL));
    unlink(path);
    return engine;
}

static void
run_lines(struct app *app, const uint8_t *data, size_t size)
{
    char line[LINE_MOST];
    int lines = 0;
    for (size_t i = 0; i < size && lines < LINES_MOST && !app->quit; lines++) {
        const uint8_t *end = memchr(data + i, '\n', size - i);
        const size_t n = end != NULL ? (size_t)(end - data) - i : size - i;
        struct err err = {0};
        if (n > 0 && n < sizeof line && memchr(data + i, '\0', n) == NULL) {
            memcpy(line, data + i, n);
            line[n] = '\0';
            app_rig_tame(line, n);
            if (strstr(line, "suspend") == NULL && !app_execute(app, line, &err))
                MUST(err.text[0] != '\0' && strpbrk(err.text, "\n\033\r") == NULL);
        }
        for (int k = 0; k < 3 && !app->quit; k++)
            app_cycle(app, k);
        i += n + 1;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char root[4096];
    static struct engine *engine;
    static struct app app;
    struct err err = {0};
    if (engine == NULL) {
        engine = open_engine();
        app_rig_open(root);
    }
    if (size < 2)
        return 0;
    size_t n_policies = 0;
    while (policy_registry[n_policies] != NULL)
        n_policies++;
    const struct session_options options = {.policies = policy_registry,
                                            .policy = policy_registry[data[0] % n_policies]->name,
                                            .prompt = "The",
                                            .prompt_len = 3,
                                            .batch = data[0] >= 200 ? 3 : 0,
                                            .sampling = {.top_p = 1},
                                            .seed = 1,
                                            .tokens = 24,
                                            .ctx = 96,
                                            .ignore_eos = true,
                                            .probe = PROBE_ALL,
                                            .paused = data[0] % 2 == 0,
                                            .stay = true};
    struct live *session;
    MUST(session_open(&session, engine, &options, &err));
    const struct source source = {.live = session};
    const struct app_options with = {.presets = "presets", .command_path = "command"};
    app_rig_size(24, 80);
    if (app_begin(&app, &source, &with))
        run_lines(&app, data + 1, size - 1);
    const int status = app_end(&app, &err);
    MUST(status == 0 || err.text[0] != '\0');
    live_close(session);
    return 0;
}

MUTATOR(size > 1 ? 1 + mutate_lines(data + 1, size - 1, max_size - 1, seed) : LLVMFuzzerMutate(data, size, max_size));
