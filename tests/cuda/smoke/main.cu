/* usage: gpu_smoke [--gpu N] [facts | tiny | real | whole]
 * Compares the kernels with definitions (smoke.h) and prints TAP; `facts` prints the properties of the machine. */
#include <chrono>
#include <cstring>

#include "kernels/cuda/device/switches.h"
#include "tests/cuda/smoke/smoke.h"

static const struct smoke_check checks[] = {
    {"numbers of 16 bits are converted as IEEE 754 defines", smoke_halves},
    {"bytes are converted to halves", smoke_bytes},
    {"loads read the data, and a load whose predicate is false reads nothing", smoke_loads},
    {"the global timer advances", smoke_timer},
    {"matrix instructions compute products of matrices", smoke_matrices},
    {"a column of a matrix instruction does not depend on other columns", smoke_columns},
    {"subnormal halves are not flushed to zero", smoke_subnormals},
    {"no block passes a barrier of the grid before all blocks have arrived", smoke_barriers},
    {"products of every type are correct, and a row's bits do not depend on other rows", smoke_products},
    {"attention over several splits is correct, and a row's bits do not depend on other rows", smoke_attention},
    {"logits of a large vocabulary are correct, and a row's bits do not depend on other rows", smoke_logits},
    {"predictions from these logits follow their definitions", smoke_predictions},
    {"distributions from these logits equal the CPU's", smoke_distributions},
};
enum { CHECKS = sizeof checks / sizeof *checks };

static unsigned running; /* the running check, from 1; 0: none */

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
