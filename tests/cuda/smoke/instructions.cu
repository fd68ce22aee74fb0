/* Checks the instructions of kernels/cuda/device/ptx.cuh that one thread executes against kernels/half.h and plain
 * arithmetic. */
#include "tests/cuda/smoke/run.h"

#include "kernels/cuda/device/ptx.cuh"
#include "kernels/half.h"

struct word_args {
    const uint32_t *in;
    uint32_t *out; /* (n, 4) */
    uint32_t n;
};

static __device__ __forceinline__ uint32_t
number_here()
{
    return blockIdx.x * BLOCK_THREADS + thread_here();
}

/* Runs `kernel` on each word; it returns four words. */
static std::vector<uint32_t>
map_words(void (*kernel)(struct word_args), const std::vector<uint32_t> &in)
{
    const std::vector<uint32_t> nothing(in.size() * 4, 0xdeadbeef);
    uint32_t *from = on_device(in), *to = on_device(nothing);
    const struct word_args a = {from, to, (uint32_t)in.size()};
    SUCCEEDS(launch(kernel, (a.n + BLOCK_THREADS - 1) / BLOCK_THREADS, BLOCK_THREADS, a, (cudaStream_t) nullptr));
    SUCCEEDS(cudaDeviceSynchronize());
    const std::vector<uint32_t> out = fetched(to, nothing.size());
    SUCCEEDS(cudaFree(from));
    SUCCEEDS(cudaFree(to));
    return out;
}

/* ---- numbers of 16 bits ---- */

/* Converts a float to a half, and it and its negative to a pair and back; the same in bfloat16. */
static __global__ void
__launch_bounds__(BLOCK_THREADS, 1) round_to_halves(struct word_args a)
{
    const uint32_t i = number_here();
    if (i >= a.n)
        return;
    const float x = __uint_as_float(a.in[i]);
    const float2 back = unpack_bf16s(pack_bf16s(x, -x));
    a.out[4 * i] = half_bits(x);
    a.out[4 * i + 1] = pack_halves(x, -x);
    a.out[4 * i + 2] = pack_bf16s(x, -x);
    a.out[4 * i + 3] = __float_as_uint(back.x) >> 16 | (__float_as_uint(back.y) & 0xffff0000u);
}

static __global__ void
__launch_bounds__(BLOCK_THREADS, 1) widen_halves(struct word_args a)
{
    const uint32_t i = number_here();
    if (i >= a.n)
        return;
    const float2 two = unpack_halves(a.in[i]);
    a.out[4 * i] = __float_as_uint(half_value((uint16_t)a.in[i]));
    a.out[4 * i + 1] = __float_as_uint(two.x);
    a.out[4 * i + 2] = __float_as_uint(two.y);
    a.out[4 * i + 3] = 0;
}

static bool
is_nan_half(uint32_t h)
{
    return (h & 0x7fff) > 0x7c00;
}

static bool
same_half(uint32_t got, float x)
{
    const uint16_t want = f32_to_f16(x);
    return is_nan_half(want) ? is_nan_half(got) : got == want;
}

