#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <unistd.h>

#include "base/file_replace.h"
#include "base/little_endian.h"

bool
use_tokenizer(const struct tokenizer *t, const char *text, size_t len)
{
    for (int special = 0; special < 2; special++) {
        const struct tokenize_options options = {.bos = true, .eos = true, .special = special != 0};
        token_t *ids;
        size_t n, n_back;
        char *back;
        struct err err = {0};
        if (!tokenizer_encode(t, text, len, options, &ids, &n, &err)) {
            MUST(err.kind != ERR_NONE && err.text[0] != '\0');
            return false;
        }
        for (size_t i = 0; i < n; i++)
            MUST(ids[i] >= 0 && (uint32_t)ids[i] < tokenizer_size(t));
        MUST(tokenizer_decode(t, ids, n, &back, &n_back, &err));
        free(back);
        free(ids);
    }
    return true;
}

static char scratch[64];

static int
remove_one(const char *path, const struct stat *about, int kind, struct FTW *ftw)
{
    (void)about, (void)kind, (void)ftw;
    return remove(path);
}

void
scratch_remove(const char *folder)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void
remove_scratch(void)
{
    scratch_remove(scratch);
}

void
scratch_folder(char *out, size_t size, const char *target)
{
    snprintf(scratch, sizeof scratch, "%s/fuzz-%s-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", target);
    MUST(mkdtemp(scratch) != NULL && atexit(remove_scratch) == 0);
    snprintf(out, size, "%s", scratch);
}

void
scratch_put(const char *path, const void *bytes, size_t n)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    MUST(fd >= 0 && (n == 0 || file_put(fd, bytes, n)));
    close(fd);
}

void
try_as_safetensors(const uint8_t *data, size_t size, size_t n_data, void (*use_file)(const unsigned char *, size_t))
{
    use_file(data, size);
    unsigned char *bytes = malloc(8 + size + n_data);
    MUST(bytes != NULL);
    put_little_endian(bytes, 8, size);
    if (size > 0)
        memcpy(bytes + 8, data, size);
    memset(bytes + 8 + size, 0x3c, n_data);
    use_file(bytes, 8 + size + n_data);
    free(bytes);
}
