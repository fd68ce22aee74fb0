/* specscope doctor: prints findings about this machine and fixes. */
#include "cli/doctor/doctor.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/base/commands.h"
#include "cli/base/files.h"
#include "cli/options/option_table.h"
#include "engine/base/utf8.h"

static const char *const levels[] = {"ok", "note", "bad"};

struct finding *
doctor_add(struct findings *f, enum finding_level level, const char *topic, const char *fix, const char *format, ...)
{
    if (f->want == 0 && (errno == ENOMEM || errno == EMFILE || errno == ENFILE || errno == EIO))
        f->want = errno;
    errno = 0;
    if (f->n == FINDINGS_MOST)
        return NULL;
    struct finding *one = &f->at[f->n++];
    *one = (struct finding){.level = level};
    snprintf(one->topic, sizeof one->topic, "%s", topic);
    snprintf(one->fix, sizeof one->fix, "%s", fix != NULL ? fix : "");
    char text[sizeof one->what];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printable_line(one->what, sizeof one->what, text, strlen(text));
    return one;
}

void
doctor_fix(struct finding *one, const char *format, ...)
{
    char text[sizeof one->fix];
    if (one == NULL)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printable_line(one->fix, sizeof one->fix, text, strlen(text));
}

void
doctor_add_message(struct findings *f, enum finding_level level, const char *topic, const char *message)
{
    const char *advice = strstr(message, "; ");
    const int length = (int)(advice != NULL ? (size_t)(advice - message) : strlen(message));
    struct finding *one = doctor_add(f, level, topic, NULL, "%.*s", length, message);
    if (advice != NULL)
        doctor_fix(one, "%s", advice + 2);
}

size_t
doctor_count(const struct findings *f, enum finding_level level)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += f->at[i].level == level;
    return n;
}

#define INDENT 19 /* columns before a finding */

/* Returns the columns for text that is broken at spaces; SIZE_MAX: no terminal, or hardly wider than the indent. */
static size_t
room_for_text(void)
{
    struct winsize size;
    const bool wide = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 3 * INDENT;
    return wide ? (size_t)size.ws_col - INDENT : SIZE_MAX;
}

static size_t
characters_in(const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

static void
print_words(const char *text, size_t room)
{
    for (size_t used = 0, len; *text != '\0'; text += len) {
        const size_t gap = strspn(text, " ");
        len = gap + strcspn(text + gap, " ");
        const size_t more = characters_in(text, len);
        if (used > 0 && used + more > room) {
            printf("\n%*s%.*s", INDENT, "", (int)(len - gap), text + gap);
            used = more - gap;
        } else {
            printf("%.*s", (int)len, text);
            used += more;
        }
    }
    putchar('\n');
}

static void
print_text(const struct findings *f)
{
    const size_t room = room_for_text();
    for (size_t i = 0; i < f->n; i++) {
        const struct finding *one = &f->at[i];
        char text[sizeof one->what + sizeof one->fix + 4];
        snprintf(text, sizeof text, "%s%s%s", one->what, one->fix[0] != '\0' ? "; " : "", one->fix);
        printf("%-4s  %-12s ", levels[one->level], one->topic);
        print_words(text, room);
    }
    printf("%zu ok, %zu to note, %zu bad\n", doctor_count(f, FINDING_OK), doctor_count(f, FINDING_NOTE),
           doctor_count(f, FINDING_BAD));
}

static bool
print_json(const struct findings *f, struct err *err)
{
    cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "findings");
    bool ok = list != NULL && cJSON_AddStringToObject(root, "version", SPECSCOPE_VERSION) != NULL;
    for (size_t i = 0; ok && i < f->n; i++) {
        cJSON *one = cJSON_CreateObject();
        ok = one != NULL && cJSON_AddItemToArray(list, one) &&
             cJSON_AddStringToObject(one, "level", levels[f->at[i].level]) != NULL &&
             cJSON_AddStringToObject(one, "topic", f->at[i].topic) != NULL &&
             cJSON_AddStringToObject(one, "what", f->at[i].what) != NULL &&
             cJSON_AddStringToObject(one, "fix", f->at[i].fix) != NULL;
    }
    for (size_t l = 0; ok && l < sizeof levels / sizeof *levels; l++)
        ok = cJSON_AddNumberToObject(root, levels[l], (double)doctor_count(f, (enum finding_level)l)) != NULL;
    char *text = ok ? cJSON_Print(root) : NULL;
    if (text != NULL)
        puts(text);
    cJSON_free(text);
    cJSON_Delete(root);
    return text != NULL || err_set(err, ERR_WORK, "out of memory writing JSON");
}

bool
doctor_main(struct options *o, int *status, struct err *err)
{
    struct findings f = {.n = 0};
    errno = 0;
    doctor_terminal(&f);
    doctor_processor(&f);
    doctor_blas(&f);
    doctor_gpu(&f);
    doctor_models(&f);
    doctor_files(&f);
    if (f.want != 0)
        doctor_add(&f, FINDING_NOTE, "all this", "end something else first, then ask again",
                   "not everything could be looked at: %s", strerror(f.want));
    bool ok = true;
    if (o->as_json)
        ok = print_json(&f, err);
    else
        print_text(&f);
    *status = doctor_count(&f, FINDING_BAD) > 0 ? 1 : 0;
    return ok && results_close(stdout, "-", err);
}
