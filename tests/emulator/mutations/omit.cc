/* Leaves out one operation of the CUDA backend that orders accesses, so that mutations.sh can see which check notices
 * it.
 *
 * EMULATED_CUDA_DROP="barrier block.cuh:102" omits this barrier in all kernels, "barrier block.cuh:102 @forward" in
 * one kernel, "meeting forward.cu:128 3" the third barrier of a grid, and "wait kv_cache.c:217" the host's wait for a
 * stream. "scope", "class" and "parity" change one property of an access (enum ordering). The first finding then ends
 * the process. EMULATED_CUDA_SITES=FILE appends the places that the program passed to a file, with their kernels. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <unistd.h>

#include "tests/emulator/threads/watch.h"

namespace emulation
{

static const char *const names[] = {"barrier", "warp",  "fence",  "acquire", "release", "meeting",
                                    "scope",   "class", "parity", "wait",    "record"};

struct mutation {
    char kind[16] = "", file[64] = "", kernel[64] = "";
    int line = 0;
    unsigned turn = 0;
    bool asked = false;
    std::set<std::string> passed;
    const char *list = getenv("EMULATED_CUDA_SITES");
    mutation()
    {
        const char *text = getenv("EMULATED_CUDA_DROP");
        if (text == nullptr || text[0] == '\0')
            return;
        asked = sscanf(text, "%15s %63[^:]:%d %u", kind, file, &line, &turn) >= 3;
        if (const char *at = strchr(text, '@'))
            snprintf(kernel, sizeof kernel, "%s", at + 1);
        if (!asked)
            fprintf(stderr, "emulated GPU: EMULATED_CUDA_DROP=%s is no kind and file:line\n", text);
    }
    ~mutation()
    {
        FILE *f = list != nullptr ? fopen(list, "a") : nullptr;
        for (const std::string &each : passed)
            if (f != nullptr)
                fprintf(f, "%s\n", each.c_str());
        if (f != nullptr)
            fclose(f);
    }
};

/* Returns true if nothing is omitted or listed. Every barrier calls it. */
static const bool as_written = getenv("EMULATED_CUDA_DROP") == nullptr && getenv("EMULATED_CUDA_SITES") == nullptr;

static mutation &
mutated()
{
    static mutation *const m = new mutation;
    static struct at_exit {
        ~at_exit()
        {
            mutated().~mutation();
        }
    } lists;
    (void)lists;
    return *m;
}

static const char *
base_of(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash != nullptr ? slash + 1 : file;
}

static void
note_passed(mutation *m, ordering kind, site where, unsigned turn)
{
    static std::mutex hold; /* the host waits while grids run */
    std::lock_guard<std::mutex> held(hold);
    std::string text = std::string(names[kind]) + " " + base_of(where.file) + ":" + std::to_string(where.line);
    if (turn > 0)
        text += " " + std::to_string(turn);
    if (kind < WAIT)
        text += " @" + kernel_name(running.what->name);
    m->passed.insert(text);
}

static bool
keeps_turn(ordering kind, site where, unsigned turn)
{
    if (as_written)
        return true;
    mutation &m = mutated();
    if (m.list != nullptr)
        note_passed(&m, kind, where, turn);
    return !m.asked || m.line != where.line || m.turn != turn || strcmp(m.kind, names[kind]) != 0 ||
           strcmp(m.file, base_of(where.file)) != 0 ||
           (m.kernel[0] != '\0' && kind < WAIT && kernel_name(running.what->name) != m.kernel);
}

void
found()
{
    if (mutated().asked)
        _exit(FOUND);
}

bool
keeps(ordering kind, site where)
{
    return keeps_turn(kind, where, 0);
}

bool
meets(site where)
{
    return keeps_turn(MEETING, where, ++running.now->meetings);
}

} // namespace emulation
