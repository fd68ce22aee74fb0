#include "beside.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/cuda/emulation/world.h"

namespace ptx
{

using words = std::vector<uint32_t>;

struct beside {
    std::string kernel;
    std::map<const char *, words> left; /* by the host's code, where it changed something */
};

struct tally {
    uint64_t launches, differing, words;
    uint32_t units;
};
static std::map<std::string, tally> tallies; /* under the world's lock */

bool
wants_comparison()
{
    static const bool wanted = emulation::setting("EMULATED_PTX_COMPARE", 0) != 0;
    return wanted;
}

static std::map<const char *, words>
memory_now()
{
    std::map<const char *, words> found;
    for (const auto *map : {&emulation::all().device, &emulation::all().pinned})
        for (const auto &each : *map) {
            words &w = found[each.first];
            w.resize(each.second / 4);
            memcpy(w.data(), each.first, w.size() * 4);
        }
    return found;
}

std::shared_ptr<beside>
run_as_host(const char *call, std::function<void()> thread, dim3 grid, dim3 block, size_t shared, bool cooperative,
            cudaStream_t stream)
{
    const auto b = std::make_shared<beside>();
    b->kernel = std::string(call, strcspn(call, "(,<"));
    const emulation::launched what = {std::move(thread), call, grid, block, shared, cooperative, 0, 0};
    std::lock_guard<std::mutex> hold(emulation::all().lock);
    emulation::enqueue(stream, "a comparison", [=](uint32_t) {
        std::unique_lock<std::mutex> inner(emulation::all().lock);
        const auto before = memory_now();
        inner.unlock();
        char complaint[512];
        if (!emulation::run_grid(what, complaint, sizeof complaint))
            fprintf(stderr, "emulated GPU: as g++ compiled it, %s\n", complaint);
        inner.lock();
        for (const auto &each : before) {
            if (memcmp(each.first, each.second.data(), each.second.size() * 4) == 0)
                continue;
            words &w = b->left[each.first];
            w.resize(each.second.size());
            memcpy(w.data(), each.first, w.size() * 4);
            memcpy((void *)each.first, each.second.data(), w.size() * 4);
        }
        return cudaSuccess;
    });
    return b;
}

/* Of two numbers of F32, in units of the last place. */
static uint32_t
units_between(uint32_t a, uint32_t b)
{
    const auto place = [](uint32_t x) { return x >> 31 ? -(int64_t)(x & 0x7fffffffu) : (int64_t)x; };
    const int64_t apart = place(a) - place(b);
    const uint64_t size = (uint64_t)(apart < 0 ? -apart : apart);
    return size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
}

static void
print_tallies()
{
    for (const auto &each : tallies)
        fprintf(stderr, "ptx: %s: %llu launches, %llu differ, in %llu words, by %u units at most\n", each.first.c_str(),
                (unsigned long long)each.second.launches, (unsigned long long)each.second.differing,
                (unsigned long long)each.second.words, each.second.units);
}

void
compare_with_host(std::shared_ptr<beside> b, cudaStream_t stream)
{
    std::lock_guard<std::mutex> hold(emulation::all().lock);
    emulation::enqueue(stream, "a comparison", [=](uint32_t) {
        std::lock_guard<std::mutex> inner(emulation::all().lock);
        static const int printed = atexit(print_tallies);
        (void)printed;
        tally &t = tallies[b->kernel];
        uint64_t differing = 0;
        for (const auto &each : memory_now()) {
            const auto left = b->left.find(each.first);
            for (size_t i = 0; left != b->left.end() && i < each.second.size(); i++)
                if (each.second[i] != left->second[i]) {
                    const uint32_t units = units_between(each.second[i], left->second[i]);
                    t.units = units > t.units ? units : t.units;
                    differing++;
                }
        }
        t.launches++;
        t.words += differing;
        t.differing += differing > 0;
        return cudaSuccess;
    });
}

} // namespace ptx
