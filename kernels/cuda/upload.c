#include "kernels/cuda/upload.h"

#include "kernels/cuda/device/launch.h"

#define HALF_ROOM ((size_t)16 << 20) /* about a millisecond of PCIe, much longer than the start of a copy */

void
upload_count(struct upload_census *c, const struct packing *p, uint32_t n)
{
    const size_t strip = pack_quant_bytes(p) + pack_scale_bytes(p);
    c->bytes += n * p->strips * strip;
    c->largest_strip = c->largest_strip > strip ? c->largest_strip : strip;
}

bool
upload_open(struct upload *u, struct err *err)
{
    static const char doing[] = "preparing to load weights";
    struct backend *b = u->backend;
    u->room = u->total < HALF_ROOM ? u->total : HALF_ROOM;
    u->room = u->strip > u->room ? u->strip : u->room;
    if (!cuda_did(b, cudaStreamCreateWithFlags(&u->stream, cudaStreamNonBlocking), doing, err))
        return false;
    for (int i = 0; i < 2; i++) {
        void *p = NULL;
        if (!cuda_did(b, cudaEventCreateWithFlags(&u->halves[i].empty, cudaEventDisableTiming), doing, err) ||
            !cuda_did(b, cudaHostAlloc(&p, u->room, cudaHostAllocDefault), doing, err))
            return false;
        u->halves[i].host = p;
    }
    return true;
}

void
upload_close(struct upload *u)
{
    if (u->stream != NULL) {
        (void)cudaStreamSynchronize(u->stream); /* copies may still read the buffers */
        (void)cudaStreamDestroy(u->stream);
    }
    for (int i = 0; i < 2; i++) {
        if (u->halves[i].empty != NULL)
            (void)cudaEventDestroy(u->halves[i].empty);
        if (u->halves[i].host != NULL)
            (void)cudaFreeHost(u->halves[i].host);
    }
}

static bool
report(struct upload *u, struct err *err)
{
    const double part = u->total > 0 ? (double)u->done / (double)u->total : 1;
    if (u->progress != NULL && !u->progress(u->user, part < 1 ? part : 1))
        return err_set(err, ERR_CANCELLED, "loading was cancelled");
    return true;
}

/* Packs strips [first, first + n) into the next buffer and copies it. */
static bool
send(struct upload *u, const struct packing *p, uint32_t first, uint32_t n, unsigned char *quants,
     unsigned char *scales, struct err *err)
{
    static const char doing[] = "copying weights to it";
    struct upload_half *half = &u->halves[u->turn++ % 2];
    struct backend *b = u->backend;
    const size_t quant = pack_quant_bytes(p), scale = pack_scale_bytes(p);
    size_t bytes = n * quant;
    if (p->type == WEIGHT_F32) { /* plain rows: the last strip may be shorter */
        const size_t all = (size_t)p->rows * p->cols * sizeof(float);
        bytes = bytes < all - first * quant ? bytes : all - first * quant;
    }
    if (!cuda_did(b, cudaEventSynchronize(half->empty), doing, err))
        return false;
    if (!pack_strips(p, first, n, b->threads, half->host, half->host + n * quant))
        return err_set(err, ERR_WORK, "not enough memory to pack the model's weights");
    if (!cuda_did(b, cudaMemcpyAsync(quants + first * quant, half->host, bytes, cudaMemcpyHostToDevice, u->stream),
                  doing, err) ||
        (scale > 0 && !cuda_did(b,
                                cudaMemcpyAsync(scales + first * scale, half->host + n * quant, n * scale,
                                                cudaMemcpyHostToDevice, u->stream),
                                doing, err)) ||
        !cuda_did(b, cudaEventRecord(half->empty, u->stream), doing, err))
        return false;
    u->done += n * (quant + scale);
    return report(u, err);
}

/* Whether the device generates it; the host packs four and six bits. */
static bool
is_planted(const struct packing *p)
{
    for (uint32_t i = 0; i < p->n_parts; i++)
        if (p->parts[i]->data != NULL || has_pairs(p->parts[i]->type))
            return false;
    return true;
}

