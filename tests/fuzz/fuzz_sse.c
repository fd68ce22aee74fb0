/* Server-sent events: pieces of any size give the same events as the whole, within the limit. The first byte chooses
 * limit and pieces. */
#include "engine/remote/sse.h"
#include "tests/fuzz/fuzz.h"

struct seen {
    size_t most, n;
    uint64_t hash; /* of the events */
};

static bool
add(void *user, char *data, size_t n)
{
    struct seen *seen = user;
    MUST(n <= seen->most && data[n] == '\0' && memchr(data, '\r', n) == NULL);
    for (size_t i = 0; i <= n; i++)
        seen->hash = (seen->hash ^ (uint8_t)data[i]) * 0x100000001b3u;
    return ++seen->n < 200;
}

/* pieces: the state that chooses the length of each, 0: one piece */
static enum sse_result
feed(struct seen *seen, const uint8_t *bytes, size_t size, uint32_t pieces)
{
    struct sse s = {.most = seen->most};
    enum sse_result result = SSE_MORE;
    for (size_t at = 0; at < size && result == SSE_MORE;) {
        pieces = pieces * 1664525u + (pieces != 0 ? 1013904223u : 0);
        const size_t piece = pieces == 0 || size - at <= pieces >> 27 ? size - at : pieces >> 27;
        result = sse_feed(&s, (const char *)bytes + at, piece, add, seen);
        at += piece;
    }
    MUST(s.n <= s.most);
    sse_close(&s);
    return result;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const size_t most = (data[0] & 1) != 0 ? 64 : 1 << 20;
    struct seen whole = {.most = most}, pieces = {.most = most};
    const enum sse_result result = feed(&whole, data + 1, size - 1, 0);
    MUST(result != SSE_NO_MEMORY && feed(&pieces, data + 1, size - 1, data[0] | 256u) == result);
    MUST(pieces.n == whole.n && pieces.hash == whole.hash);
    return 0;
}

MUTATOR(mutate_lines(data, size, max_size, seed));
