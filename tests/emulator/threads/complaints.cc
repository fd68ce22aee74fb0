/* Describes the error of the running grid in one line. */
#include <cstdarg>
#include <cstdio>

#include "tests/emulator/threads/grid.h"

namespace emulation
{

/* Finds the end of a kernel's name: the first comma outside its template's arguments. */
std::string
kernel_name(const char *text)
{
    int depth = 0;
    size_t n = 0;
    for (; text[n] != '\0' && (text[n] != ',' || depth > 0); n++)
        depth += (text[n] == '<') - (text[n] == '>');
    return std::string(text, n);
}

void
complain(const char *format, ...)
{
    if (running.broken)
        return;
    running.broken = true;
    const int n = snprintf(running.complaint, running.complaint_room, "%s: ", kernel_name(running.what->name).c_str());
    va_list args;
    va_start(args, format);
    if (n > 0 && (size_t)n < running.complaint_room)
        vsnprintf(running.complaint + n, running.complaint_room - (size_t)n, format, args);
    va_end(args);
}

void
misuse(site where, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    complain("%s:%d: thread %u of block %u %s", where.file, where.line, running.now->at.thread.x,
             running.now->at.block.x, text);
    running.now->state = DONE;
    give_way(true);
    __builtin_unreachable();
}

static const char *
name_of(const fiber &f)
{
    static const char *const names[] = {
        "a __syncwarp", "a shuffle", "a vote", "a reduction", "a matrix instruction", "its warp at a barrier"};
    return f.state == AT_BARRIER      ? "a barrier of the block"
           : f.state == AT_COLLECTIVE ? names[f.kind]
                                      : "memory to change";
}

void
complain_of_deadlock()
{
    char text[384];
    size_t n = 0;
    for (state s : {AT_BARRIER, AT_COLLECTIVE, SPINNING}) {
        const fiber *first = nullptr;
        unsigned others = 0;
        for (const fiber &f : running.fibers)
            if (f.state == s && first == nullptr)
                first = &f;
            else if (f.state == s)
                others++;
        if (first == nullptr || n >= sizeof text)
            continue;
        const int more =
            snprintf(text + n, sizeof text - n, "%s thread %u of block %u waits for %s at %s:%d", n > 0 ? ";" : "",
                     first->at.thread.x, first->at.block.x, name_of(*first), first->where.file, first->where.line);
        n += more > 0 ? (size_t)more : 0;
        if (others > 0 && n < sizeof text) {
            const int rest = snprintf(text + n, sizeof text - n, " (%u other threads wait, too)", others);
            n += rest > 0 ? (size_t)rest : 0;
        }
    }
    complain("no thread can run:%s", text);
}

} // namespace emulation
