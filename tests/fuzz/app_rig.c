#include "tests/fuzz/app_rig.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/fuzz/must.h"

static char folder[64];
static int keyboard = -1; /* the other end of standard input and output */

static int
remove_one(const char *path, const struct stat *about, int kind, struct FTW *ftw)
{
    (void)about, (void)kind, (void)ftw;
    return remove(path);
}

static void
remove_folder_at_exit(void)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* What is drawn, and the app's questions, are read away. */
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
    snprintf(folder, sizeof folder, "%s/fuzz-app-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    MUST(getcwd(root, 4096) != NULL && mkdtemp(folder) != NULL);
    atexit(remove_folder_at_exit);
    MUST(openpty(&keyboard, &screen, NULL, NULL, &(struct winsize){.ws_row = 24, .ws_col = 80}) == 0);
    MUST(dup2(screen, STDIN_FILENO) == STDIN_FILENO && dup2(screen, STDOUT_FILENO) == STDOUT_FILENO);
    close(screen);
    setenv("TERM", "xterm-256color", 1);
    setenv("ESCDELAY", "1", 1);
    setenv("HOME", folder, 1);
    setenv("COLORTERM", "truecolor", 1); /* it is not asked, and so not waited for */
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