/* Rounds to nearest, ties to even. */
static bool
same_bf16(uint32_t got, float x)
{
    const uint32_t bits = bits_of_float(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (got & 0x7fff) > 0x7f80;
    return got == (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static bool
same_float(uint32_t got, float want)
{
    return want != want ? (got & 0x7fffffffu) > 0x7f800000u : got == bits_of_float(want);
}

bool
smoke_halves(struct smoke *s)
{
    begin(s);
    std::vector<uint32_t> all, floats;
    for (uint32_t h = 0; h < 0x10000; h++)
        all.push_back(h | (0xffff - h) << 16);
    const std::vector<uint32_t> wide = map_words(widen_halves, all);
    for (uint32_t h = 0; h < 0x10000; h++)
        if (!same_float(wide[4 * h], f16_to_f32((uint16_t)h)) ||
            !same_float(wide[4 * h + 1], f16_to_f32((uint16_t)h)) ||
            !same_float(wide[4 * h + 2], f16_to_f32((uint16_t)(0xffff - h))))
            return smoke_says(s, false, "half %04x becomes %08x", h, wide[4 * h]);
    for (uint32_t h = 0; h < 0x7c00; h++) { /* all numbers halfway between two halves, and their neighbours */
        const float middle = (f16_to_f32((uint16_t)h) + f16_to_f32((uint16_t)(h + 1))) / 2;
        for (int by = -1; by <= 1; by++)
            floats.push_back(bits_of_float(h == 0x7bff ? 65520 : middle) + (uint32_t)by);
    }
    for (uint32_t i = 0; i < (s->size == SMOKE_TINY ? 20000u : 1000000u); i++)
        floats.push_back((uint32_t)random64());
    const std::vector<uint32_t> got = map_words(round_to_halves, floats);
    for (size_t i = 0; i < floats.size(); i++) {
        const float x = float_of_bits(floats[i]);
        const uint32_t *g = &got[4 * i];
        if (!same_half(g[0], x) || !same_half(g[1] & 0xffff, x) || !same_half(g[1] >> 16, -x))
            return smoke_says(s, false, "%a becomes half %04x, pair %08x, not %04x", (double)x, g[0], g[1],
                              f32_to_f16(x));
        if (!same_bf16(g[2] & 0xffff, x) || !same_bf16(g[2] >> 16, -x) || g[2] != g[3])
            return smoke_says(s, false, "%a becomes bfloat16s %08x and back %08x", (double)x, g[2], g[3]);
    }
    return smoke_says(s, true, "%zu numbers", floats.size() + all.size());
}

/* ---- bytes ---- */

static __global__ void
__launch_bounds__(BLOCK_THREADS, 1) widen_bytes(struct word_args a)
{
    const uint32_t i = number_here();
    if (i >= a.n)
        return;
    uint32_t low, high;
    dequant_bytes(a.in[i], &low, &high);
    a.out[4 * i] = low;
    a.out[4 * i + 1] = high;
    a.out[4 * i + 2] = threadIdx.x == thread_here();
    a.out[4 * i + 3] = 0;
}

bool
smoke_bytes(struct smoke *s)
{
    begin(s);
    std::vector<uint32_t> words;
    for (uint32_t b = 0; b < 256; b++)
        words.push_back(b | (255 - b) << 8 | (b ^ 0x80) << 16 | (b * 7 & 255) << 24);
    for (int i = 0; i < 10000; i++)
        words.push_back((uint32_t)random64());
    const std::vector<uint32_t> got = map_words(widen_bytes, words);
    for (size_t i = 0; i < words.size(); i++)
        for (uint32_t b = 0; b < 4; b++) {
            const float want = (float)(int8_t)(words[i] >> (8 * b));
            const uint16_t half = (uint16_t)(got[4 * i + b / 2] >> (b % 2 * 16));
            if (f16_to_f32(half) != want || got[4 * i + 2] != 1)
                return smoke_says(s, false, "byte %u of %08x becomes %04x, not %g", b, words[i], half, (double)want);
        }
    return smoke_says(s, true, "%zu words", words.size());
}

/* ---- memory ---- */

struct load_args {
    const uint4 *from; /* (n) */
    uint4 *to;         /* (n, 5) */
    uint32_t n;
};

/* Copies by each kind of load. The predicate of every third copy is false. */
static __global__ void
__launch_bounds__(BLOCK_THREADS, 1) load_all_ways(struct load_args a)
{
    const uint32_t i = number_here();
    if (i >= a.n)
        return;
    const bool take = i % 3 != 0;
    const uint4 *const p = a.from + i;
    uint4 v = make_uint4(1, 2, 3, 4), w;
    uint2 pair = make_uint2(5, 6);
    uint32_t one = 7;
    prefetch_l2((const void *)((uintptr_t)p / 128 * 128), 128, 0, 1);
    load_weights(&v, p, take);
    load_weights(&pair, p, take);
    load_weights(&one, p, take);
    load_state(&w, p);
    uint4 *const to = a.to + 5 * i;
    to[0] = v;
    to[1] = make_uint4(pair.x, pair.y, one, 0);
    to[2] = w;
    to[3] = load_activations(opaque(p));
    to[4] = make_uint4(load_acquire((const uint32_t *)p), 0, 0, 0);
}

bool
smoke_loads(struct smoke *s)
{
    begin(s);
    const uint32_t n = 1000;
    std::vector<uint32_t> words;
    for (uint32_t i = 0; i < 4 * n; i++)
        words.push_back((uint32_t)random64());
    uint32_t *from = on_device(words), *to = on_device(std::vector<uint32_t>(20 * n, 0));
    const struct load_args a = {(const uint4 *)from, (uint4 *)to, n};
    SUCCEEDS(launch(load_all_ways, (n + BLOCK_THREADS - 1) / BLOCK_THREADS, BLOCK_THREADS, a, (cudaStream_t) nullptr));
    SUCCEEDS(cudaDeviceSynchronize());
    const std::vector<uint32_t> got = fetched(to, 20 * n);
    SUCCEEDS(cudaFree(from));
    SUCCEEDS(cudaFree(to));
    static const uint32_t kept[] = {1, 2, 3, 4, 5, 6, 7};
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *w = &words[4 * i], *g = &got[20 * i];
        const bool take = i % 3 != 0;
        const uint32_t want[] = {w[0], w[1], w[2], w[3], w[0], w[1], w[0]};
        if (memcmp(g, take ? want : kept, sizeof want) != 0)
            return smoke_says(s, false, "weights %u that are%s to be loaded", i, take ? "" : " not");
        if (memcmp(g + 8, w, 16) != 0 || memcmp(g + 12, w, 16) != 0 || g[16] != w[0])
            return smoke_says(s, false, "state or activations %u", i);
    }
    return smoke_says(s, true, "%u places, %zu ways", n, (size_t)6);
}

/* ---- the timer ---- */

struct timer_args {
    uint64_t *times; /* (n) */
    uint32_t n;
};

static __global__ void
__launch_bounds__(BLOCK_THREADS, 1) read_timer(struct timer_args a)
{
    if (number_here() == 0)
        for (uint32_t i = 0; i < a.n; i++)
            a.times[i] = globaltimer();
}

static std::vector<uint64_t>
readings()
{
    const uint32_t n = 20000;
    uint64_t *to = on_device(std::vector<uint64_t>(n, 0));
    const struct timer_args a = {to, n};
    SUCCEEDS(launch(read_timer, 1, WARP, a, (cudaStream_t) nullptr));
    SUCCEEDS(cudaDeviceSynchronize());
    const std::vector<uint64_t> got = fetched(to, n);
    SUCCEEDS(cudaFree(to));
    return got;
}

unsigned
smoke_tick()
{
    const std::vector<uint64_t> t = readings();
    uint64_t least = UINT64_MAX;
    for (size_t i = 1; i < t.size(); i++)
        if (t[i] > t[i - 1] && t[i] - t[i - 1] < least)
            least = t[i] - t[i - 1];
    return least > UINT32_MAX ? UINT32_MAX : (unsigned)least;
}

bool
smoke_timer(struct smoke *s)
{
    begin(s);
    const std::vector<uint64_t> t = readings();
    for (size_t i = 1; i < t.size(); i++)
        if (t[i] < t[i - 1])
            return smoke_says(s, false, "%llu ns, then %llu ns", (unsigned long long)t[i - 1],
                              (unsigned long long)t[i]);
    if (t.back() == t[0])
        return smoke_says(s, false, "it stands still over %zu readings", t.size());
    return smoke_says(s, true, "%llu ns for %zu readings, steps of %u ns", (unsigned long long)(t.back() - t[0]),
                      t.size(), smoke_tick());
}
