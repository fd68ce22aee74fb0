#include "engine/model/model_near.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/printable.h"

#define MOST_APART 3 /* letters; fewer in a short name */

/* How many letters have to be changed, put in or taken out, at most `most`. */
static size_t
apart(const char *a, const char *b, size_t most)
{
    enum { LONGEST = 96 };
    size_t row[LONGEST + 1];
    const size_t n = strlen(a), m = strlen(b);
    if (m > LONGEST || n > LONGEST || (n > m ? n - m : m - n) > most)
        return most + 1;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            const size_t above = row[j], swap = corner + (a[i - 1] != b[j - 1]);
            size_t best = above + 1 < row[j - 1] + 1 ? above + 1 : row[j - 1] + 1;
            row[j] = swap < best ? swap : best;
            corner = above;
        }
    }
    return row[m];
}

bool
model_near(const char *name, struct err *err)
{
    const char *slash = strrchr(name, '/'), *own = slash != NULL ? slash + 1 : name;
    const int stem = slash != NULL ? (int)(slash - name + 1) : 0;
    const size_t most = strlen(own) / 4 < MOST_APART ? strlen(own) / 4 : MOST_APART;
    char folder[PATH_MAX], best[NAME_MAX + 1] = "", shown[120];
    size_t least = most + 1;
    snprintf(folder, sizeof folder, "%.*s", stem > 0 ? stem : 2, stem > 0 ? name : "./");
    DIR *d = opendir(folder);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        const size_t n = e->d_name[0] == '.' ? least : apart(own, e->d_name, most);
        if (n < least) {
            least = n;
            snprintf(best, sizeof best, "%s", e->d_name);
        }
    }
    if (d != NULL)
        closedir(d);
    return least > most || err_set(err, ERR_WORK, "%.200s: there is no such file or folder; is %.*s%s meant?", name,
                                   stem, name, printable_line(shown, sizeof shown, best, strlen(best)));
}
