/* Lets every call of the CUDA runtime fail in turn, from opening an engine to closing it (tests/emulator). After each
 * failure there is one line that names the device and the operation, no crash, and no allocation that is left.
 * SPECSCOPE_LONG=1 tries every call with every kind of failure. */
#include <dlfcn.h>
#include <unistd.h>

#include "policies/registry.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/session_rig.h"
#include "tests/rigs/test.h"

static uint64_t seed;
static char model[128];

/* ---- the emulation's handles ---- */

static struct {
    void (*fail_at)(uint64_t nth, int kind);
    uint64_t (*calls)(void), (*allocations)(void);
    const char *(*complaint)(void);
} emulated;
static const char *const kinds[] = {"out of memory", "lost", "launch"}; /* in the order of enum emulated_failure */
#define KINDS (sizeof kinds / sizeof *kinds)

static bool
find(void *library, const char *name, void *out)
{
    void *symbol = dlsym(library, name);
    memcpy(out, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool
find_emulation(void)
{
    if (cuda_for_tests() == NULL || !cuda_is_emulated())
        return false;
    void *library = dlopen(getenv("SPECSCOPE_CUDA_PLUGIN"), RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    assert_true(find(library, "emulated_cuda_fail", &emulated.fail_at) &&
                find(library, "emulated_cuda_calls", &emulated.calls) &&
                find(library, "emulated_cuda_allocations", &emulated.allocations) &&
                find(library, "emulated_cuda_complaint", &emulated.complaint));
    dlclose(library);
    return true;
}

/* ---- the run ---- */

static bool
live(const char *policy, float temperature, struct session_rig_result *out, struct err *err)
{
    struct engine *engine = NULL;
    const struct knob_setting knob = {"draft_vocab", "64"};
    const struct session_options o = {.policies = policy_registry,
                                      .policy = policy,
                                      .set = &knob,
                                      .n_set = 1,
                                      .prompt = "one two",
                                      .prompt_len = 7,
                                      .sampling = {.temperature = temperature, .top_p = 1},
                                      .seed = 1,
                                      .tokens = 4,
                                      .ctx = 64,
                                      .ignore_eos = true,
                                      .probe = PROBE_ALL};
    memset(out, 0, sizeof *out);
    *err = (struct err){.kind = ERR_NONE};
    const bool ok = session_rig_engine_with(&engine, model, "self:1", "cuda", 1, err) &&
                    session_rig_generate(engine, &o, NULL, NULL, out, err);
    engine_close(engine);
    return ok;
}

static bool
is_one_line(const char *text)
{
    return (strstr(text, "GPU 0 (") != NULL || strstr(text, "backend cuda: ") != NULL) && strchr(text, '\n') == NULL &&
           strlen(text) > 40;
}

static void
walk(const char *policy, float temperature)
{
    struct session_rig_result whole, out;
    struct err err;
    if (!find_emulation())
        skip();
    const bool all = getenv("SPECSCOPE_LONG") != NULL;
    uint64_t random = seed;
    emulated.fail_at(0, 0);
    const uint64_t before = emulated.calls(),
                   lost = emulated.allocations(); /* a device that another test lost can still have allocations */
    assert_ok(live(policy, temperature, &whole, &err), err);
    const uint64_t calls = emulated.calls() - before;
    assert_int_equal(whole.n, 4);
    assert_int_equal(emulated.allocations(), lost);
    unsigned failed = 0, harmless = 0;
    for (uint64_t n = 1; n <= calls; n += all ? 1 : 1 + splitmix64(&random) % (calls / 16 + 1))
        for (size_t k = 0; k < (all ? KINDS : 1); k++) {
            const int kind = (int)(all ? k : splitmix64(&random) % KINDS);
            const uint64_t stay = emulated.allocations(); /* allocations of lost devices cannot be freed */
            emulated.fail_at(n, kind);
            const bool ok = live(policy, temperature, &out, &err);
            emulated.fail_at(0, 0);
            if (!ok && (!is_one_line(err.text) || err.kind != ERR_WORK))
                fail_msg("seed %llu: call %llu (%s), policy %s: '%s'", (unsigned long long)seed, (unsigned long long)n,
                         kinds[kind], policy, err.text);
            if (ok) { /* the failure had no effect: it happened while closing, or the call was repeated */
                assert_int_equal(out.n, whole.n);
                assert_memory_equal(out.tokens, whole.tokens, whole.n * sizeof *whole.tokens);
            }
            if (kind == 0 && emulated.allocations() != stay)
                fail_msg("seed %llu: call %llu out of memory, policy %s: allocations stay", (unsigned long long)seed,
                         (unsigned long long)n, policy);
            failed += !ok;
            harmless += ok;
            session_rig_free(&out);
        }
    print_message("%s: %llu calls; %u failures said, %u cost nothing\n", policy, (unsigned long long)calls, failed,
                  harmless);
    assert_greater(failed, 10);
    assert_string_equal(emulated.complaint(), "");
    session_rig_free(&whole);
}

TEST(any_call_may_fail_while_a_policy_drafts)
{
    walk("specbound", 0);
}

TEST(any_call_may_fail_while_tokens_are_sampled)
{
    walk("layerskip", 1);
}

int
main(void)
{
    struct err err;
    const struct tinymodel tiny = {.seed = 5, .n_layers = 2, .width = 32, .heads = 2, .kv_heads = 1, .vocab = 288};
    seed = seed_or(1);
    if (!tinymodel_write_temp(model, sizeof model, &tiny, &err)) {
        printf("%s\n", err.text);
        return 1;
    }
    const int failures = run_listed_tests();
    unlink(model);
    return failures;
}
