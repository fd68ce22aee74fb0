/* usage: gpu_smoke [--gpu N] [facts | tiny | real | whole]
 * Checks of the kernels against definitions (smoke.h), in TAP; or what the machine is. */
#include <chrono>
#include <cstring>

#include "kernels/cuda/device/switches.h"
#include "tests/cuda/smoke/smoke.h"

static const struct smoke_check checks[] = {
    {"numbers of 16 bits are rounded and widened as IEEE 754 has it", smoke_halves},
    {"bytes become halves", smoke_bytes},
    {"loads bring what is there, and nothing where they are not taken", smoke_loads},
    {"the global timer goes on", smoke_timer},
    {"matrix instructions multiply matrices", smoke_matrices},
    {"columns of a matrix instruction do not mix", smoke_columns},
    {"subnormal halves are multiplied as they are", smoke_subnormals},
    {"barriers of the grid let nobody through before all have come", smoke_barriers},
    {"products of every type are products, and a row's bits its own", smoke_products},
    {"attention over several splits is a softmax, and a row's bits its own", smoke_attention},
    {"logits of a large vocabulary are a product, and a row's bits its own", smoke_logits},
    {"guesses from them follow their definitions", smoke_predictions},
    {"distributions from them are those of the CPU", smoke_distributions},
};
enum { CHECKS = sizeof checks / sizeof *checks };

static unsigned running; /* number of the check, for smoke_must(); 0: none */

void
smoke_must(cudaError_t code, const char *call, const char *file, int line)
{
    if (code == cudaSuccess)
        return;
    if (running > 0)
        printf("not ok %u - %s\n", running, checks[running - 1].sentence);
    printf("# %s:%d: %s: %s\n", file, line, call, cudaGetErrorString(code));
    fflush(stdout);
    _Exit(1); /* the device is lost, so nothing is freed */
}

bool
smoke_says(struct smoke *s, bool ok, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->what, sizeof s->what, format, args);
    va_end(args);
    return ok;
}

static int
run_checks(struct smoke *s)
{
    bool all = true;
    printf("1..%d\n", (int)CHECKS);
    for (unsigned i = 0; i < CHECKS && all; i++) {
        const auto began = std::chrono::steady_clock::now();
        running = i + 1;
        all = checks[i].run(s);
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        printf("%s %u - %s (%.1f s)\n# %s\n", all ? "ok" : "not ok", i + 1, checks[i].sentence, seconds, s->what);
        fflush(stdout);
    }
    return all ? 0 : 1;
}

static enum smoke_size
usual_size()
{
#ifdef EMULATION_CUDA_RUNTIME_API_H
    return getenv("SPECSCOPE_LONG") != NULL ? SMOKE_REAL : SMOKE_TINY;
#else
    return SMOKE_WHOLE;
#endif
}

int
main(int argc, char **argv)
{
    struct smoke s = {usual_size(), 0, switched_blocks(UINT32_MAX), ""};
    bool facts = false;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--gpu") == 0 && i + 1 < argc)
            s.device = atoi(argv[++i]);
        else if (strcmp(argv[i], "facts") == 0)
            facts = true;
        else if (strcmp(argv[i], "tiny") == 0)
            s.size = SMOKE_TINY;
        else if (strcmp(argv[i], "real") == 0)
            s.size = SMOKE_REAL;
        else if (strcmp(argv[i], "whole") == 0)
            s.size = SMOKE_WHOLE;
        else {
            fprintf(stderr, "usage: gpu_smoke [--gpu N] [facts | tiny | real | whole]\n");
            return 2;
        }
    SUCCEEDS(cudaSetDevice(s.device));
    if (facts)
        return smoke_facts(s.device) ? 0 : 1;
    return run_checks(&s);
}
