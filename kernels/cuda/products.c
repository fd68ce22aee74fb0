/* Matrix products in host memory on the device, for training, with cuBLASLt (gemm.h). */
#include "kernels/cuda/requests.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cuda/gemm.h"

/* ---- the plug-in of cuBLASLt ---- */

/* Finds "…/specscope-cuda.so", the file that contains this code, and replaces "cuda" by "cublas". */
static bool
find_file(char *path, size_t n)
{
    static const char own[] = "cuda", other[] = "cublas";
    Dl_info here;
    if (dladdr((const void *)GEMM_SYMBOL, &here) == 0 || here.dli_fname == NULL)
        return false;
    const char *slash = strrchr(here.dli_fname, '/'), *name = slash != NULL ? slash : here.dli_fname;
    const char *at = strstr(name, own);
    if (at == NULL)
        return false;
    const int length =
        snprintf(path, n, "%.*s%s%s", (int)(at - here.dli_fname), here.dli_fname, other, at + sizeof own - 1);
    return (size_t)length < n && access(path, F_OK) == 0;
}

bool
gemm_load(const struct gemm_ops **out, struct err *err)
{
    char path[PATH_MAX];
    const struct gemm_ops *(*table)(void) = NULL;
    *out = NULL;
    if (!find_file(path, sizeof path))
        return err_set(err, ERR_WORK,
                       "there is no specscope-cublas.so beside the CUDA plug-in; `make cuda` builds it where the "
                       "toolkit has cuBLASLt");
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); /* same flags as for the CUDA plug-in */
    if (handle == NULL)
        return err_set(err, ERR_WORK, "%.120s can't be loaded (%.200s); is libcublasLt here?", path, dlerror());
    void *symbol = dlsym(handle, GEMM_SYMBOL);
    memcpy(&table, &symbol, sizeof table); /* ISO C has no cast from void * to a function pointer */
    dlclose(handle);
    const struct gemm_ops *ops = table != NULL ? table() : NULL;
    if (ops == NULL || ops->abi != GEMM_ABI)
        return err_set(err, ERR_WORK, "%.200s is of another specscope; build it again with `make cuda`", path);
    *out = ops;
    return true;
}

#define BLOCK ((size_t)64 << 20) /* approximate bytes of c on the device at a time: c is computed in blocks of rows */

struct device_matrix {
    float *values;
    size_t room; /* of them */
};

struct products {
    struct backend *backend;
    const struct gemm_ops *ops;
    struct gemm *gemm;
    cudaStream_t stream;
    struct device_matrix a, b, c;
    struct device_matrix kept; /* what was at kept_host */
    const float *kept_host;    /* NULL: none */
    pthread_mutex_t lock;      /* serialises the calls of several threads */
};

static const char doing[] = "multiplying matrices";

static bool
did(struct products *p, cudaError_t code, struct err *err)
{
    return cuda_did(p->backend, code, doing, err);
}

/* ---- opening ---- */

static void
products_close(struct products *p)
{
    (void)device_here(p->backend, NULL);
    if (p->stream != NULL)
        (void)cudaStreamDestroy(p->stream);
    (void)cudaFree(p->kept.values);
    (void)cudaFree(p->a.values);
    (void)cudaFree(p->b.values);
    (void)cudaFree(p->c.values);
    if (p->gemm != NULL)
        p->ops->close(p->gemm);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static bool
products_open(struct backend *b, struct products **out, struct err *err)
{
    struct products *p = calloc(1, sizeof *p);
    *out = NULL;
    if (p == NULL)
        return err_set(err, ERR_WORK, "not enough memory for products on GPU %d", b->device);
    p->backend = b;
    pthread_mutex_init(&p->lock, NULL);
    const bool ok = device_here(b, err) && gemm_load(&p->ops, err) && p->ops->open(&p->gemm, err) &&
                    did(p, cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking), err);
    if (ok)
        *out = p;
    else
        products_close(p);
    return ok;
}

/* ---- there and back ---- */

