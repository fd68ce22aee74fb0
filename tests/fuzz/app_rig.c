#include "tests/fuzz/app_rig.h"

#include <fcntl.h>
#include <pthread.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_read.h"
#include "base/file_replace.h"
#include "tests/fuzz/fuzz.h"
#include "traces/schema.h"
#include "traces/trace_folder.h"

static char folder[64];
static int keyboard = -1; /* the other end of the terminal that is standard input and output */

/* Reads and discards the app's output. */
static void *
look_away(void *user)
{
    char bytes[4096];
    (void)user;
    while (read(keyboard, bytes, sizeof bytes) > 0)
        ;
    return NULL;
}

void
app_rig_open(char root[4096])
{
    int screen;
    pthread_t thread;
    MUST(getcwd(root, 4096) != NULL);
    scratch_folder(folder, sizeof folder, "app");
    MUST(openpty(&keyboard, &screen, NULL, NULL, &(struct winsize){.ws_row = 24, .ws_col = 80}) == 0);
    MUST(dup2(screen, STDIN_FILENO) == STDIN_FILENO && dup2(screen, STDOUT_FILENO) == STDOUT_FILENO);
    close(screen);
    setenv("TERM", "xterm-256color", 1);
    setenv("HOME", folder, 1);
    setenv("COLORTERM", "truecolor", 1); /* the app then neither queries the terminal nor waits for a reply */
    MUST(pthread_create(&thread, NULL, look_away, NULL) == 0 && pthread_detach(thread) == 0);
    MUST(chdir(folder) == 0);
}

void
app_rig_type(const void *bytes, size_t n)
{
    MUST(write(keyboard, bytes, n < 4000 ? n : 4000) >= 0);
}

void
app_rig_tame(char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] == '/' || bytes[i] == '~' || bytes[i] == 0x1a)
            bytes[i] = '.';
}

void
app_rig_size(int rows, int cols)
{
    ioctl(keyboard, TIOCSWINSZ, &(struct winsize){.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols});
}

/* Copies one file of a trace. Leaves out later rounds, and renames run.json's closed_event, which would contradict
 * that. */
static void
put_file(const char *from, const char *to, const char *name, int rounds)
{
    char path[4400], *text;
    size_t n;
    struct err err = {0};
    snprintf(path, sizeof path, "%s/%s", from, name);
    if (access(path, F_OK) != 0)
        return; /* the trace has no lines for this table */
    MUST(file_text(path, 16u << 20, &text, &n, &err));
    char *word = strstr(text, "\"closed_event\"");
    if (word != NULL && strcmp(name, "run.json") == 0)
        word[1] = 'C';
    if (strcmp(name, trace_tables[TABLE_ROUNDS].file) == 0) {
        char *end = text;
        for (int line = 0; line <= rounds && (end = strchr(end, '\n')) != NULL; line++)
            end++;
        n = end != NULL ? (size_t)(end - text) : n;
    }
    snprintf(path, sizeof path, "%s/%s", to, name);
    MUST(file_replace_text(AT_FDCWD, path, 0600, text, n, &err));
    free(text);
}

void
app_rig_trace(const char *root, const char *name, int rounds)
{
    char from[4300], whole[80];
    struct err err = {0};
    snprintf(from, sizeof from, "%s/tests/screens/traces/%s", root, name);
    snprintf(whole, sizeof whole, "%s.long", name);
    MUST(mkdir(whole, 0700) == 0);
    put_file(from, whole, "run.json", 0);
    for (size_t i = 0; i < TABLES; i++)
        put_file(from, whole, trace_tables[i].file, rounds);
    MUST(trace_copy(whole, name, NULL, &err));
    scratch_remove(whole);
}
