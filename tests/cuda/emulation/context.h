/* Stacks, and going from one to another without asking the kernel. */
#ifndef EMULATION_CONTEXT_H
#define EMULATION_CONTEXT_H

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace emulation
{

/* What runs, or will, on a stack. */
struct context {
#if defined(__x86_64__)
    void *sp = nullptr; /* while it does not run */
#else
    ucontext_t state;
#endif
    void *low = nullptr; /* of its stack */
    size_t size = 0;
    void *fake = nullptr; /* the address sanitizer's */
};

/* A number of stacks, kept from grid to grid: a page that nobody may touch lies below each. */
class stacks
{
  public:
    ~stacks();
    bool at_least(size_t n); /* false: no memory */
    void place(context *, size_t i) const;
    bool
    has(const void *p) const
    {
        return (size_t)((const char *)p - base) < size;
    }
    void clean(); /* after threads were left in the middle of what they did */

  private:
    char *base = nullptr;
    size_t n = 0, size = 0;
};

/* Brings into the cache what `c` touches first when it is entered. */
inline void
prefetch_stack(const context *c)
{
#if defined(__x86_64__)
    for (int line = 0; line < 8; line++)
        __builtin_prefetch((const char *)c->sp + line * 64, 1);
#endif
}

/* The stack that this function is called on. */
void place_own(context *);
/* `c`, which has its stack, begins with entry() when it is entered; entry does not return. */
void prepare(context *c, void (*entry)());
/* Leaves `from` and goes on with `to`; returns when somebody enters `from`. */
void enter(context *from, context *to);
/* As the first thing in entry(): what entered it. */
void entered();
/* As enter(), but nobody comes back. */
[[noreturn]] void leave(context *from, context *to);

} // namespace emulation

#endif
