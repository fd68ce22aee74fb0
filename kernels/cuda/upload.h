/* Uploads weights to the device: the CPU packs them into one half of a pinned buffer while the other half is copied. */
#pragma once

#include "kernels/cuda/device.h"
#include "kernels/cuda/pack.h"

struct upload {
    struct backend *backend;
    struct memory *memory; /* owner of the device memory */
    bool counts;           /* counts bytes instead of uploading */
    size_t done, total;    /* bytes of matrices: uploaded; counted */
    size_t arrays;         /* bytes of arrays counted */
    size_t strip;          /* largest strip counted: minimum size of a buffer */
    progress_fn progress;
    void *user;
    uint32_t to_halves, to_bytes; /* bit t: a tensor of type t was converted to F16, Q8_0 */

    cudaStream_t stream;
    unsigned char *host;  /* (2, room), pinned */
    cudaEvent_t empty[2]; /* recorded after the copy out of a half */
    size_t room;
    uint32_t turn; /* the half to fill next */
};

/* Requires everything to be counted. upload_close() may be called after a failure too. */
bool upload_open(struct upload *, struct err *);
void upload_close(struct upload *);

/* Frees the packing. Fails with ERR_CANCELLED if progress returns false. */
bool upload_matrix(struct upload *, struct packing, struct dev_matrix *, struct err *);
/* Copies a small array of the host at once; *out receives the address. */
bool upload_array(struct upload *, const void *, size_t bytes, const char *what, void *out, struct err *);
bool upload_finish(struct upload *, struct err *);
