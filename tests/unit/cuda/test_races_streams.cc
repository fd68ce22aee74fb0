/* Streams, copies and the host under the happens-before checker (tests/cuda/emulation/races/flow.h): programs that wait where one
 * has to, about which it must say nothing, and the same with a waiting left out, which it must find. */
#include "kernels/cuda/device/ptx.cuh"
#include "tests/rigs/emulation_rig.cuh"

enum { WORDS = 64 };

struct scene {
    cudaStream_t stream, other;
    cudaEvent_t event;
    uint32_t *device, *more, *pinned; /* (WORDS) */
};

static const cudaMemcpyKind TO = cudaMemcpyHostToDevice, BACK = cudaMemcpyDeviceToHost;
static const size_t ALL = WORDS * sizeof(uint32_t);

/* ---- kernels ---- */

struct words_args {
    uint32_t *to;
    const uint32_t *from;
};

static __global__ void
copy_words_over(struct words_args a)
{
    a.to[threadIdx.x] = a.from[threadIdx.x];
}

static __global__ void
write_words(struct words_args a)
{
    a.to[threadIdx.x] = threadIdx.x;
}

static __global__ void
look_at_word(struct words_args a)
{
    if (threadIdx.x == 0)
        a.to[0] = load_acquire(a.from);
}

static __global__ void
count_up(struct words_args a)
{
    atomicAdd(a.to, 1u);
}

static void
write(uint32_t *to, cudaStream_t stream)
{
    (void)launch(write_words, 1, WORDS, words_args{to, nullptr}, stream);
}

static void
read(const uint32_t *from, uint32_t *to, cudaStream_t stream)
{
    (void)launch(copy_words_over, 1, WORDS, words_args{to, from}, stream);
}

/* ---- the host ---- */

static void
fill(uint32_t *pinned, uint32_t with)
{
    for (unsigned i = 0; i < WORDS; i++)
        pinned[i] = with;
}

static uint32_t
add_up(const volatile uint32_t *pinned)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < WORDS; i++)
        sum += pinned[i];
    return sum;
}

static cudaError_t
nothing(void *)
{
    return cudaSuccess;
}

/* ---- programs: whole, or with a waiting left out ---- */

static void
a_buffer_is_filled_again(struct scene *s, bool whole)
{
    for (uint32_t turn = 0; turn < 3; turn++) {
        fill(s->pinned, turn);
        (void)cudaMemcpyAsync(s->device, s->pinned, ALL, TO, s->stream);
        if (whole || turn != 1)
            (void)cudaStreamSynchronize(s->stream);
    }
}

static void
two_halves_in_turn(struct scene *s, bool whole)
{
    cudaEvent_t empty[2] = {s->event, nullptr};
    (void)cudaEventCreate(&empty[1]);
    for (uint32_t turn = 0; turn < 6; turn++) {
        uint32_t *half = s->pinned + turn % 2 * (WORDS / 2);
        if (whole || turn != 4)
            (void)cudaEventSynchronize(empty[turn % 2]);
        for (uint32_t i = 0; i < WORDS / 2; i++)
            half[i] = turn;
        (void)cudaMemcpyAsync(s->device, half, ALL / 2, TO, s->stream);
        (void)cudaEventRecord(empty[turn % 2], s->stream);
    }
    (void)cudaStreamSynchronize(s->stream);
    (void)cudaEventDestroy(empty[1]);
}

static void
an_event_before_the_last_copy(struct scene *s, bool whole)
{
    fill(s->pinned, 1);
    (void)cudaMemcpyAsync(s->device, s->pinned, ALL / 2, TO, s->stream);
    if (!whole)
        (void)cudaEventRecord(s->event, s->stream);
    (void)cudaMemcpyAsync(s->device, s->pinned + WORDS / 2, ALL / 2, TO, s->stream);
    if (whole)
        (void)cudaEventRecord(s->event, s->stream);
    (void)cudaEventSynchronize(s->event);
    fill(s->pinned, 2);
}

static void
results_are_read(struct scene *s, bool whole)
{
    write(s->device, s->stream);
    (void)cudaMemcpyAsync(s->pinned, s->device, ALL, BACK, s->stream);
    (void)cudaEventRecord(s->event, s->stream);
    while (whole && cudaEventQuery(s->event) == cudaErrorNotReady) {}
    (void)add_up(s->pinned);
}

