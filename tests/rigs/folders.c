

#include <ftw.h>
#include <sys/stat.h>

#include "tests/rigs/folders.h"
#include "tests/rigs/test.h"

void
make_temp_folder(char path[256])
{
    const char *tmp = getenv("TMPDIR");
    snprintf(path, 256, "%s/specscope-XXXXXX", tmp != NULL && tmp[0] != '\0' ? tmp : "/tmp");
    assert_non_null(mkdtemp(path));
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void
remove_folder(const char *path)
{
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

char *
read_text(const char *folder, const char *file)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    long size = ftell(f);
    assert_at_least(size, 0);
    rewind(f);
    char *bytes = malloc((size_t)size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)size, f), size);
    bytes[size] = '\0';
    fclose(f);
    return bytes;
}

void
write_text(const char *folder, const char *file, const char *bytes)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, strlen(bytes), f), strlen(bytes));
    assert_int_equal(fclose(f), 0);
}

int
folder_set_up(void **state)
{
    static char path[256];
    make_temp_folder(path);
    *state = path;
    return 0;
}

int
folder_tear_down(void **state)
{
    remove_folder(*state);
    return 0;
}
