#include "tests/emulator/threads/shared.h"

#include <cstdlib>
#include <cstring>
#include <link.h>

#include "tests/emulator/threads/watch.h"

namespace emulation
{

block_memory::block_memory(block_memory &&other) noexcept : p(other.p), size(other.size)
{
    other.p = nullptr;
    other.size = 0;
}

block_memory::~block_memory()
{
    give_back();
}

void
block_memory::give_back()
{
    if (p != nullptr && watching != nullptr)
        watching->freed(p, size);
    free(p);
    p = nullptr;
}

bool
block_memory::fresh(size_t bytes)
{
    if (p == nullptr || bytes != size) {
        give_back();
        const size_t page = watching != nullptr ? WATCHED_PAGE : 1, room = (bytes + page - 1) / page * page;
        if (posix_memalign(&p, page > 1 ? page : 128, room > 0 ? room : 1) != 0) {
            p = nullptr;
            return false;
        }
        size = bytes;
        if (watching != nullptr)
            watching->allocated(p, room);
    }
    memset(p, POISON, size);
    return true;
}

/* ---- static ---- */

static thread_local unsigned char one_of_them;

static int
look(struct dl_phdr_info *library, size_t, void *out)
{
    auto *const start = (unsigned char *)library->dlpi_tls_data;
    for (int i = 0; i < library->dlpi_phnum && start != nullptr; i++) {
        const size_t size = library->dlpi_phdr[i].p_memsz;
        if (library->dlpi_phdr[i].p_type != PT_TLS || &one_of_them < start || &one_of_them >= start + size)
            continue;
        *(piece *)out = {start, size};
        return 1;
    }
    return 0;
}

piece
thread_locals()
{
    piece found = {&one_of_them, 1};
    dl_iterate_phdr(look, &found);
    return found;
}

void
poison_static_shared()
{
    const piece all = thread_locals();
    memset(all.start, POISON, all.size);
}

bool
static_shared_is_poison()
{
    const piece all = thread_locals();
    for (size_t i = 0; i < all.size; i++)
        if (all.start[i] != POISON)
            return false;
    return true;
}

} // namespace emulation
