#include "cli/recording.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "traces/writer.h"

struct recording {
    struct trace_writer *writer;
    char folder[4096];
    bool temporary, asked; /* asked: the user named the folder */
    struct err trouble;    /* reason why there is no writer */
};

static bool
temporary_folder(char *out, size_t n, struct err *err)
{
    const char *base = getenv("TMPDIR");
    if (base == NULL || base[0] != '/')
        base = "/tmp";
    if ((size_t)snprintf(out, n, "%s/specscope-XXXXXX", base) >= n || mkdtemp(out) == NULL) {
        out[0] = '\0';
        return err_set(err, ERR_WORK, "%s: no temporary folder: %s; this run cannot be exported", base,
                       strerror(errno));
    }
    return true;
}

bool
recording_open(struct recording **out, const char *trace, const struct trace_bounds *bounds, struct session *s,
               struct err *err)
{
    struct recording *r = calloc(1, sizeof *r);
    if (r == NULL)
        return err_set(err, ERR_WORK, "out of memory");
    *out = r;
    r->asked = trace != NULL;
    if (r->asked) {
        snprintf(r->folder, sizeof r->folder, "%s", trace);
        if (trace_writer_open_within(&r->writer, trace, bounds, session_info(s), session_log(s), &r->trouble) ||
            r->trouble.kind != ERR_USAGE) /* an unwritable disk does not stop the run */
            return true;
        *err = r->trouble;
        free(r);
        *out = NULL;
        return false;
    }
    r->temporary = temporary_folder(r->folder, sizeof r->folder, &r->trouble);
    if (r->temporary)
        trace_writer_open_within(&r->writer, r->folder, bounds, session_info(s), session_log(s), &r->trouble);
    return true;
}

const char *
recording_trouble(void *recording)
{
    struct recording *r = recording;
    return r->writer == NULL ? r->trouble.text : trace_writer_trouble(r->writer);
}

bool
recording_export(void *recording, const char *dir, struct err *err)
{
    struct recording *r = recording;
    if (r->writer == NULL)
        return err_set(err, ERR_WORK, "nothing was recorded: %s", r->trouble.text);
    return trace_writer_copy(r->writer, dir, err);
}

static void
delete_folder(const char *folder)
{
    DIR *d = opendir(folder);
    if (d == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(d)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(d), entry->d_name, 0);
    closedir(d);
    rmdir(folder);
}

bool
recording_close(struct recording *r, struct err *err)
{
    if (r == NULL)
        return true;
    bool ok = r->writer != NULL && trace_writer_close(r->writer, &r->trouble);
    if (r->temporary)
        delete_folder(r->folder);
    ok = ok || !r->asked; /* it was not to be kept */
    if (!ok)
        *err = r->trouble;
    free(r);
    return ok;
}
