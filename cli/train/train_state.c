#include "cli/train/train_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/file_replace.h"
#include "engine/model/model_hash.h"

#define FORMAT   "specscope: where a training is 1\n"
#define LEAST_US 30000000 /* between looks it is put no more often than this, */
#define SHARE    50       /* and takes no more than a 50th of the time */

struct mark { /* in front of what the training put */
    uint64_t bytes, hash;
};

/* As many bytes as there are, n at most. */
static size_t
get(int fd, void *to, size_t n)
{
    size_t done = 0;
    while (done < n) {
        const ssize_t got = read(fd, (char *)to + done, n - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    return done;
}

static bool
damaged(const struct train_state *s, struct err *err)
{
    return err_set(err, ERR_WORK, "%s: is damaged; remove it to start anew", s->path);
}

/* Everything behind the mark has the sum that it should have. The file stands where that begins. */
static bool
check_sum(struct train_state *s, off_t from, struct err *err)
{
    struct mark mark;
    static const size_t size = (size_t)1 << 16;
    unsigned char *block = malloc(size);
    if (block == NULL)
        return err_set(err, ERR_WORK, "out of memory reading %s", s->path);
    bool ok = lseek(s->fd, from, SEEK_SET) == from && get(s->fd, &mark, sizeof mark) == sizeof mark;
    uint64_t hash = HASH_START, bytes = 0;
    for (size_t n; ok && (n = get(s->fd, block, size)) > 0; bytes += n)
        hash = hash_bytes(hash, block, n);
    free(block);
    ok = ok && bytes == mark.bytes && hash == mark.hash &&
         lseek(s->fd, from + (off_t)sizeof mark, SEEK_SET) == from + (off_t)sizeof mark;
    s->left = bytes;
    return ok || damaged(s, err);
}

static bool
read_head(struct train_state *s, struct err *err)
{
    static const char format[] = FORMAT;
    const size_t head = sizeof format - 1;
    char text[sizeof format + sizeof s->settings->text];
    const size_t n = get(s->fd, text, sizeof text);
    if (n < head || memcmp(text, format, head) != 0)
        return err_set(err, ERR_WORK, "%s: is none of this program's; remove it, or choose another --out", s->path);
    const char *end = memchr(text + head, '\0', n - head);
    if (end == NULL)
        return damaged(s, err);
    return train_settings_same(s->settings, s->path, text + head, err) && check_sum(s, end + 1 - text, err);
}

bool
train_state_open(struct train_state *s, const char *out, const struct train_settings *settings, struct err *err)
{
    *s = (struct train_state){.fd = -1, .settings = settings, .path = train_beside(out, ".state")};
    if (s->path == NULL)
        return err_set(err, ERR_WORK, "out of memory opening %s", out);
    struct stat about;
    s->fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (s->fd < 0)
        return errno == ENOENT || errno == ENOTDIR ||
               err_set(err, ERR_WORK, "%s: cannot be opened: %s", s->path, strerror(errno));
    if (fstat(s->fd, &about) != 0 || !S_ISREG(about.st_mode))
        return err_set(err, ERR_WORK, "%s: is not a regular file; remove it, or choose another --out", s->path);
    return read_head(s, err);
}

bool
train_state_there(const struct train_state *s)
{
    return s->fd >= 0;
}

bool
train_state_take(struct train_state *s, void *to, size_t n, struct err *err)
{
    if (n > s->left || get(s->fd, to, n) != n)
        return damaged(s, err);
    s->left -= n;
    return true;
}

bool
train_state_taken(struct train_state *s, struct err *err)
{
    return s->left == 0 || damaged(s, err);
}

static bool
put(const struct train_state *s, const struct mark *mark, const struct slice *pieces, size_t n, struct err *err)
{
    struct file_replace r;
    if (!file_replace_begin(&r, AT_FDCWD, s->path, 0666, err))
        return false;
    bool ok = file_replace_put(&r, FORMAT, sizeof FORMAT - 1, err) &&
              file_replace_put(&r, s->settings->text, s->settings->n + 1, err) &&
              file_replace_put(&r, mark, sizeof *mark, err);
    for (size_t i = 0; i < n && ok; i++)
        ok = file_replace_put(&r, pieces[i].data, pieces[i].len, err);
    return file_replace_end(&r, ok, err);
}

void
train_state_put(struct train_state *s, const struct slice *pieces, size_t n)
{
    const uint64_t began_us = clock_us();
    struct mark mark = {.hash = HASH_START};
    struct err why;
    if (s->due_us == UINT64_MAX)
        return;
    for (size_t i = 0; i < n; i++) {
        mark.bytes += pieces[i].len;
        mark.hash = hash_bytes(mark.hash, pieces[i].data, pieces[i].len);
    }
    if (put(s, &mark, pieces, n, &why)) {
        const uint64_t now_us = clock_us(), pause_us = (now_us - began_us) * SHARE;
        s->due_us = now_us + (pause_us > LEAST_US ? pause_us : LEAST_US);
        return;
    }
    unlink(s->path); /* an older one is behind the result */
    s->due_us = UINT64_MAX;
    fprintf(stderr, "specscope: %s; training goes on, but could not be gone on with\n", why.text);
}

bool
train_state_due(const struct train_state *s)
{
    return clock_us() >= s->due_us;
}

void
train_state_close(struct train_state *s, bool done)
{
    if (s->path == NULL)
        return;
    if (done)
        unlink(s->path);
    if (s->fd >= 0)
        close(s->fd);
    free(s->path);
    *s = (struct train_state){.fd = -1};
}
