#include "kernels/cuda/upload.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/device/launch.h"

#define HALF_ROOM ((size_t)16 << 20) /* about a millisecond of PCIe, much longer than the start of a copy */

bool
upload_open(struct upload *u, struct err *err)
{
    static const char doing[] = "preparing to load weights";
    struct backend *b = u->backend;
    u->room = u->total < HALF_ROOM ? u->total : HALF_ROOM;
    u->room = u->strip > u->room ? u->strip : u->room;
    return cuda_did(b, cudaStreamCreateWithFlags(&u->stream, cudaStreamNonBlocking), doing, err) &&
           cuda_did(b, cudaEventCreateWithFlags(&u->empty[0], cudaEventDisableTiming), doing, err) &&
           cuda_did(b, cudaEventCreateWithFlags(&u->empty[1], cudaEventDisableTiming), doing, err) &&
           cuda_did(b, cudaHostAlloc((void **)&u->host, 2 * u->room, cudaHostAllocDefault), doing, err);
}

void
upload_close(struct upload *u)
{
    if (u->stream != NULL) {
        (void)cudaStreamSynchronize(u->stream); /* copies may still read the buffers */
        (void)cudaStreamDestroy(u->stream);
    }
    for (int i = 0; i < 2; i++)
        if (u->empty[i] != NULL)
            (void)cudaEventDestroy(u->empty[i]);
    (void)cudaFreeHost(u->host);
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
send(struct upload *u, const struct packing *p, const struct dev_matrix *to, uint32_t first, uint32_t n,
     struct err *err)
{
    static const char doing[] = "copying weights to it";
    const size_t quant = pack_quant_bytes(p), scale = pack_scale_bytes(p);
    unsigned char *quants = (unsigned char *)(uintptr_t)to->quants, *scales = (unsigned char *)(uintptr_t)to->scales;
    unsigned char *const half = u->host + u->turn * u->room;
    const cudaEvent_t empty = u->empty[u->turn];
    struct backend *b = u->backend;
    u->turn = 1 - u->turn;
    if (!cuda_did(b, cudaEventSynchronize(empty), doing, err))
        return false;
    if (!pack_strips(p, first, n, b->threads, half, half + n * quant))
        return err_set(err, ERR_WORK, "not enough memory to pack the model's weights");
    if (!cuda_did(b, cudaMemcpyAsync(quants + first * quant, half, n * quant, cudaMemcpyHostToDevice, u->stream), doing,
                  err) ||
        (scale > 0 &&
         !cuda_did(
             b, cudaMemcpyAsync(scales + first * scale, half + n * quant, n * scale, cudaMemcpyHostToDevice, u->stream),
             doing, err)) ||
        !cuda_did(b, cudaEventRecord(empty, u->stream), doing, err))
        return false;
    u->done += n * (quant + scale);
    return report(u, err);
}

/* Generates a synthetic matrix, number e of a stack, on the device. */
static bool
make_synthetic(struct upload *u, const struct packing *p, uint32_t e, struct dev_matrix to, struct err *err)
{
    static const char doing[] = "making weights";
    const size_t quants = p->strips * pack_quant_bytes(p), scales = p->strips * pack_scale_bytes(p);
    struct synthetic_args a = {.first = p->parts[0]->rows, .to = to};
    a.to.quants = (const unsigned char *)to.quants + e * quants;
    a.to.scales = scales > 0 ? (const unsigned char *)to.scales + e * scales : NULL;
    for (uint32_t i = 0; i < p->n_parts; i++) {
        a.parts[i] = *pack_part(p, i, e)->synthetic;
        a.from[i] = pack_part(p, i, e)->type;
    }
    /* `source` may still be in transfer on the default stream. This also waits for the last matrix, so that progress is
     * reported while matrices are made. */
    if (!cuda_did(u->backend, cudaDeviceSynchronize(), doing, err) ||
        !cuda_did(u->backend, launch_synthetic(a, u->stream), doing, err))
        return false;
    u->done += quants + scales;
    return report(u, err);
}

static bool
take_matrix(struct upload *u, const struct packing *p, struct dev_matrix *out, struct err *err)
{
    const size_t strips = (size_t)p->n * p->strips, quant = pack_quant_bytes(p), scale = pack_scale_bytes(p);
    *out =
        (struct dev_matrix){.type = p->type, .rows = p->rows, .cols = p->cols, .strips = p->strips, .units = p->units};
    return (p->source == NULL ||
            upload_array(u, p->source, (size_t)p->strips * STRIP * sizeof *p->source, "weights", &out->source, err)) &&
           memory_take(u->memory, u->backend, strips * quant, false, "weights", (void **)&out->quants, err) &&
           (scale == 0 ||
            memory_take(u->memory, u->backend, strips * scale, false, "weights", (void **)&out->scales, err));
}

/* The device generates synthetic matrices, except those of four and six bits. */
static bool
fill_matrix(struct upload *u, const struct packing *p, const struct dev_matrix *to, struct err *err)
{
    const size_t fits = u->room / (pack_quant_bytes(p) + pack_scale_bytes(p)); /* at least one */
    const uint32_t strips = p->n * p->strips, most = fits < strips ? (uint32_t)fits : strips;
    bool synthetic = true, ok = true;
    for (uint32_t i = 0; i < p->n * p->n_parts; i++) {
        const struct tensor *t = pack_part(p, i % p->n_parts, i / p->n_parts);
        synthetic = synthetic && t->data == NULL && !has_pairs(t->type);
        if (t->type != p->type)
            *(p->type == WEIGHT_Q8_0 ? &u->to_bytes : &u->to_halves) |= 1u << t->type;
    }
    for (uint32_t e = 0; synthetic && ok && e < p->n; e++)
        ok = make_synthetic(u, p, e, *to, err);
    for (uint32_t first = 0; !synthetic && ok && first < strips; first += most)
        ok = send(u, p, to, first, strips - first < most ? strips - first : most, err);
    return ok;
}

bool
upload_matrix(struct upload *u, struct packing p, struct dev_matrix *out, struct err *err)
{
    bool ok = p.n_parts > 0 || err_set(err, ERR_WORK, "not enough memory to pack the model's weights");
    if (ok && u->counts) {
        const size_t strip = pack_quant_bytes(&p) + pack_scale_bytes(&p);
        u->total += (size_t)p.n * p.strips * strip;
        u->strip = strip > u->strip ? strip : u->strip;
    } else
        ok = ok && take_matrix(u, &p, out, err) && fill_matrix(u, &p, out, err);
    free(p.source);
    return ok;
}

bool
upload_array(struct upload *u, const void *from, size_t bytes, const char *what, void *out, struct err *err)
{
    void *to = NULL;
    char doing[96];
    snprintf(doing, sizeof doing, "copying %s to it", what);
    if (u->counts)
        u->arrays += bytes;
    else if (!memory_take(u->memory, u->backend, bytes, false, what, &to, err) ||
             (bytes > 0 && !cuda_did(u->backend, cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), doing, err)))
        return false;
    memcpy(out, &to, sizeof to); /* a pointer to any type */
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
