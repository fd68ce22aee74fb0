#include "traces/table_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array_grow.h"
#include "base/file_replace.h"
#include "base/utf8.h"
#include "traces/schema.h"

/* ---- writing ---- */

static bool
has(const struct table_out *t, size_t column)
{
    return t->moe || !t->table->columns[column].of_moe;
}

bool
table_out_open(struct table_out *t, int folder_fd, enum table_id id, bool moe, struct err *err)
{
    memset(t, 0, sizeof *t);
    t->table = &trace_tables[id];
    t->moe = moe;
    t->fd = openat(folder_fd, t->table->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (t->fd < 0)
        return err_set(err, ERR_WORK, "%s: %s", t->table->file, strerror(errno));
    if (!array_grow(&t->lines, &t->size, (size_t)64 << 10, 1))
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
    if (!array_grow(&t->lines, &t->size, t->used + room, 1) || !array_grow(&t->scratch, &t->scratch_size, longest, 1))
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

/* ---- reading ---- */

#define BLOCK ((size_t)64 << 10)

/* Only a newline ends a line; a carriage return before it is treated as a space. */
static int
is_newline(unsigned char c)
{
    return c == CSV_LF;
}

static int
is_blank(unsigned char c)
{
    return c == CSV_SPACE || c == CSV_TAB || c == CSV_CR;
}

bool
table_open(struct table_file *t, int folder_fd, const char *folder, enum table_id id, struct err *err)
{
    memset(t, 0, sizeof *t);
    t->table = &trace_tables[id];
    t->folder = folder;
    t->fd = openat(folder_fd, t->table->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not wait for a pipe's writer */
    struct stat st;
    if (t->fd < 0 && errno == ENOENT && !t->table->required)
        return true;
    if (t->fd < 0 || fstat(t->fd, &st) != 0)
        return err_set(err, ERR_WORK, "cannot open %s/%s: %s", folder, t->table->file, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_WORK, "%s/%s is not a file", folder, t->table->file);
    t->block = malloc(BLOCK);
    t->line_size = 4096;
    t->line = malloc(t->line_size);
    if (t->block == NULL || t->line == NULL || csv_init(&t->csv, CSV_STRICT) != 0)
        return err_set(err, ERR_WORK, "out of memory for reading %s/%s", folder, t->table->file);
    csv_set_term_func(&t->csv, is_newline);
    csv_set_space_func(&t->csv, is_blank);
    csv_set_blk_size(&t->csv, 4096);
    return table_rewind(t, err);
}

void
table_close(struct table_file *t)
{
    if (t->table == NULL)
        return;
    if (t->fd >= 0)
        close(t->fd);
    csv_free(&t->csv);
    free(t->block);
    free(t->line);
    memset(t, 0, sizeof *t);
}

bool
table_refuse(const struct table_file *t, const char *column, const char *what, struct err *err)
{
    return err_set(err, ERR_WORK, "%s/%s, line %llu%s%s: %s", t->folder, t->table->file,
                   (unsigned long long)t->line_number, column[0] != '\0' ? ", column " : "", column, what);
}

/* ---- lines ---- */

static void
add_field(void *bytes, size_t n, void *user)
{
    struct table_file *t = user;
    if (t->n_fields == TABLE_FIELDS) {
        t->overflow = true;
        return;
    }
    if (t->line_size - t->line_used <= n) {
        size_t size = 2 * t->line_size + n + 1;
        char *line = realloc(t->line, size);
        if (line == NULL) {
            t->no_memory = true;
            return;
        }
        t->line = line;
        t->line_size = size;
    }
    if (n > 0)
        memcpy(t->line + t->line_used, bytes, n);
    t->line[t->line_used + n] = '\0';
    t->line_used += n + 1;
    t->field[++t->n_fields] = t->line_used;
}

static void
end_line(int terminator, void *user)
{
    (void)terminator;
    struct table_file *t = user;
    t->line_whole = true;
}

static char *
field_text(const struct table_file *t, size_t i, size_t *n)
{
    *n = t->field[i + 1] - t->field[i] - 1;
    return t->line + t->field[i];
}

static bool
fill(struct table_file *t, struct err *err)
{
    ssize_t n;
    do
        n = read(t->fd, t->block, BLOCK);
    while (n < 0 && errno == EINTR);
    t->at = 0;
    t->end = n > 0 ? (size_t)n : 0;
    return n >= 0 || err_set(err, ERR_WORK, "cannot read %s/%s: %s", t->folder, t->table->file, strerror(errno));
}

static bool
is_blank_line(const unsigned char *line, size_t n)
{
    size_t i = 0;
    while (i < n && (is_blank(line[i]) || is_newline(line[i])))
        i++;
    return i == n;
}

/* Feeds the parser up to the end of the next line that is not blank. At the end of the file line_whole remains false,
 * also if the file ends within a line. If the file grows, the next call continues with it. */
static bool
read_line(struct table_file *t, struct err *err)
{
    if (!t->begun) {
        t->line_used = t->n_fields = t->line_bytes = 0;
        t->field[0] = 0;
        t->line_whole = t->overflow = t->no_memory = false;
        t->line_number = t->newlines + 1;
    }
    t->begun = true;
    while (!t->line_whole) {
        if (t->at == t->end && !fill(t, err))
            return false;
        if (t->end == 0)
            return true;
        unsigned char *from = t->block + t->at, *newline = memchr(from, '\n', t->end - t->at);
        size_t n = newline != NULL ? (size_t)(newline - from) + 1 : t->end - t->at;
        t->line_bytes += n;
        if (t->line_bytes > TABLE_LINE_MAX)
            return table_refuse(t, "", "is too long for a line of a trace; is a quote missing?", err);
        if (csv_parse(&t->csv, from, n, add_field, end_line, t) != n)
            return table_refuse(t, "", csv_error(&t->csv) == CSV_EPARSE ? "has a misplaced quote" : "out of memory",
                                err);
        t->at += n;
        t->newlines += newline != NULL;
        if (t->no_memory)
            return table_refuse(t, "", "out of memory", err);
        if (t->overflow)
            return table_refuse(t, "", "has too many fields", err);
        if (newline != NULL && !t->line_whole && t->line_bytes == n && is_blank_line(from, n)) {
            t->line_number = t->newlines + 1;
            t->line_bytes = 0;
        }
    }
    t->begun = false;
    return true;
}

/* ---- header ---- */

static bool
is_named(const struct column *c, const char *name)
{
    return strcmp(c->name, name) == 0 || (c->former != NULL && strcmp(c->former, name) == 0);
}

static bool
read_header(struct table_file *t, struct err *err)
{
    if (!read_line(t, err))
        return false;
    if (!t->line_whole)
        return table_refuse(t, "", "has no header", err);
    if (t->field[1] > 3 && memcmp(t->line, "\xef\xbb\xbf", 3) == 0)
        t->field[0] = 3; /* skip a byte order mark, which spreadsheets write */
    t->header_fields = t->n_fields;
    for (size_t c = 0, next = 0; c < t->table->n_columns; c++) { /* most files have the columns in our order */
        size_t i = next, tried = 0, n;
        for (; tried < t->n_fields && !is_named(&t->table->columns[c], field_text(t, i, &n)); tried++)
            i = i + 1 < t->n_fields ? i + 1 : 0;
        const bool missing = tried == t->n_fields;
        if (missing && !t->table->columns[c].added)
            return table_refuse(t, t->table->columns[c].name, "is missing from the header", err);
        t->field_of[c] = missing ? SIZE_MAX : i;
        next = !missing && i + 1 < t->n_fields ? i + 1 : 0;
    }
    return true;
}

bool
table_rewind(struct table_file *t, struct err *err)
{
    t->more = t->begun = t->waits = false;
    t->number = t->n_events = 0;
    if (t->fd < 0)
        return true;
    if (lseek(t->fd, 0, SEEK_SET) != 0)
        return err_set(err, ERR_WORK, "cannot read %s/%s: %s", t->folder, t->table->file, strerror(errno));
    csv_fini(&t->csv, NULL, NULL, NULL); /* discards an incomplete line */
    t->at = t->end = 0;
    t->newlines = 0;
    memset(&t->event, 0, sizeof t->event);
    return read_header(t, err);
}

/* ---- events ---- */

static bool
refuse_field(const struct table_file *t, const char *column, const char *field, size_t n, const char *why,
             struct err *err)
{
    char text[120], shown[41];
    n = n < sizeof shown - 1 ? n : sizeof shown - 1;
    memcpy(shown, field, n);
    shown[n] = '\0';
    make_printable(shown, n);
    snprintf(text, sizeof text, "'%s' %s", shown, why);
    return table_refuse(t, column, text, err);
}

static bool
read_event(struct table_file *t, const struct run_info *run, uint64_t last, struct err *err)
{
    struct event *e = &t->event;
    memset(e, 0, sizeof *e);
    e->type = t->table->type;
    for (size_t c = 0; c < t->table->n_columns; c++) {
        const struct column *column = &t->table->columns[c];
        const char *why;
        size_t n = 0;
        char empty[1] = "", *field = t->field_of[c] == SIZE_MAX ? empty : field_text(t, t->field_of[c], &n);
        if (!column_read(column, e, field, n, run, &why))
            return refuse_field(t, column->name, field, n, why, err);
        if (c > 0)
            continue;
        if (e->number <= t->number)
            return refuse_field(t, column->name, field, n, "is not above the line before it", err);
        t->waits = e->number > last; /* the event may not be returned yet, so its other fields are not parsed */
        if (t->waits)
            return true;
    }
    t->number = e->number;
    t->n_events++;
    return t->more = true;
}

bool
table_next(struct table_file *t, const struct run_info *run, uint64_t last, struct err *err)
{
    t->more = false;
    if (t->fd < 0)
        return true;
    if (!t->waits && !read_line(t, err))
        return false;
    if (!t->line_whole)
        return true;
    if (t->n_fields != t->header_fields) {
        char what[80];
        snprintf(what, sizeof what, "has %zu fields where the header has %zu", t->n_fields, t->header_fields);
        return table_refuse(t, "", what, err);
    }
    return read_event(t, run, last, err);
}