static bool
make_room(struct products *p, struct device_matrix *m, size_t values, struct err *err)
{
    void *more = NULL;
    if (values <= m->room)
        return true;
    (void)cudaFree(m->values);
    *m = (struct device_matrix){NULL, 0};
    if (!did(p, cudaMalloc(&more, values * sizeof *m->values), err))
        return false;
    *m = (struct device_matrix){more, values};
    return true;
}

/* Copies (rows, columns) between the host and the device, with rows `stride` apart. */
static bool
carry(struct products *p, float *to, size_t to_stride, const float *from, size_t from_stride, size_t rows,
      size_t columns, enum cudaMemcpyKind kind, struct err *err)
{
    return did(p,
               cudaMemcpy2DAsync(to, to_stride * sizeof *to, from, from_stride * sizeof *to, columns * sizeof *to, rows,
                                 kind, p->stream),
               err) &&
           did(p, cudaStreamSynchronize(p->stream), err);
}

static bool
products_keep(struct products *p, const float *host, size_t n, struct err *err)
{
    pthread_mutex_lock(&p->lock);
    const bool ok = device_here(p->backend, err) && make_room(p, &p->kept, n, err) &&
                    did(p, cudaMemcpy(p->kept.values, host, n * sizeof *host, cudaMemcpyHostToDevice), err) &&
                    did(p, cudaStreamSynchronize(NULL), err);
    p->kept_host = ok ? host : NULL;
    pthread_mutex_unlock(&p->lock);
    return ok;
}

/* ---- a product ---- */

/* Computes rows [first, first + n) of c; b is already on the device. */
static bool
multiply_rows(struct products *p, const struct host_product *h, const float *b, uint32_t first, uint32_t n,
              struct err *err)
{
    const size_t k = h->k, lines = h->transpose_a ? k : n, columns = h->transpose_a ? n : k;
    const float *a = h->transpose_a ? h->a + first : h->a + (size_t)first * h->stride_a;
    float *c = h->c + (size_t)first * h->n;
    const struct gemm_shape shape = {
        .m = h->n, .n = n, .k = h->k, .transpose_w = !h->transpose_b, .transpose_x = h->transpose_a};
    return make_room(p, &p->a, lines * columns, err) && make_room(p, &p->c, (size_t)n * h->n, err) &&
           carry(p, p->a.values, columns, a, h->stride_a, lines, columns, cudaMemcpyHostToDevice, err) &&
           (h->beta == 0 || carry(p, p->c.values, h->n, c, h->n, n, h->n, cudaMemcpyHostToDevice, err)) &&
           p->ops->multiply(p->gemm, &shape, b, p->a.values, p->c.values, h->beta, p->stream, err) &&
           carry(p, c, h->n, p->c.values, h->n, n, h->n, cudaMemcpyDeviceToHost, err);
}

static bool
multiply(struct products *p, const struct host_product *h, struct err *err)
{
    const size_t row = (size_t)h->n * sizeof(float), most = BLOCK / row > 0 ? BLOCK / row : 1;
    const uint32_t lines = h->transpose_b ? h->n : h->k, columns = h->transpose_b ? h->k : h->n;
    const bool kept = h->b == p->kept_host && h->stride_b == columns;
    if (!kept && (!make_room(p, &p->b, (size_t)lines * columns, err) ||
                  !carry(p, p->b.values, columns, h->b, h->stride_b, lines, columns, cudaMemcpyHostToDevice, err)))
        return false;
    const float *const b = kept ? p->kept.values : p->b.values;
    for (uint32_t first = 0, n; first < h->m; first += n) {
        n = h->m - first < most ? h->m - first : (uint32_t)most;
        if (!multiply_rows(p, h, b, first, n, err))
            return false;
    }
    return true;
}

static bool
products_multiply(struct products *p, const struct host_product *h, struct err *err)
{
    if (h->m == 0 || h->n == 0 || h->k == 0)
        return err_set(err, ERR_USAGE, "a product of nothing");
    pthread_mutex_lock(&p->lock);
    const bool ok = device_here(p->backend, err) && multiply(p, h, err);
    pthread_mutex_unlock(&p->lock);
    return ok;
}

const struct product_ops cuda_products = {
    .open = products_open,
    .close = products_close,
    .keep = products_keep,
    .multiply = products_multiply,
};
