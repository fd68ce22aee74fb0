#include "traces/growth.h"

#include <fcntl.h>

#include "engine/base/platform.h"
#include "traces/run_json.h"
#include "traces/schema.h"

static bool
facts(int folder_fd, const char *name, struct stat *about)
{
    return fstatat(folder_fd, name, about, 0) == 0;
}

static off_t
bytes_of_both(int folder_fd, const struct stat *rounds)
{
    struct stat controls;
    return rounds->st_size + (facts(folder_fd, trace_tables[TABLE_CONTROLS].file, &controls) ? controls.st_size : 0);
}

void
growth_begin(struct growth *g, int folder_fd, uint64_t now_us)
{
    struct stat rounds, run;
    *g = (struct growth){.still_since = now_us};
    if (facts(folder_fd, trace_tables[TABLE_ROUNDS].file, &rounds)) {
        g->device = rounds.st_dev;
        g->rounds = rounds.st_ino;
        g->bytes = bytes_of_both(folder_fd, &rounds);
    }
    if (facts(folder_fd, RUN_JSON, &run)) {
        g->run = run.st_ino;
        g->run_bytes = run.st_size;
        g->written = platform_modified(&run);
    }
}

bool
growth_look(struct growth *g, int folder_fd, const char *folder, uint64_t now_us, bool *changed, struct err *err)
{
    struct stat rounds, run;
    *changed = false;
    if (!facts(folder_fd, trace_tables[TABLE_ROUNDS].file, &rounds) || !facts(folder_fd, RUN_JSON, &run))
        return err_set(err, ERR_WORK, "%s: the trace that was followed was deleted", folder);
    if (rounds.st_dev != g->device || rounds.st_ino != g->rounds)
        return err_set(err, ERR_WORK,
                       "%s: another trace has been put in the place of the one that was followed; open it anew",
                       folder);
    const off_t bytes = bytes_of_both(folder_fd, &rounds);
    if (bytes < g->bytes)
        return err_set(err, ERR_WORK, "%s: the trace that was followed was cut, perhaps by another run; open it anew",
                       folder);
    *changed = run.st_ino != g->run || run.st_size != g->run_bytes ||
               platform_modified(&run).tv_sec != g->written.tv_sec ||
               platform_modified(&run).tv_nsec != g->written.tv_nsec;
    if (bytes > g->bytes || *changed)
        g->still_since = now_us;
    g->bytes = bytes;
    g->run = run.st_ino;
    g->run_bytes = run.st_size;
    g->written = platform_modified(&run);
    return true;
}