/* Generates a synthetic matrix on the device. */
static bool
plant(struct upload *u, const struct packing *p, const struct dev_matrix *m, struct err *err)
{
    static const char doing[] = "making weights";
    struct synthetic_args a = {.first = p->parts[0]->rows, .to = *m};
    for (uint32_t i = 0; i < p->n_parts; i++) {
        a.parts[i] = *p->parts[i]->synthetic;
        a.from[i] = p->parts[i]->type;
    }
    /* `source` may still be in transfer on the default stream. Waits after each matrix so that the reported progress is
     * correct. */
    if (!cuda_did(u->backend, cudaDeviceSynchronize(), doing, err) ||
        !cuda_did(u->backend, launch_synthetic(a, u->stream), doing, err) ||
        !cuda_did(u->backend, cudaStreamSynchronize(u->stream), doing, err))
        return false;
    u->done += p->strips * (pack_quant_bytes(p) + pack_scale_bytes(p));
    return report(u, err);
}

bool
upload_stack(struct upload *u, const struct packing *p, uint32_t n, struct dev_matrix *out, struct err *err)
{
    const size_t quant = n * pack_quant_bytes(p), scale = n * pack_scale_bytes(p);
    const void *source = NULL;
    void *quants = NULL, *scales = NULL;
    if (p->source != NULL &&
        !upload_array(u, p->source, (size_t)p->strips * STRIP * sizeof *p->source, "weights", &source, err))
        return false;
    if (!memory_take(u->memory, u->backend, p->strips * quant, false, "weights", &quants, err) ||
        (scale > 0 && !memory_take(u->memory, u->backend, p->strips * scale, false, "weights", &scales, err)))
        return false;
    *out = (struct dev_matrix){.quants = quants,
                               .scales = scales,
                               .source = source,
                               .type = p->type,
                               .rows = p->rows,
                               .cols = p->cols,
                               .strips = p->strips,
                               .units = p->units};
    return true;
}

bool
upload_stacked(struct upload *u, const struct packing *p, const struct dev_matrix *m, uint32_t which, struct err *err)
{
    const size_t quant = pack_quant_bytes(p), scale = pack_scale_bytes(p);
    const size_t each = p->type == WEIGHT_F32 ? (size_t)p->rows * p->cols * sizeof(float) : p->strips * quant;
    unsigned char *const quants = (unsigned char *)(uintptr_t)m->quants + which * each;
    unsigned char *const scales = scale > 0 ? (unsigned char *)(uintptr_t)m->scales + which * p->strips * scale : NULL;
    for (uint32_t i = 0; i < p->n_parts; i++)
        if (p->parts[i]->type != p->type)
            *(p->type == WEIGHT_Q8_0 ? &u->to_bytes : &u->to_halves) |= 1u << p->parts[i]->type;
    if (is_planted(p)) {
        struct dev_matrix own = *m;
        own.quants = quants;
        own.scales = scales;
        return plant(u, p, &own, err);
    }
    const size_t fits = u->room / (quant + scale); /* at least one */
    const uint32_t most = fits < p->strips ? (uint32_t)fits : p->strips;
    for (uint32_t first = 0; first < p->strips; first += most)
        if (!send(u, p, first, p->strips - first < most ? p->strips - first : most, quants, scales, err))
            return false;
    return true;
}

bool
upload_matrix(struct upload *u, const struct packing *p, struct dev_matrix *out, struct err *err)
{
    return upload_stack(u, p, 1, out, err) && upload_stacked(u, p, out, 0, err);
}

bool
upload_array(struct upload *u, const void *from, size_t bytes, const char *what, const void **out, struct err *err)
{
    void *to = NULL;
    char doing[96];
    snprintf(doing, sizeof doing, "copying %s to it", what);
    if (!memory_take(u->memory, u->backend, bytes, false, what, &to, err) ||
        (bytes > 0 && !cuda_did(u->backend, cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), doing, err)))
        return false;
    *out = to;
    return true;
}

bool
upload_finish(struct upload *u, struct err *err)
{
    /* Waits for the whole device: small arrays are copied on the default stream, which is independent of the others. */
    if (!cuda_did(u->backend, cudaDeviceSynchronize(), "copying weights to it", err))
        return false;
    u->done = u->total;
    return report(u, err);
}
