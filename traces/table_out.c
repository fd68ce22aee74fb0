#include "traces/table_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/file_replace.h"

static bool
ensure(char **buffer, size_t *size, size_t need)
{
    if (need <= *size)
        return true;
    size_t more = 2 * *size > need ? 2 * *size : need;
    char *grown = realloc(*buffer, more);
    if (grown == NULL)
        return false;
    *buffer = grown;
    *size = more;
    return true;
}

static bool
has(const struct table_out *t, size_t column)
{
    return t->mixture || !t->table->columns[column].of_mixtures;
}

bool
table_out_open(struct table_out *t, int folder_fd, enum table_id id, bool mixture, struct err *err)
{
    memset(t, 0, sizeof *t);
    t->table = &trace_tables[id];
    t->mixture = mixture;
    t->fd = openat(folder_fd, t->table->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (t->fd < 0)
        return err_set(err, ERR_WORK, "%s: %s", t->table->file, strerror(errno));
    if (!ensure(&t->lines, &t->size, (size_t)64 << 10))
        return err_set(err, ERR_WORK, "%s: out of memory", t->table->file);
    for (size_t i = 0; i < t->table->n_columns; i++)
        if (has(t, i))
            t->used += (size_t)snprintf(t->lines + t->used, t->size - t->used, "%s%s", i == 0 ? "" : ",",
                                        t->table->columns[i].name);
    t->lines[t->used++] = '\n';
    return true;
}

void
table_out_close(struct table_out *t)
{
    if (t->table == NULL)
        return;
    if (t->fd >= 0)
        close(t->fd);
    free(t->lines);
    free(t->scratch);
    memset(t, 0, sizeof *t);
}

bool
table_out_line(struct table_out *t, const struct event *e, struct err *err)
{
    size_t room = 1, longest = 0;
    for (size_t i = 0; i < t->table->n_columns; i++) {
        size_t n = column_room(&t->table->columns[i], e);
        room += n + 1;
        longest = n > longest ? n : longest;
    }
    if (!ensure(&t->lines, &t->size, t->used + room) || !ensure(&t->scratch, &t->scratch_size, longest))
        return err_set(err, ERR_WORK, "%s: out of memory", t->table->file);
    for (size_t i = 0; i < t->table->n_columns; i++) {
        if (!has(t, i))
            continue;
        if (i > 0)
            t->lines[t->used++] = ',';
        t->used += column_write(&t->table->columns[i], e, t->lines + t->used, t->scratch);
    }
    t->lines[t->used++] = '\n';
    t->n_lines++;
    return true;
}

bool
table_out_write(struct table_out *t, struct err *err)
{
    if (t->used > 0 && !file_put(t->fd, t->lines, t->used))
        return err_set(err, ERR_WORK, "%s: %s", t->table->file, strerror(errno));
    t->used = 0;
    return true;
}

bool
table_out_deleted(const struct table_out *t)
{
    struct stat st;
    return fstat(t->fd, &st) == 0 && st.st_nlink == 0;
}
