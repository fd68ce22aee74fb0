#include "tests/emulator/races/shadow.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/emulator/races/flow.h"
#include "tests/emulator/races/order.h"
#include "tests/emulator/races/report.h"
#include "tests/emulator/threads/watch.h"

namespace emulation
{

static constexpr unsigned WORD = 4, WORDS = WATCHED_PAGE / WORD;
static constexpr uint16_t WHOLE = 15;

/* ---- places of cells ---- */

struct page {
    cell *cells;             /* WORDS, once threads of a grid have accessed the page */
    flow_cell *flow;         /* WORDS, once a stream or the host has */
    uint32_t constant_grid;  /* the last grid with read-only loads from the page */
    uint8_t constant[WORDS]; /* words that it reads so */
};

/* Pages by address: a table of tables. */
static constexpr unsigned LOW_BITS = 17, HIGH_BITS = 18, PAGE_BITS = 12; /* 47 bits in all */
static page **tables[1u << HIGH_BITS];
static uint32_t grid_now;

static page **
place_of(uintptr_t address, bool make)
{
    page ***table = &tables[address >> (LOW_BITS + PAGE_BITS) & ((1u << HIGH_BITS) - 1)];
    if (*table == nullptr && make)
        *table = (page **)calloc(1u << LOW_BITS, sizeof **table);
    return *table != nullptr ? *table + (address >> PAGE_BITS & ((1u << LOW_BITS) - 1)) : nullptr;
}

static page *
page_of(uintptr_t address)
{
    page **at = place_of(address, false);
    return at != nullptr ? *at : nullptr;
}

void
shadow_allocated(const void *p, size_t bytes)
{
    for (uintptr_t a = (uintptr_t)p; a < (uintptr_t)p + bytes; a += WATCHED_PAGE)
        if (page **at = place_of(a, true))
            *at = (page *)calloc(1, sizeof **at);
}

void
shadow_freed(const void *p, size_t bytes)
{
    for (uintptr_t a = (uintptr_t)p; a < (uintptr_t)p + bytes; a += WATCHED_PAGE) {
        page **at = place_of(a, false);
        if (at == nullptr || *at == nullptr)
            continue;
        free((*at)->cells);
        free((*at)->flow);
        free(*at);
        *at = nullptr;
    }
}

/* __shared__ variables of the host thread that runs the grid */
static piece variables;
static std::vector<cell> of_variables;

void
shadow_grid_begins()
{
    grid_now++;
    flow_grid_begins(running.what->op);
}

void
shadow_blocks_begin()
{
    variables = thread_locals();
    of_variables.resize(variables.size / WORD + 2);
}

/* ---- one cell ---- */

static bool
holds(const record &r, const record &other)
{
    return r.grid == other.grid && (r.bytes & other.bytes) != 0;
}

/* Returns true if both accesses are atomic, and each with a scope that includes the other's block. */
static bool
both_atomic(const record &old, const record &now)
{
    return old.atomic != 0 && now.atomic != 0 &&
           (old.atomic + now.atomic == 2 || old.who >> THREAD_BITS == now.who >> THREAD_BITS);
}

/* Returns true if an older access and the running thread's access are a race. */
static bool
races(const record &old, const record &now, const fiber *f)
{
    return holds(old, now) && !both_atomic(old, now) && !comes_before(old.who, old.time, f);
}

static bool
same_epoch(const record &old, const record &now)
{
    return old.grid == now.grid && old.who == now.who && old.time == now.time && (old.bytes & now.bytes) == now.bytes &&
           old.atomic == now.atomic;
}

/* Returns a read of the block that has the most reads. */
static unsigned
crowded(const cell *c)
{
    unsigned most = 0, of_most = 0;
    for (unsigned i = 0; i < cell::READS; i++) {
        unsigned n = 0;
        for (const record &other : c->reads)
            n += other.who >> THREAD_BITS == c->reads[i].who >> THREAD_BITS;
        if (n > of_most) {
            of_most = n;
            most = i;
        }
    }
    return most;
}

/* Stores a read in place of one that comes before it, else in place of a read of the block with the most reads. Two
 * reads of a block, of different warps if possible, represent all of its unordered reads: an access that comes after
 * both comes after all, except in rare cases. */
static void
remember_read(cell *c, const record &now, const fiber *f)
{
    record *free = nullptr, *own = nullptr;
    for (record &r : c->reads) {
        if (r.grid != now.grid || ((r.bytes | now.bytes) == now.bytes && met_since(r.who, r.time, f))) {
            free = &r;
        } else if (r.who >> THREAD_BITS == now.who >> THREAD_BITS && r.bytes == now.bytes) {
            if (own != nullptr && (own->who >> 5 != r.who >> 5 || own->who >> 5 == now.who >> 5))
                return;
            if (own != nullptr)
                free = &r;
            own = &r;
        }
    }
    *(free != nullptr ? free : &c->reads[crowded(c)]) = now;
}

static void
remember_write(cell *c, const record &now)
{
    for (record &r : c->reads) /* they come before the write, or the race was reported */
        if ((r.bytes | now.bytes) == now.bytes)
            r.grid = 0;
    for (record &r : c->writes)
        if (r.grid != now.grid || (r.bytes | now.bytes) == now.bytes) {
            r = now;
            return;
        }
    c->writes[now.bytes & 1] = now;
}

static void
look(cell *c, access what, const record &now, const fiber *f, bool own_block)
{
    if (own_block) /* other blocks have their own shared memory at this address */
        for (record *r = c->writes; r < c->reads + cell::READS; r++)
            if (r->who >> THREAD_BITS != now.who >> THREAD_BITS)
                r->grid = 0;
    for (const record &w : c->writes) {
        if (same_epoch(w, now))
            return;
        if (races(w, now, f))
            report_race(w, WRITE, now, what);
    }
    if (what == READ) {
        for (const record &r : c->reads)
            if (same_epoch(r, now))
                return;
        remember_read(c, now, f);
        return;
    }
    for (const record &r : c->reads)
        if (races(r, now, f))
            report_race(r, READ, now, what);
    remember_write(c, now);
}

/* ---- streams and the host ---- */

/* Allocates the cells of a page when it is first accessed, on any thread. */
static flow_cell *
flow_of(page *in)
{
    flow_cell *there = __atomic_load_n(&in->flow, __ATOMIC_ACQUIRE);
    if (there != nullptr)
        return there;
    flow_cell *const fresh = (flow_cell *)calloc(WORDS, sizeof *fresh);
    if (__atomic_compare_exchange_n(&in->flow, &there, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return fresh;
    free(fresh);
    return there;
}

/* Records an access of a stream or the host to the words of [p, p + n), which is device memory or pinned memory. */
static void
flow(const void *p, size_t n, access what, mark now, uint64_t where)
{
    const uintptr_t end = (uintptr_t)p + n;
    for (uintptr_t word = (uintptr_t)p / WORD * WORD; word < end;) {
        page *in = page_of(word);
        if (in == nullptr)
            return;
        flow_cell *const cells = flow_of(in);
        const uintptr_t next = (word / WATCHED_PAGE + 1) * WATCHED_PAGE;
        for (; word < next && word < end; word += WORD) {
            access was;
            if (const mark old = flow_look(&cells[word / WORD % WORDS], what, now, &was)) {
                report_flow(flow_operation(old / 2), was, flow_operation(now / 2), what, where);
                return;
            }
        }
    }
}

void
shadow_moves(uint32_t op, const void *p, size_t n, bool writes)
{
    const bool at_once = (n == 4 || n == 8) && (uintptr_t)p % n == 0;
    flow(p, n, writes ? WRITE : READ, op * 2 + at_once, 0);
}

void
shadow_host(const void *p, size_t n, access what, uint64_t where)
{
    if (page_of((uintptr_t)p) != nullptr)
        flow(p, n, what, flow_host("the host", where) * 2, where);
}

void
shadow_frees(const void *p, size_t n, uint64_t where)
{
    flow(p, n, WRITE, flow_host("the host, freeing it,", where) * 2, where);
}

/* ---- accesses ---- */

/* Returns the cell of the word at this address; NULL: the word is not shared. */
static cell *
cell_at(uintptr_t word, access what, const record &now)
{
    const uintptr_t own = (uintptr_t)variables.start / WORD * WORD;
    if (word - own < variables.size)
        return &of_variables[(word - own) / WORD];
    page *in = page_of(word);
    if (in == nullptr)
        return nullptr;
    const unsigned i = (unsigned)(word / WORD % WORDS);
    if (what == WRITE && in->constant_grid == grid_now && in->constant[i])
        report_constant(now, true);
    if (in->cells == nullptr)
        in->cells = (cell *)calloc(WORDS, sizeof *in->cells);
    return &in->cells[i];
}

void
shadow_access(const void *p, size_t n, access what, uint16_t atomic, uint64_t where)
{
    const fiber *f = running.now;
    uintptr_t address = (uintptr_t)p;
    const uintptr_t end = address + n;
    const bool own_block = address - (uintptr_t)variables.start < variables.size ||
                           address - (uintptr_t)f->at.shared < running.what->shared;
    record now = {f->who, time_of(f), grid_now, 0, atomic, where};
    while (address < end) {
        const uintptr_t word = address / WORD * WORD, next = word + WORD < end ? word + WORD : end;
        cell *c = cell_at(word, what, now);
        if (c == nullptr)
            return;
        now.bytes = (uint16_t)(WHOLE << (address - word) & WHOLE & ~(WHOLE << (next - word)));
        look(c, what, now, f, own_block);
        if (!own_block)
            flow((const void *)word, WORD, what, running.what->op * 2 + (atomic == 1), where);
        address = next;
    }
}

void
shadow_constant(const void *p, size_t n, uint64_t where)
{
    const fiber *f = running.now;
    flow(p, n, READ, running.what->op * 2, where);
    for (uintptr_t word = (uintptr_t)p / WORD * WORD; word < (uintptr_t)p + n; word += WORD) {
        page *in = page_of(word);
        if (in == nullptr)
            return;
        if (in->constant_grid != grid_now) {
            in->constant_grid = grid_now;
            memset(in->constant, 0, sizeof in->constant);
        }
        const unsigned i = (unsigned)(word / WORD % WORDS);
        in->constant[i] = 1;
        const record now = {f->who, time_of(f), grid_now, WHOLE, 0, where};
        for (unsigned w = 0; in->cells != nullptr && w < cell::WRITES; w++)
            if (in->cells[i].writes[w].grid == grid_now)
                report_constant(now, false);
    }
}

} // namespace emulation
