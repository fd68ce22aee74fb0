#include "tests/emulator/races/report.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/emulator/races/order.h"
#include "tests/emulator/runtime/world.h"
#include "tests/emulator/threads/watch.h"

namespace emulation
{

/* ---- places ---- */

static constexpr uint64_t TOLD = 1ull << 63;
static std::mutex hold; /* protects all static data of this file: the host queues while grids run */
static std::vector<site> sites;
static std::map<std::pair<const char *, int>, uint64_t> numbers;

uint64_t
where_of_code(const void *address)
{
    return (uint64_t)address;
}

uint64_t
where_of_site(site s)
{
    std::lock_guard<std::mutex> held(hold);
    auto at = numbers.find({s.file, s.line});
    if (at == numbers.end()) {
        at = numbers.insert({{s.file, s.line}, sites.size()}).first;
        sites.push_back(s);
    }
    return at->second | TOLD;
}

/* Returns the path within the source tree; NULL for the emulator's own files. */
static const char *
ours(const char *path)
{
    if (strstr(path, "tests/emulator/") != nullptr)
        return nullptr;
    for (const char *folder : {"kernels/", "tests/"})
        if (const char *at = strstr(path, folder))
            return at;
    return nullptr;
}

/* Returns the two innermost lines of device code at an address: inlined functions have several. */
static std::string
lines_of(const void *address)
{
    Dl_info info;
    if (dladdr(address, &info) == 0 || info.dli_fname == nullptr)
        return "?";
    char command[1024], line[1024];
    const size_t offset = (size_t)((const char *)address - (const char *)info.dli_fbase);
    snprintf(command, sizeof command, "addr2line -i -e '%s' 0x%zx 2>/dev/null", info.dli_fname, offset - 1);
    std::string found;
    FILE *f = popen(command, "r");
    for (int n = 0; f != nullptr && n < 2 && fgets(line, sizeof line, f) != nullptr;) {
        line[strcspn(line, " \n")] = '\0';
        const char *name = ours(line);
        if (name == nullptr)
            continue;
        found += (n > 0 ? " in " : "") + std::string(name);
        n++;
    }
    if (f != nullptr)
        pclose(f);
    if (found.empty()) {
        snprintf(command, sizeof command, "%s+0x%zx", info.dli_fname, offset);
        found = command;
    }
    return found;
}

static std::string
name_of(uint64_t where)
{
    if (where & TOLD) {
        hold.lock();
        const site s = sites[where & ~TOLD];
        hold.unlock();
        const char *name = ours(s.file);
        return std::string(name != nullptr ? name : s.file) + ":" + std::to_string(s.line);
    }
    return lines_of((const void *)where);
}

/* ---- reports ---- */

static bool
prints_all()
{
    static const char *const all = getenv("EMULATED_CUDA_RACES");
    return all != nullptr && strcmp(all, "all") == 0;
}

static void
say(const std::string &text)
{
    if (prints_all()) {
        fprintf(stderr, "emulated GPU: %.60s: %s\n", running.what->name, text.c_str());
        return;
    }
    complain("%s", text.c_str());
    running.now->state = DONE;
    give_way(true);
}

/* Returns true the first time that it is called with a pair of places. */
static bool
is_new(uint64_t a, uint64_t b)
{
    static std::set<std::pair<uint64_t, uint64_t>> said;
    std::lock_guard<std::mutex> held(hold);
    return said.insert({a, b}).second;
}

static std::string
thread_name(const record &r)
{
    return "thread " + std::to_string(r.who & ((1u << THREAD_BITS) - 1)) + " of block " +
           std::to_string(r.who >> THREAD_BITS);
}

void
report_race(const record &old, access was, const record &now, access is)
{
    if (prints_all() && !is_new(old.where, now.where))
        return;
    const bool stale = was == WRITE && is == READ && !now.atomic && would_come_before(old.who, old.time, running.now);
    std::string text = thread_name(now) + (is == WRITE ? " writes at " : " reads at ") + name_of(now.where) + " what " +
                       thread_name(old) + (was == WRITE ? " wrote at " : " read at ") + name_of(old.where);
    text += stale ? ": it may read an old line in L1, because the load that it waited with does not acquire"
                  : ": nothing orders the two";
    say("a race: " + text);
}

static std::string
name_of(const operation &o)
{
    if (o.party == HOST)
        return o.what + (" at " + name_of(o.where));
    return (o.is_grid ? "the kernel " + kernel_name(o.what) : o.what) + " queued at " + name_of(o.where);
}

static bool
is_lost()
{
    std::lock_guard<std::mutex> held(all().lock);
    return all().lost != cudaSuccess;
}

/* Reports an error outside grids, and marks the device as lost. */
static void
say_aside(const std::string &text)
{
    world &w = all();
    std::lock_guard<std::mutex> held(w.lock);
    if (w.lost != cudaSuccess)
        return;
    fprintf(stderr, "emulated GPU: %s\n", text.c_str());
    found();
    if (prints_all())
        return;
    snprintf(w.complaint, sizeof w.complaint, "%s", text.c_str());
    w.lost = w.last = cudaErrorLaunchFailure;
}

void
report_flow(const operation &old, access was, const operation &now, access is, uint64_t where)
{
    const bool in_grid = now.is_grid;
    if (!in_grid && !prints_all() && is_lost())
        return;
    if (prints_all() && !is_new(old.where, where != 0 ? where : now.where))
        return;
    std::string text = name_of(now) + (is == WRITE ? " writes" : " reads");
    if (in_grid)
        text += " at " + name_of(where);
    text += " what " + name_of(old) + (was == WRITE ? " writes" : " reads") + ": nothing orders the two";
    if (in_grid)
        say("a race: " + text);
    else
        say_aside("a race: " + text);
}

void
report_constant(const record &now, bool writes)
{
    if (prints_all() && !is_new(now.where, writes))
        return;
    say(thread_name(now) + (writes ? " writes at " : " reads at ") + name_of(now.where) +
        (writes ? " what a read-only load of the same grid reads" : " by a read-only load what the same grid writes"));
}

} // namespace emulation
