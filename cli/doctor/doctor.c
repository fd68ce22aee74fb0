/* specscope doctor: prints findings about this machine and fixes. */
#include "cli/doctor/doctor.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/options/commands.h"
#include "cli/options/option_table.h"

static const char *const levels[] = {"ok", "note", "bad"};

void
doctor_add(struct findings *f, enum finding_level level, const char *topic, const char *format, ...)
{
    if (f->want == 0 && (errno == ENOMEM || errno == EMFILE || errno == ENFILE || errno == EIO))
        f->want = errno;
    errno = 0;
    if (f->n == FINDINGS_MOST)
        return;
    struct finding *one = &f->at[f->n++];
    one->level = level;
    one->topic = topic;
    char text[sizeof one->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printable_line(one->text, sizeof one->text, text, strlen(text));
}

static size_t
count(const struct findings *f, enum finding_level level)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += f->at[i].level == level;
    return n;
}

static void
print_text(const struct findings *f)
{
    for (size_t i = 0; i < f->n; i++)
        printf("%-4s  %-12s %s\n", levels[f->at[i].level], f->at[i].topic, f->at[i].text);
    printf("%zu ok, %zu to note, %zu bad\n", count(f, FINDING_OK), count(f, FINDING_NOTE), count(f, FINDING_BAD));
}

/* Adds a finding, divided into "what" and "fix". */
static bool
add_json(cJSON *list, const struct finding *f)
{
    char what[sizeof f->text];
    const char *fix = strstr(f->text, "; ");
    snprintf(what, sizeof what, "%.*s", (int)(fix != NULL ? (size_t)(fix - f->text) : strlen(f->text)), f->text);
    cJSON *one = cJSON_CreateObject();
    return cJSON_AddItemToArray(list, one) && cJSON_AddStringToObject(one, "level", levels[f->level]) != NULL &&
           cJSON_AddStringToObject(one, "topic", f->topic) != NULL &&
           cJSON_AddStringToObject(one, "what", what) != NULL &&
           cJSON_AddStringToObject(one, "fix", fix != NULL ? fix + 2 : "") != NULL;
}

static bool
print_json(const struct findings *f, struct err *err)
{
    cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "findings");
    bool ok = list != NULL && cJSON_AddStringToObject(root, "version", SPECSCOPE_VERSION) != NULL;
    for (size_t i = 0; ok && i < f->n; i++)
        ok = add_json(list, &f->at[i]);
    for (size_t l = 0; ok && l < sizeof levels / sizeof *levels; l++)
        ok = cJSON_AddNumberToObject(root, levels[l], (double)count(f, (enum finding_level)l)) != NULL;
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
    if (o->model != NULL) {
        if (!doctor_model(&f, o, err))
            return false;
        errno = 0;
    } else {
        doctor_terminal(&f);
        doctor_processor(&f);
        doctor_blas(&f);
        doctor_servers(&f);
        doctor_gpu(&f);
        doctor_models(&f);
        doctor_files(&f);
    }
    if (f.want != 0)
        doctor_add(&f, FINDING_NOTE, "all this",
                   "not everything could be checked: %s; end another program and try again", strerror(f.want));
    bool ok = true;
    if (o->as_json)
        ok = print_json(&f, err);
    else
        print_text(&f);
    *status = count(&f, FINDING_BAD) > 0 ? 1 : 0;
    return ok && stream_close(stdout, "stdout", err);
}
