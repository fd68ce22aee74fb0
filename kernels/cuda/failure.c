/* What the CUDA runtime says, in a sentence. */
#include <inttypes.h>

#include "kernels/cuda/device.h"
#include "kernels/cuda/device/steps.h"

/* Failures of one request, after which the device goes on. All others leave it unusable for this process (CUDA's
 * "sticky" errors), or may: then it is safer to believe so. */
static bool
is_passing(cudaError_t code)
{
    switch (code) {
    case cudaErrorMemoryAllocation:
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidDevice:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorCooperativeLaunchTooLarge:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorNotSupported: return true;
    default: return false;
    }
}

/* Where blocks said that they wait, if some did, and one that did not come. */
static bool
stood_still(const struct backend *b, char *where, size_t room)
{
    static const char *const steps[STEPS] = {
        [START] = "the beginning",
        [NORM_ATTENTION] = "the norm before attention",
        [QKV] = "q, k and v",
        [NORM_HEADS] = "the norm of heads",
        [ATTEND] = "attention",
        [OUT] = "attention's output",
        [POST_ATTENTION] = "the norm behind attention",
        [NORM_MLP] = "the norm before the MLP",
        [ROUTE] = "the choice of experts",
        [GATE_UP] = "gate and up",
        [DOWN] = "down",
        [POST_MLP] = "the norm behind the MLP",
        [CARRY] = "a layer that is skipped",
        [SHIFT_PROBE] = "an affine head",
        [NORM_PROBE] = "the norm before a probe",
        [PROBE] = "a probe",
    };
    uint32_t place = 0, missing = 0, first = 0;
    for (uint32_t i = 0; b->notes != NULL && i < b->blocks; i++) {
        const uint32_t note = ((const volatile uint32_t *)b->notes)[i];
        place = note > place ? note : place;
        if (note == 0 && missing++ == 0)
            first = i;
    }
    if (place == 0)
        return false;
    char who[64] = "all blocks came, and nobody saw it";
    if (missing > 0)
        snprintf(who, sizeof who, "block %" PRIu32 "%s never came", first, missing > 1 ? " and others" : "");
    snprintf(where, room, "behind %s of layer %" PRIu32 " (%s; %" PRIu32 " of %" PRIu32 " waited)",
             steps[place % STEPS], place / STEPS, who, b->blocks - missing, b->blocks);
    return true;
}

bool
cuda_did(struct backend *b, cudaError_t code, const char *doing, struct err *err)
{
    if (code == cudaSuccess)
        return true;
    (void)cudaGetLastError(); /* or the next launch would report this one again */
    if (b->lost) {            /* said once, said always */
        if (err != NULL)
            *err = b->why;
        return false;
    }
    const char *name = cudaGetErrorName(code);
    struct err why = {.kind = ERR_NONE};
    char where[160];
    switch (code) {
    case cudaErrorMemoryAllocation:
        err_set(&why, ERR_WORK, "GPU %d (%s) ran out of memory while %s; use a smaller --ctx, or --backend cpu",
                b->device, b->name, doing);
        break;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
        err_set(
            &why, ERR_WORK,
            "the CUDA plug-in has no code for GPU %d (%s) and this driver; rebuild it with `make cuda` here, or use "
            "--backend cpu",
            b->device, b->name);
        break;
    default:
        if (!is_passing(code) && stood_still(b, where, sizeof where))
            err_set(&why, ERR_WORK,
                    "GPU %d (%s) stood still while %s, %s, and takes no more work; start again, and see "
                    "nvidia-smi if it happens again",
                    b->device, b->name, doing, where);
        else if (is_passing(code))
            err_set(&why, ERR_WORK, "GPU %d (%s) refused a request while %s (%s); --backend cpu does without it",
                    b->device, b->name, doing, name);
        else
            err_set(&why, ERR_WORK,
                    "GPU %d (%s) failed while %s (%s) and takes no more work; start again, and see nvidia-smi if it "
                    "happens again",
                    b->device, b->name, doing, name);
    }
    if (!is_passing(code)) {
        b->lost = true;
        b->why = why;
    }
    if (err != NULL)
        *err = why;
    return false;
}

bool
device_here(struct backend *b, struct err *err)
{
    if (b->lost) {
        if (err != NULL)
            *err = b->why;
        return false;
    }
    return cuda_did(b, cudaSetDevice(b->device), "turning to it", err);
}
