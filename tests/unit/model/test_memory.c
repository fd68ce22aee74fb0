/* The amount of memory, read from simulated /proc and /sys, and models that do not fit. */
#include <sys/stat.h>

#include "engine/model/files/gguf.h"
#include "engine/model/memory.h"
#include "engine/model/model_open.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/test.h"

static char root[] = "/tmp/specscope-memory-XXXXXX";

/* Writes a file below the root, and makes its folders. */
static void
put(const char *path, const char *text)
{
    char full[256];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = full + sizeof root; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int
fresh_root(void **state)
{
    (void)state;
    memcpy(root + sizeof root - 7, "XXXXXX", 6);
    return mkdtemp(root) == NULL;
}

static int
remove_root(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

TEST_WITH(available_memory_is_the_kernels_word, fresh_root, remove_root)
{
    assert_int_equal(memory_available_under(root), UINT64_MAX);
    put("/proc/meminfo", "MemTotal:       24000000 kB\nMemFree:        1000 kB\nMemAvailable:   2048 kB\n");
    assert_int_equal(memory_available_under(root), 2 << 20);
    put("/proc/meminfo", "MemTotal: x\nMemAvailable: y\n");
    assert_int_equal(memory_available_under(root), UINT64_MAX);
}

TEST_WITH(a_control_group_of_version_2_bounds_it, fresh_root, remove_root)
{
    put("/proc/meminfo", "MemAvailable:   2097152 kB\n");
    put("/proc/self/cgroup", "0::/user/app\n");
    put("/sys/fs/cgroup/user/app/memory.max", "max\n");
    put("/sys/fs/cgroup/user/app/memory.current", "5000\n");
    assert_int_equal(memory_available_under(root), (uint64_t)2 << 30);
    put("/sys/fs/cgroup/user/memory.max", "1000000\n"); /* the parent group */
    put("/sys/fs/cgroup/user/memory.current", "400000\n");
    assert_int_equal(memory_available_under(root), 600000);
    put("/sys/fs/cgroup/user/memory.stat", "anon 300000\ninactive_file 100000\n");
    assert_int_equal(memory_available_under(root), 700000);
    put("/sys/fs/cgroup/user/app/memory.max", "4000\n"); /* usage is already above the limit */
    assert_int_equal(memory_available_under(root), 0);
}

TEST_WITH(a_control_group_of_version_1_bounds_it, fresh_root, remove_root)
{
    put("/proc/meminfo", "MemAvailable:   2097152 kB\n");
    put("/proc/self/cgroup", "9:cpu,cpuacct:/\n4:memory:/docker/abc\n0::/\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "123\n");
    assert_int_equal(memory_available_under(root), (uint64_t)2 << 30);
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000\n"); /* in a container, this is the group's folder */
    put("/sys/fs/cgroup/memory/memory.stat", "total_inactive_file 23\n");
    assert_int_equal(memory_available_under(root), 1000000 - 100);
    put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "500\n");
    put("/sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "100\n");
    assert_int_equal(memory_available_under(root), 400);
}

TEST(this_machine_has_a_description)
{
    assert_greater(memory_available(), 1 << 20);
}

TEST(a_model_that_does_not_fit_is_refused_with_the_numbers)
{
    unsigned char *bytes;
    size_t len;
    struct gguf *file;
    struct model *m = NULL;
    struct err err = {0};
    const struct tinymodel options = {.attention = WEIGHT_F16};
    if (!tinymodel_build(&options, &bytes, &len, &err) || !gguf_parse(&file, "tiny.gguf", bytes, len, &err) ||
        !model_read(&m, file, &err))
        fail_msg("%s", err.text);
    const uint64_t weights = model_weight_bytes(m, false, false), kv = model_kv_bytes(m, 512, false);
    assert_int_equal(kv, 2 * 4 * 2 * 16 * 512 * 2);
    assert_int_equal(weights, m->parameters_of[WEIGHT_F32] * 4 + m->parameters_of[WEIGHT_F16] * 2);
    assert_ok(memory_fits(m, 512, false, false, weights + kv, 0, &err), err);
    assert_false(memory_fits(m, 512, false, false, weights + kv - 1, 0, &err));
    assert_contains(err.text, "tiny.gguf: needs ");
    assert_contains(err.text, " for its weights and 256.0 KiB for a context of 512, but ");
    assert_contains(err.text, " of memory are available; lower -c");
    assert_ok(memory_fits(m, 512, false, false, weights + kv + 4096, 4096, &err), err); /* together with other models */
    assert_false(memory_fits(m, 512, false, false, weights + kv + 4095, 4096, &err));
    assert_contains(err.text, " of memory are available, of which other models take 4.0 KiB; lower -c");
    assert_int_equal(memory_need(m, 512, false, false), weights + kv);
    assert_false(memory_fits(m, 1, false, false, weights / 2, 0, &err));
    assert_contains(err.text, "take a smaller or more quantised model");
    assert_false(memory_fits(m, 512, true, false, weights + kv, 0, &err));
    assert_contains(err.text, " for its weights in F32 and 512.0 KiB");
    assert_int_equal(model_weight_bytes(m, true, false), m->parameters * 4);
    assert_less(model_weight_bytes(m, false, true), weights); /* memory for the model's copy and the backend's */
    assert_greater(model_weight_bytes(m, false, true), m->parameters * 2);
    model_close(m);
    free(bytes);
}
