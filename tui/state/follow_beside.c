/* A second saved run beside the one that is replayed. */
#include "tui/scope/scope.h"
#include "tui/state/follow.h"

/* The scope begins anew with what the replay says of itself. */
static bool
change_over(struct followed *f, struct replay *to, struct err *err)
{
    struct scope *scope = NULL;
    if (!scope_open(&scope, replay_info(to), err)) {
        scope_close(scope);
        return false;
    }
    scope_go_on(scope, f->scope);
    scope_close(f->scope);
    f->scope = scope;
    f->info = replay_info(to);
    f->now.replay = to;
    segments_close(f->ahead);
    f->ahead = NULL;
    f->ended = f->searching = f->found = false;
    f->break_round = 0;
    f->broken.kind = ERR_NONE;
    return true;
}

/* As far as the one before, as fast, and it goes on if that one did. */
static void
take_place(struct replay *to, const struct replay_status *before)
{
    const double duration = before->duration_us > 0 ? (double)before->duration_us : 1;
    replay_set_speed(to, before->speed);
    replay_goto_fraction(to, before->at_end ? 1 : (double)before->t_us / duration);
    replay_play(to, before->playing);
}

/* Of a batch the sequence of the same number, if it has one. */
static bool
open_both(struct replay **out, const struct saved_choice *first, const char *folder, struct err *err)
{
    const struct saved_choice same[2] = {*first, {folder, 0, first->seq}}, only[2] = {*first, {folder, 0, 0}};
    return replay_open_pair(out, same, err) || (first->seq != 0 && replay_open_pair(out, only, err));
}

bool
follow_beside(struct followed *f, const char *folder, struct err *err)
{
    const struct replay_status before = replay_status(f->now.replay);
    struct saved_choice first = f->first;
    struct replay *both;
    if (f->beside == NULL)
        first = f->given.both != NULL
                    ? f->given.both[0]
                    : (struct saved_choice){f->given.trace, scope_now(f->scope)->run, scope_focus(f->scope)};
    if (!open_both(&both, &first, folder, err))
        return false;
    if (!change_over(f, both, err)) {
        replay_close(both);
        return false;
    }
    if (f->beside != NULL)
        replay_close(f->beside);
    f->beside = both;
    f->first = first;
    (void)follow_foresee(f, NULL); /* out of memory: it goes without */
    take_place(both, &before);
    return true;
}

bool
follow_alone(struct followed *f, struct err *err)
{
    const struct replay_status before = replay_status(f->now.replay);
    if (f->beside == NULL)
        return err_set(err, ERR_USAGE,
                       f->given.both != NULL ? "both traces were given; specscope replay shows one"
                                             : "there is one trace; :versus TRACE sets another beside it");
    if (!change_over(f, f->given.replay, err))
        return false;
    replay_close(f->beside);
    f->beside = NULL;
    (void)follow_foresee(f, NULL);
    replay_goto(f->now.replay, 0);
    take_place(f->now.replay, &before);
    return true;
}
