#include "cli/train/train_partial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/file_replace.h"
#include "engine/base/file_text.h"
#include "engine/model/model_hash.h"

#define FORMAT "specscope: a training that goes on 1\n"

struct mark { /* in front of each record */
    uint64_t bytes, hash;
};

static bool
failed(const struct train_partial *p, const char *what, struct err *err)
{
    return err_set(err, ERR_WORK, "%s: cannot be %s: %s", p->path, what, strerror(errno));
}

/* Tells of all whole records in `bytes`; *end is where the last of them ends. */
static bool
read_records(struct train_partial *p, const unsigned char *bytes, size_t n, size_t *end, train_partial_fn told,
             void *user, struct err *err)
{
    for (struct mark mark; n - *end >= sizeof mark; *end += sizeof mark + (size_t)mark.bytes) {
        memcpy(&mark, bytes + *end, sizeof mark);
        const unsigned char *record = bytes + *end + sizeof mark;
        if (mark.bytes > n - *end - sizeof mark || hash_bytes(HASH_START, record, (size_t)mark.bytes) != mark.hash)
            return true;
        struct err why = {.kind = ERR_NONE};
        p->n_records++;
        if (!told(user, record, (size_t)mark.bytes, &why))
            return err_set(err, ERR_WORK, "%s: %s; remove the file to start anew", p->path,
                           why.kind != ERR_NONE ? why.text : "is damaged");
    }
    return true;
}

static bool
go_on(struct train_partial *p, const char *text, size_t n, const struct train_settings *s, train_partial_fn told,
      void *user, struct err *err)
{
    static const char format[] = FORMAT;
    const size_t head = sizeof format - 1;
    if (n < head || memcmp(text, format, head) != 0)
        return err_set(err, ERR_WORK, "%s: is none of this program's; remove it, or choose another --out", p->path);
    const size_t settings = strlen(text + head); /* a zero ends them */
    if (head + settings == n)
        return err_set(err, ERR_WORK, "%s: breaks off in its first lines; remove it to start anew", p->path);
    size_t end = head + settings + 1;
    if (!train_settings_same(s, p->path, text + head, err) ||
        !read_records(p, (const unsigned char *)text, n, &end, told, user, err))
        return false;
    return (ftruncate(p->fd, (off_t)end) == 0 && lseek(p->fd, 0, SEEK_END) >= 0) || failed(p, "gone on with", err);
}

static bool
begin(const struct train_partial *p, const struct train_settings *s, struct err *err)
{
    char text[sizeof FORMAT + sizeof s->text];
    const int n = snprintf(text, sizeof text, FORMAT "%s", s->text);
    return file_put(p->fd, text, (size_t)n + 1) || failed(p, "written", err);
}

bool
train_partial_open(struct train_partial *p, const char *out, const struct train_settings *s, train_partial_fn told,
                   void *user, struct err *err)
{
    *p = (struct train_partial){.fd = -1, .path = train_beside(out, ".partial")};
    if (p->path == NULL)
        return err_set(err, ERR_WORK, "out of memory opening %s", out);
    p->fd = open(p->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
    if (p->fd < 0)
        return failed(p, "opened", err);
    struct stat about;
    if (fstat(p->fd, &about) != 0 || !S_ISREG(about.st_mode))
        return err_set(err, ERR_WORK, "%s: is not a regular file; remove it, or choose another --out", p->path);
    if (flock(p->fd, LOCK_EX | LOCK_NB) != 0)
        return err_set(err, ERR_WORK, "%s: another training writes it; wait for it, or choose another --out", p->path);
    char *text;
    size_t n;
    if (!file_text_from(p->fd, p->path, SIZE_MAX / 2, &text, &n, err))
        return false;
    p->ours = n == 0 ? begin(p, s, err) : go_on(p, text, n, s, told, user, err);
    free(text);
    return p->ours;
}

bool
train_partial_add(struct train_partial *p, const struct slice *pieces, size_t n, struct err *err)
{
    struct mark mark = {.hash = HASH_START};
    for (size_t i = 0; i < n; i++) {
        mark.bytes += pieces[i].len;
        mark.hash = hash_bytes(mark.hash, pieces[i].data, pieces[i].len);
    }
    bool ok = file_put(p->fd, &mark, sizeof mark);
    for (size_t i = 0; i < n && ok; i++)
        ok = file_put(p->fd, pieces[i].data, pieces[i].len);
    p->n_records += ok;
    return ok || failed(p, "written", err);
}

void
train_partial_close(struct train_partial *p, bool done)
{
    if (p->ours && (done || p->n_records == 0))
        unlink(p->path);
    if (p->path != NULL && p->fd >= 0)
        close(p->fd);
    free(p->path);
    *p = (struct train_partial){.fd = -1};
}
