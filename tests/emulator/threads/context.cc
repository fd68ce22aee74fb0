#include "tests/emulator/threads/context.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define SANITIZED 1
#define STACK     (512u << 10)
#else
#define SANITIZED 0
#define STACK     (64u << 10)
#endif
#define GUARD 4096u

namespace emulation
{

/* ---- stacks ---- */

stacks::~stacks()
{
    if (base != nullptr)
        munmap(base, n * (STACK + GUARD));
}

bool
stacks::at_least(size_t wanted)
{
    if (wanted <= n)
        return true;
    void *more = mmap(nullptr, wanted * (STACK + GUARD), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (more == MAP_FAILED)
        return false;
    for (size_t i = 0; i < wanted; i++)
        if (mprotect((char *)more + i * (STACK + GUARD), GUARD, PROT_NONE) != 0) {
            munmap(more, wanted * (STACK + GUARD));
            return false;
        }
    if (base != nullptr)
        munmap(base, n * (STACK + GUARD));
    base = (char *)more;
    n = wanted;
    size = n * (STACK + GUARD);
    return true;
}

void
stacks::place(context *c, size_t i) const
{
    c->low = base + i * (STACK + GUARD) + GUARD;
    /* Threads execute the same code at the same depth. Different offsets keep their frames out of the same cache
     * sets. */
    c->size = STACK - i % 7 * 576;
}

void
stacks::clean()
{
#if SANITIZED
    ASAN_UNPOISON_MEMORY_REGION(base, n * (STACK + GUARD));
#endif
}

void
place_own(context *c)
{
    pthread_attr_t a;
    if (pthread_getattr_np(pthread_self(), &a) != 0)
        return;
    pthread_attr_getstack(&a, &c->low, &c->size);
    pthread_attr_destroy(&a);
}

/* ---- switching ---- */

#if defined(__x86_64__)

/* Saves the registers that a function must preserve on the stack, stores the stack pointer in *from, and resumes the
 * context `to`. */
extern "C" __attribute__((visibility("hidden"))) void emulation_switch(void **from, void *to);
asm(R"(
    .text
    .p2align 4
    .globl emulation_switch
    .hidden emulation_switch
    .type emulation_switch, @function
emulation_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size emulation_switch, .-emulation_switch
)");

void
prepare(context *c, void (*entry)())
{
    const uintptr_t top = ((uintptr_t)c->low + c->size) / 16 * 16;
    void **sp = (void **)top;
    *--sp = nullptr; /* return address of entry(): the stack is as after a call */
    *--sp = nullptr;
    *--sp = nullptr;
    memcpy(--sp, &entry, sizeof entry);
    for (int i = 0; i < 6; i++)
        *--sp = nullptr;
    c->sp = sp;
}

static void
go(context *from, context *to)
{
    emulation_switch(&from->sp, to->sp);
}

#else /* swapcontext() makes a system call for each switch */

void
prepare(context *c, void (*entry)())
{
    getcontext(&c->state);
    c->state.uc_stack.ss_sp = c->low;
    c->state.uc_stack.ss_size = c->size;
    c->state.uc_link = nullptr;
    makecontext(&c->state, entry, 0);
}

static void
go(context *from, context *to)
{
    swapcontext(&from->state, &to->state);
}

#endif

void
entered()
{
#if SANITIZED
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

void
enter(context *from, context *to)
{
#if SANITIZED
    __sanitizer_start_switch_fiber(&from->fake, to->low, to->size);
#endif
    go(from, to);
#if SANITIZED
    __sanitizer_finish_switch_fiber(from->fake, nullptr, nullptr);
#endif
}

void
leave(context *from, context *to)
{
#if SANITIZED
    __sanitizer_start_switch_fiber(nullptr, to->low, to->size);
#endif
    go(from, to);
    abort();
}

} // namespace emulation
