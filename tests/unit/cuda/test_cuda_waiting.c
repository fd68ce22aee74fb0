/* The host's message about blocks that waited for too long (kernels/cuda/device.c). */
#include "kernels/cuda/device.h"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/layout.h"
#include "tests/rigs/test.h"

/* Returns the message for a failed kernel with the notes of its blocks. */
static void
assert_says(uint32_t *notes, uint32_t blocks, cudaError_t code, const char *what, bool lost)
{
    struct backend b = {.device = 2, .name = "Some GPU", .blocks = blocks, .notes = notes};
    struct err err = {.kind = ERR_NONE};
    assert_false(cuda_did(&b, code, "running layers", &err));
    if (strstr(err.text, what) == NULL)
        fail_msg("'%s' does not say '%s'", err.text, what);
    assert_int_equal(b.lost, lost);
    assert_null(strchr(err.text, '\n'));
}

TEST(a_block_that_never_arrived_is_named_with_layer_and_step)
{
    uint32_t notes[4] = {grid_place(12, GATE_UP), grid_place(12, GATE_UP), 0, grid_place(12, GATE_UP)};
    assert_says(notes, 4, cudaErrorLaunchFailure,
                "GPU 2 (Some GPU) hung while running layers, after step gate·up of layer 12 (block 2 never arrived; "
                "3 of 4 waited), and accepts no more work",
                true);
    notes[0] = 0;
    assert_says(notes, 4, cudaErrorLaunchFailure, "(block 0 and others never arrived; 2 of 4 waited)", true);
    for (int i = 0; i < 4; i++)
        notes[i] = grid_place(1, START);
    assert_says(notes, 4, cudaErrorLaunchFailure,
                "after step start of layer 1 (all blocks arrived, but none noticed it; 4 of 4 waited)", true);
}

TEST(other_failures_do_not_mention_waiting)
{
    uint32_t none[2] = {0, 0}, some[2] = {0, grid_place(3, DOWN)};
    assert_says(none, 2, cudaErrorLaunchFailure, "failed while running layers", true);
    assert_says(NULL, 2, cudaErrorLaunchFailure, "failed while running layers", true);
    assert_says(some, 2, cudaErrorInvalidValue, "refused a request while running layers", false);
}
