/* Stacks, and switches between them without a system call. */
#ifndef EMULATION_CONTEXT_H
#define EMULATION_CONTEXT_H

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace emulation
{

/* A stack and the saved state of the code that runs on it. */
struct context {
#if defined(__x86_64__)
    void *sp = nullptr; /* valid while it does not run */
#else
    ucontext_t state;
#endif
    void *low = nullptr; /* the stack's lowest address */
    size_t size = 0;
    void *fake = nullptr; /* the address sanitizer's */
};

/* The stacks of all threads, which later grids use again. A protected page is below each. */
class stacks
{
  public:
    ~stacks();
    bool at_least(size_t n); /* returns false if there is no memory */
    void place(context *, size_t i) const;
    bool
    has(const void *p) const
    {
        return (size_t)((const char *)p - base) < size;
    }
    void clean(); /* must be called after a grid that ended with an error */

  private:
    char *base = nullptr;
    size_t n = 0, size = 0;
};

/* Prefetches the first memory that `c` accesses when it is entered. */
inline void
prefetch_stack(const context *c)
{
#if defined(__x86_64__)
    for (int line = 0; line < 8; line++)
        __builtin_prefetch((const char *)c->sp + line * 64, 1);
#endif
}

/* Stores the stack of the caller in the context. */
void place_own(context *);
/* Prepares `c`, which has its stack, so that it begins with entry() when it is entered. entry() does not return. */
void prepare(context *c, void (*entry)());
/* Leaves `from` and continues with `to`. Returns when `from` is entered again. */
void enter(context *from, context *to);
/* Must be the first call in entry(). It completes the switch for the address sanitizer. */
void entered();
/* As enter(), but the caller is never entered again. */
[[noreturn]] void leave(context *from, context *to);

} // namespace emulation

#endif
