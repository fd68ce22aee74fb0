/* Uploads weights to the device: the CPU packs them into one half of a pinned buffer while the other half is copied. */
#ifndef KERNELS_CUDA_UPLOAD_H
#define KERNELS_CUDA_UPLOAD_H

#include "kernels/cuda/device.h"
#include "kernels/cuda/pack.h"

struct upload {
    struct backend *backend;
    struct memory *memory; /* owner of the device memory */
    size_t done, total;    /* bytes of matrices */
    size_t strip;          /* largest strip of all matrices */
    progress_fn progress;
    void *user;
    uint32_t to_halves, to_bytes; /* bit t: a tensor of type t was converted to F16, Q8_0 */

    cudaStream_t stream;
    struct upload_half {
        unsigned char *host; /* (room) */
        cudaEvent_t empty;   /* recorded after the copy out of the buffer */
    } halves[2];
    size_t room;
    uint32_t turn;
};

struct upload_census {
    size_t bytes;         /* total on the device */
    size_t largest_strip; /* largest strip of any matrix: minimum size of a buffer */
};

/* Counts n matrices packed in this way. */
void upload_count(struct upload_census *, const struct packing *, uint32_t n);

/* Requires backend, memory, total, strip, progress and user to be set. upload_close() may be called after a failure
 * too. */
bool upload_open(struct upload *, struct err *);
void upload_close(struct upload *);

/* Fails with ERR_CANCELLED if progress returns false. */
bool upload_matrix(struct upload *, const struct packing *, struct dev_matrix *, struct err *);
/* A stack of n matrices that are packed alike (layout.h): reserves its memory; then uploads each. */
bool upload_stack(struct upload *, const struct packing *, uint32_t n, struct dev_matrix *, struct err *);
bool upload_stacked(struct upload *, const struct packing *, const struct dev_matrix *, uint32_t which, struct err *);
/* Copies a small array of the host at once. */
bool upload_array(struct upload *, const void *, size_t bytes, const char *what, const void **out, struct err *);
bool upload_finish(struct upload *, struct err *);

#endif
