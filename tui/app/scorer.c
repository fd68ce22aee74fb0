#include "tui/app/scorer.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "policies/registry.h"
#include "traces/text_source.h"

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
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL); /* signals are for the main thread */
    const bool read = text_source_read(&texts, s->path, &s->err), moved = read && live->ops->moving(live);
    bool ok = read && (!moved || live->ops->post(live, &(struct control){.kind = CONTROL_PAUSE}, &s->err));
    for (size_t i = 0; i < texts.n && read; i++) /* messages need the model's template */
        s->options.chat.on = s->options.chat.on || texts.at[i].messages;
    while (ok && !live->ops->resting(live) && !atomic_load(&s->cancel))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    ok = ok && live->ops->resting(live) && scoring_run(s->engine, &texts, &s->options, &report, &s->err) &&
         take_report(s, report);
    if (moved)
        live->ops->post(live, &(struct control){.kind = CONTROL_RESUME}, NULL);
    free(report);
    texts_free(&texts);
    atomic_store(&s->over, true);
    return NULL;
}

bool
scorer_begin(struct scorer *s, struct live *live, const struct app_options *o, const char *path, struct err *err)
{
    memset(s, 0, sizeof *s); /* it is larger than a stack likes */
    s->live = live;
    s->engine = o->engine;
    s->options = (struct scoring_options){policy_registry,  .chat = *o->chat,     .ctx = live->ops->info(live)->ctx,
                                          .texts = s->path, .cancel = &s->cancel, .done = take_report,
                                          .user = s};
    snprintf(s->path, sizeof s->path, "%s", path);
    s->shown.left_s = s->latest.left_s = NAN;
    pthread_mutex_init(&s->lock, NULL);
    s->runs = pthread_create(&s->thread, NULL, score, s) == 0;
    return s->runs || err_set(err, ERR_WORK, "no thread could be started to score texts");
}

bool
scorer_look(struct scorer *s, struct err *err)
{
    const uint32_t before = s->shown.conversations;
    if (!s->runs)
        return false;
    const bool over = atomic_load(&s->over);
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
