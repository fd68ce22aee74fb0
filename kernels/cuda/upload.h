/* Weights on their way to the device: packed by the CPU into one half of a pinned buffer while the other half travels. */
#ifndef KERNELS_CUDA_UPLOAD_H
#define KERNELS_CUDA_UPLOAD_H

#include "kernels/cuda/device.h"
#include "kernels/cuda/pack.h"

struct upload {
    struct backend *backend;
    struct memory *memory; /* of the weights: what is taken stays there */
    size_t done, total;    /* bytes of matrices */
    size_t strip;          /* the largest of them all */
    progress_fn progress;
    void *user;
    uint32_t to_halves, to_bytes; /* bit t: a tensor of type t became F16, Q8_0 */

    cudaStream_t stream;
    struct upload_half {
        unsigned char *host; /* (room) */
        cudaEvent_t empty;   /* what it held has left it */
    } halves[2];
    size_t room;
    uint32_t turn;
};

struct upload_census {
    size_t bytes;         /* that the device will hold */
    size_t largest_strip; /* of any matrix: what a buffer must take */
};

/* n matrices that are packed so. */
void upload_count(struct upload_census *, const struct packing *, uint32_t n);

/* Given backend, memory, total, strip, progress and user. Closing is right after failures too. */
bool upload_open(struct upload *, struct err *);
void upload_close(struct upload *);

/* ERR_CANCELLED if progress returns false. */
bool upload_matrix(struct upload *, const struct packing *, struct dev_matrix *, struct err *);
/* A stack of n matrices that are packed alike (layout.h): room for them; then each. */
bool upload_stack(struct upload *, const struct packing *, uint32_t n, struct dev_matrix *, struct err *);
bool upload_stacked(struct upload *, const struct packing *, const struct dev_matrix *, uint32_t which, struct err *);
/* A small array of the host's, copied at once. */
bool upload_array(struct upload *, const void *, size_t bytes, const char *what, const void **out, struct err *);
bool upload_finish(struct upload *, struct err *);

#endif
