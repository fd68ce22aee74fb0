#include "engine/events/policy_memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/file_replace.h"
#include "engine/base/file_text.h"

enum { PATH_BYTES = 1024, TEXT_MOST = 1 << 20 };

static bool
path_of(const struct policy_memory *m, const char *policy, char path[PATH_BYTES], struct err *err)
{
    return snprintf(path, PATH_BYTES, "%s/%s-%016" PRIx64 ".json", m->folder, policy, m->model_hash) < PATH_BYTES ||
           err_set(err, ERR_USAGE, "the folder of what policies learn has too long a name: %.200s", m->folder);
}

/* The policy's entry, read from its file when it is new; NULL: no place, or *err. */
static struct memory_text *
entry(struct policy_memory *m, const char *policy, struct err *err)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (strcmp(m->texts[i].policy, policy) == 0)
            return &m->texts[i];
    struct memory_text t = {.text = NULL};
    snprintf(t.policy, sizeof t.policy, "%s", policy);
    char path[PATH_BYTES];
    if (m->folder != NULL) {
        size_t n;
        if (!path_of(m, policy, path, err) ||
            (access(path, F_OK) == 0 && !file_text(path, TEXT_MOST, &t.text, &n, err)))
            return NULL;
    }
    if (m->n == MEMORY_POLICIES) {
        free(t.text);
        err_set(err, ERR_WORK, "more than %d policies learn", MEMORY_POLICIES);
        return NULL;
    }
    m->texts[m->n] = t;
    return &m->texts[m->n++];
}

bool
policy_memory_recall(struct policy_memory *m, struct policy *p, struct err *err)
{
    if (p->ops->load == NULL)
        return true;
    const struct memory_text *t = entry(m, p->ops->name, err);
    if (t == NULL)
        return false;
    struct err why = {0};
    if (t->text == NULL || p->ops->load(p, t->text, &why))
        return true;
    char path[PATH_BYTES] = "memory";
    if (m->folder != NULL)
        path_of(m, p->ops->name, path, NULL); /* it was read by that name */
    return err_set(err, ERR_WORK, "%s: %s; delete it to start afresh", path, why.text);
}

void
policy_memory_keep(struct policy_memory *m, const struct policy *p)
{
    char *text = p->ops->save != NULL ? p->ops->save(p) : NULL;
    struct memory_text *t = text != NULL ? entry(m, p->ops->name, NULL) : NULL;
    if (t == NULL || (t->text != NULL && strcmp(t->text, text) == 0)) {
        free(text);
        return;
    }
    free(t->text);
    t->text = text;
    t->fresh = true;
}

bool
policy_memory_close(struct policy_memory *m, struct err *err)
{
    bool ok = true;
    for (uint32_t i = 0; i < m->n; i++) {
        struct memory_text *t = &m->texts[i];
        char path[PATH_BYTES];
        if (ok && t->fresh && m->folder != NULL)
            ok = path_of(m, t->policy, path, err) &&
                 file_replace_text(AT_FDCWD, path, 0666, t->text, strlen(t->text), err);
        free(t->text);
    }
    m->n = 0;
    return ok;
}
