/* Undo and redo of knob changes, compared with the changes that were posted. */
#include "tests/rigs/test.h"
#include "tui/app/follow.h"

struct posted {
    struct changes changes;
    uint64_t round;
};

static void
post_of(struct posted *p, uint32_t seq, const char *name, const char *before, const char *after)
{
    struct change t = {.seq = seq, .round = p->round};
    snprintf(t.name, sizeof t.name, "%s", name);
    snprintf(t.before, sizeof t.before, "%s", before);
    snprintf(t.after, sizeof t.after, "%s", after);
    changes_add(&p->changes, &t);
}

static void
post(struct posted *p, const char *name, const char *before, const char *after)
{
    post_of(p, 0, name, before, after);
}

static void
assert_change(const struct change *turn, const char *name, const char *before, const char *after)
{
    assert_non_null(turn);
    assert_string_equal(turn->name, name);
    assert_string_equal(turn->before, before);
    assert_string_equal(turn->after, after);
}

TEST(changes_are_undone_and_redone)
{
    static struct posted p;
    p = (struct posted){.round = 1};
    struct changes *t = &p.changes;
    assert_null(changes_back(t));
    assert_null(changes_forth(t));
    post(&p, "tau", "0.55", "0.6");
    post(&p, "policy", "specbound", "layerskip");
    post(&p, "gamma", "5", "3");
    assert_change(changes_back(t), "gamma", "5", "3");
    t->at--;
    t->at--;
    assert_change(changes_back(t), "tau", "0.55", "0.6");
    assert_change(changes_forth(t), "policy", "specbound", "layerskip");
    t->at++;
    assert_change(changes_forth(t), "gamma", "5", "3");
    t->at--;
    post(&p, "alpha", "0.2", "0.3"); /* a new change replaces the undone ones */
    assert_null(changes_forth(t));
    assert_change(changes_back(t), "alpha", "0.2", "0.3");
    t->at--;
    t->at--;
    assert_null(changes_back(t));
}

TEST(a_knob_turned_further_in_one_round_is_one_turn)
{
    static struct posted p;
    p = (struct posted){.round = 1};
    post(&p, "tau", "0.5", "0.5"); /* nothing changed */
    assert_null(changes_back(&p.changes));
    post(&p, "tau", "0.55", "0.6");
    post(&p, "tau", "0.6", "0.65");
    assert_change(changes_back(&p.changes), "tau", "0.55", "0.65");
    p.round++;
    post(&p, "tau", "0.65", "0.7"); /* a change in a later round is a separate one */
    assert_change(changes_back(&p.changes), "tau", "0.65", "0.7");
    post(&p, "tau", "0.7", "0.65"); /* restores the old value, which removes the change */
    assert_change(changes_back(&p.changes), "tau", "0.55", "0.65");
}

TEST(changes_of_a_group_have_its_number)
{
    static struct posted p;
    p = (struct posted){.round = 1};
    post(&p, "gamma", "4", "5");
    changes_group(&p.changes, true);
    post(&p, "gamma", "5", "3"); /* is not merged into the change before the group */
    post(&p, "policy", "specbound", "layerskip");
    changes_group(&p.changes, false);
    post(&p, "gamma", "3", "4");
    assert_int_equal(changes_back(&p.changes)->group, 0);
    p.changes.at--;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(changes_back(&p.changes)->group, 1);
        p.changes.at--;
    }
    assert_int_equal(changes_back(&p.changes)->group, 0);
}

TEST(a_full_list_of_changes_loses_the_oldest)
{
    static struct posted p;
    p = (struct posted){.round = 1};
    char before[16], after[16];
    for (int i = 0; i < CHANGES_MOST + 10; i++, p.round++) {
        snprintf(before, sizeof before, "%d", i);
        snprintf(after, sizeof after, "%d", i + 1);
        post(&p, "d_max", before, after);
    }
    for (int i = 0; i < CHANGES_MOST; i++)
        p.changes.at--;
    assert_null(changes_back(&p.changes));
    assert_change(changes_forth(&p.changes), "d_max", "10", "11");
}

TEST(changes_of_a_second_setting_are_removed_with_it)
{
    static struct posted p;
    p = (struct posted){.round = 0};
    post_of(&p, 0, "gamma", "3", "4");
    post_of(&p, 1, "gamma", "4", "5"); /* starts at the other sequence's new value, but is a separate change */
    assert_change(changes_back(&p.changes), "gamma", "4", "5");
    assert_int_equal(changes_back(&p.changes)->seq, 1);
    post_of(&p, 0, "tau", "0.5", "0.6");
    p.changes.at--;
    changes_forget_second(&p.changes);
    assert_change(changes_back(&p.changes), "gamma", "3", "4");
    assert_int_equal(changes_back(&p.changes)->seq, 0);            /* the first sequence's change is kept, */
    assert_change(changes_forth(&p.changes), "tau", "0.5", "0.6"); /* and so is the change that was undone */
}
