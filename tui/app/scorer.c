#include "tui/app/scorer.h"

#include <stdlib.h>
#include <time.h>

static bool
take_report(void *user, const struct score_report *report)
{
    struct scorer *s = user;
    pthread_mutex_lock(&s->lock);
    s->latest = *report;
    pthread_mutex_unlock(&s->lock);
    return true;
}

static void *
score(void *user)
{
    struct scorer *s = user;
    struct live *live = s->live;
    struct texts texts = {0};
    struct score_report *report = NULL;
    const bool read = texts_read(&texts, s->path, &s->err), moved = read && live->ops->moving(live);
    bool ok = read && (!moved || live->ops->post(live, &(struct control){.kind = CONTROL_PAUSE}, &s->err));
    for (size_t i = 0; i < texts.n && read; i++) /* messages need the model's template */
        s->options.chat.on = s->options.chat.on || texts.at[i].messages;
    while (ok && !live->ops->resting(live) && !atomic_load(&s->cancel))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    ok = ok && scoring_run(s->engine, &texts, &s->options, &report, &s->err) && take_report(s, report);
    if (moved)
        live->ops->post(live, &(struct control){.kind = CONTROL_RESUME}, NULL);
    free(report);
    texts_free(&texts);
    atomic_store(&s->over, true);
    return NULL;
}

bool
scorer_begin(struct scorer *s, struct live *live, struct engine *engine, const struct scoring_options *options,
             struct err *err)
{
    memset(s, 0, sizeof *s); /* it is larger than a stack likes */
    s->live = live;
    s->engine = engine;
    s->options = *options;
    s->options.texts = s->path;
    s->options.cancel = &s->cancel;
    s->options.done = take_report;
    s->options.user = s;
    snprintf(s->path, sizeof s->path, "%s", options->texts);
    pthread_mutex_init(&s->lock, NULL);
    s->runs = pthread_create(&s->thread, NULL, score, s) == 0;
    return s->runs || err_set(err, ERR_WORK, "no thread could be started to score texts");
}

bool
scorer_look(struct scorer *s, struct err *err)
{
    const uint32_t before = s->shown.conversations;
    const bool over = s->runs && atomic_load(&s->over);
    if (!s->runs)
        return false;
    pthread_mutex_lock(&s->lock);
    s->shown = s->latest;
    pthread_mutex_unlock(&s->lock);
    if (over) {
        scorer_close(s);
        *err = s->err;
    }
    return over || s->shown.conversations != before;
}

void
scorer_close(struct scorer *s)
{
    atomic_store(&s->cancel, true);
    if (s->runs)
        pthread_join(s->thread, NULL);
    s->runs = false;
}