static void
results_of_a_stream_that_was_dropped(struct scene *s, bool whole)
{
    cudaStream_t own;
    (void)cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    write(s->device, own);
    (void)cudaMemcpyAsync(s->pinned, s->device, ALL, BACK, own);
    while (whole && cudaStreamQuery(own) == cudaErrorNotReady) {}
    (void)cudaStreamDestroy(own); /* which waits for nothing */
    (void)add_up(s->pinned);
}

static void
a_kernel_reads_what_another_stream_brings(struct scene *s, bool whole)
{
    fill(s->pinned, 7);
    (void)cudaMemcpyAsync(s->device, s->pinned, ALL, TO, s->stream);
    (void)cudaEventRecord(s->event, s->stream);
    if (whole)
        (void)cudaStreamWaitEvent(s->other, s->event, 0);
    read(s->device, s->more, s->other);
    read(s->device, s->more, s->other);
}

static void
a_kernel_reads_what_another_streams_wrote(struct scene *s, bool whole)
{
    write(s->device, s->stream);
    if (whole)
        (void)cudaStreamSynchronize(s->stream);
    read(s->device, s->more, s->other);
}

static void
a_kernel_writes_what_another_streams_reads(struct scene *s, bool whole)
{
    write(s->device, s->stream);
    (void)cudaDeviceSynchronize();
    read(s->device, s->more, s->stream);
    (void)cudaEventRecord(s->event, s->stream);
    while (whole && cudaEventQuery(s->event) == cudaErrorNotReady) {}
    write(s->device, s->other);
}

static void
memory_is_zeroed_on_the_default_stream(struct scene *s, bool whole)
{
    (void)cudaMemset(s->device, 0, ALL);
    if (whole)
        (void)cudaDeviceSynchronize();
    write(s->device, s->stream);
}

static void
tables_are_staged_on_the_default_stream(struct scene *s, bool whole)
{
    uint32_t table[WORDS];
    fill(table, 3);
    (void)cudaMemcpy(s->device, table, ALL, TO);
    fill(table, 4); /* the copy has them already */
    if (whole)
        (void)cudaStreamSynchronize(nullptr);
    read(s->device, s->more, s->stream);
}

static void
copies_from_pageable_memory_are_staged(struct scene *s, bool whole)
{
    uint32_t table[WORDS];
    fill(table, 3);
    (void)cudaMemcpyAsync(s->device, table, ALL, TO, s->stream);
    fill(table, 4);
    (void)cudaMemcpyAsync(s->pinned, s->device, ALL, BACK, s->stream);
    if (whole)
        (void)cudaStreamSynchronize(s->stream);
    const uint32_t sum = add_up(s->pinned);
    if (whole)
        assert_int_equal(sum, 3 * WORDS);
}

static void
a_word_says_something_to_a_kernel_that_runs(struct scene *s, bool whole)
{
    s->pinned[0] = 1;
    (void)launch(look_at_word, 1, WORDS, words_args{s->more, s->device}, s->stream);
    if (!whole) /* not as an atomic */
        read(s->device, s->more, s->stream);
    (void)cudaMemcpyAsync(s->device, s->pinned, sizeof *s->pinned, TO, s->other);
}

static void
a_word_comes_from_two_streams(struct scene *s, bool whole)
{
    s->pinned[0] = 1;
    (void)cudaMemcpyAsync(s->device, s->pinned, sizeof *s->pinned, TO, s->stream);
    if (whole)
        (void)cudaStreamSynchronize(s->stream);
    (void)cudaMemcpyAsync(s->device, s->pinned, sizeof *s->pinned, TO, s->other);
}

static void
kernels_of_two_streams_count(struct scene *s, bool whole)
{
    (void)cudaMemset(s->device, 0, ALL);
    (void)cudaDeviceSynchronize();
    (void)launch(count_up, 1, WORDS, words_args{s->device, nullptr}, s->stream);
    (void)launch(count_up, 1, WORDS, words_args{s->device, nullptr}, s->other);
    if (whole)
        (void)cudaDeviceSynchronize();
    read(s->device, s->more, s->stream);
}

