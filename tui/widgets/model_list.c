#include "tui/widgets/model_list.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/printable.h"
#include "engine/model/memory.h"
#include "engine/model/model_places.h"

struct listed {
    char *name, *path;
    struct model_look look; /* valid once the thread has read it */
};

struct model_list {
    struct listed *at; /* (n) */
    size_t n, room;
    pthread_t thread;
    bool running;
    pthread_mutex_t lock; /* of the following fields and of `look` */
    size_t seen;          /* number of models whose `look` is valid */
    bool closing;
};

static bool
add(void *user, const char *name, const char *path)
{
    struct model_list *l = user;
    if (l->n == l->room) {
        const size_t room = 2 * l->room + 16;
        struct listed *grown = realloc(l->at, room * sizeof *grown);
        if (grown == NULL)
            return false;
        l->at = grown;
        l->room = room;
    }
    const size_t n = strlen(name), shown = 4 * n + 1;
    struct listed *new = &l->at[l->n];
    *new = (struct listed){.name = malloc(shown), .path = strdup(path)};
    l->n++;
    if (new->name == NULL || new->path == NULL)
        return false;
    printable_line(new->name, shown, name, n);
    return true;
}

static bool
closing(struct model_list *l)
{
    pthread_mutex_lock(&l->lock);
    const bool answer = l->closing;
    pthread_mutex_unlock(&l->lock);
    return answer;
}

static void *
look_at_all(void *list)
{
    struct model_list *l = list;
    for (size_t i = 0; i < l->n && !closing(l); i++) {
        struct model_look look;
        model_look(&look, l->at[i].path, memory_available());
        pthread_mutex_lock(&l->lock);
        l->at[i].look = look;
        l->seen = i + 1;
        pthread_mutex_unlock(&l->lock);
    }
    return NULL;
}

bool
model_list_open(struct model_list **out, const char *bundled, struct err *err)
{
    struct model_list *l = *out = calloc(1, sizeof *l);
    if (l == NULL)
        return err_set(err, ERR_WORK, "out of memory for the list of models");
    pthread_mutex_init(&l->lock, NULL);
    if (add(l, MODEL_BUNDLED, bundled))
        model_places_list(add, l, NULL);
    const struct listed *last = l->n > 0 ? &l->at[l->n - 1] : NULL;
    bool ok = (last != NULL && last->name != NULL && last->path != NULL) ||
              err_set(err, ERR_WORK, "out of memory for the list of models");
    if (ok) {
        l->running = pthread_create(&l->thread, NULL, look_at_all, l) == 0;
        ok = l->running ||
             err_set(err, ERR_WORK, "no thread to look at models; too little memory, or too many processes?");
    }
    if (!ok) {
        model_list_close(l);
        *out = NULL;
    }
    return ok;
}

void
model_list_close(struct model_list *l)
{
    if (l == NULL)
        return;
    pthread_mutex_lock(&l->lock);
    l->closing = true;
    pthread_mutex_unlock(&l->lock);
    if (l->running)
        pthread_join(l->thread, NULL);
    pthread_mutex_destroy(&l->lock);
    for (size_t i = 0; i < l->n; i++) {
        free(l->at[i].name);
        free(l->at[i].path);
    }
    free(l->at);
    free(l);
}

size_t
model_list_count(const struct model_list *l)
{
    return l->n;
}

const char *
model_list_name(const struct model_list *l, size_t i)
{
    return l->at[i].name;
}

const char *
model_list_path(const struct model_list *l, size_t i)
{
    return l->at[i].path;
}

bool
model_list_look(struct model_list *l, size_t i, struct model_look *look)
{
    pthread_mutex_lock(&l->lock);
    const bool seen = i < l->seen;
    if (seen)
        *look = l->at[i].look;
    pthread_mutex_unlock(&l->lock);
    return seen;
}

size_t
model_list_seen(struct model_list *l)
{
    pthread_mutex_lock(&l->lock);
    const size_t seen = l->seen;
    pthread_mutex_unlock(&l->lock);
    return seen;
}