static void
a_library_reads_what_a_kernel_writes(struct scene *s, bool whole)
{
    const struct emulated_range touched[] = {{s->device, ALL, false}, {s->more, ALL, true}};
    write(s->device, s->stream);
    (void)emulated_cuda_enqueue(whole ? s->stream : s->other, nothing, nullptr, touched, 2);
}

static void
memory_is_freed(struct scene *s, bool whole)
{
    uint32_t *own;
    (void)cudaMalloc(&own, ALL);
    write(own, s->stream);
    if (whole)
        (void)cudaStreamSynchronize(s->stream);
    (void)cudaFree(own);
}

struct program {
    void (*run)(struct scene *, bool whole);
    const char *said; /* when something is left out, among other things */
};

#define HOST_AT "the host at tests/unit/cuda/test_races_streams.cc:"
#define COPY_AT "a copy queued at tests/unit/cuda/test_races_streams.cc:"

static const struct program programs[] = {
    {a_buffer_is_filled_again, COPY_AT},
    {two_halves_in_turn, COPY_AT},
    {an_event_before_the_last_copy, COPY_AT},
    {results_are_read, HOST_AT},
    {results_of_a_stream_that_was_dropped, HOST_AT},
    {a_kernel_reads_what_another_stream_brings,
     "the kernel copy_words_over queued at tests/unit/cuda/test_races_streams.cc:"},
    {a_kernel_reads_what_another_streams_wrote, "the kernel write_words queued at"},
    {a_kernel_writes_what_another_streams_reads, "the kernel copy_words_over queued at"},
    {memory_is_zeroed_on_the_default_stream, "a memset queued at"},
    {tables_are_staged_on_the_default_stream, COPY_AT},
    {copies_from_pageable_memory_are_staged, HOST_AT},
    {a_word_says_something_to_a_kernel_that_runs, COPY_AT},
    {a_word_comes_from_two_streams, COPY_AT},
    {kernels_of_two_streams_count, "the kernel count_up queued at"},
    {a_library_reads_what_a_kernel_writes, "a library's kernel queued at"},
    {memory_is_freed, "the host, freeing it, at tests/unit/cuda/test_races_streams.cc:"},
};
#define PROGRAMS (sizeof programs / sizeof *programs)

/* What is said of it; "" if nothing. The device is lost in the other case, and replaced. */
static const char *
said_of(const struct program *p, bool whole)
{
    struct scene s = {};
    SUCCEEDS(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
    SUCCEEDS(cudaStreamCreateWithFlags(&s.other, cudaStreamNonBlocking));
    SUCCEEDS(cudaEventCreate(&s.event));
    SUCCEEDS(cudaMalloc(&s.device, ALL));
    SUCCEEDS(cudaMalloc(&s.more, ALL));
    SUCCEEDS(cudaHostAlloc((void **)&s.pinned, ALL, cudaHostAllocDefault));
    p->run(&s, whole);
    const bool lost = cudaDeviceSynchronize() != cudaSuccess;
    (void)cudaEventDestroy(s.event);
    (void)cudaStreamDestroy(s.stream);
    (void)cudaStreamDestroy(s.other);
    if (lost) {
        emulated_cuda_fail(0, EMULATED_LOST);
        return emulated_cuda_complaint();
    }
    SUCCEEDS(cudaFree(s.device));
    SUCCEEDS(cudaFree(s.more));
    SUCCEEDS(cudaFreeHost(s.pinned));
    return "";
}

static void
test_programs_that_wait_are_let_pass(void **)
{
    for (size_t i = 0; i < PROGRAMS; i++) {
        const char *said = said_of(&programs[i], true);
        if (said[0] != '\0')
            fail_msg("program %zu: %s", i, said);
    }
}

static void
test_a_waiting_that_is_not_there_is_found_with_both_places(void **)
{
    for (size_t i = 0; i < PROGRAMS; i++) {
        const char *said = said_of(&programs[i], false);
        if (strstr(said, "a race: ") == nullptr || strstr(said, programs[i].said) == nullptr ||
            strstr(said, ": nothing orders the two") == nullptr)
            fail_msg("program %zu: '%s' does not say '%s'", i, said, programs[i].said);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs_that_wait_are_let_pass),
        cmocka_unit_test(test_a_waiting_that_is_not_there_is_found_with_both_places),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
