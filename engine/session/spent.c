#include "engine/session/spent.h"

#include "engine/base/clock.h"

void
spent_begin(struct spent *s, enum account account, struct loads now)
{
    *s = (struct spent){.account = account, .since_ns = clock_ns(), .since = now};
}

enum account
spent_turn(struct spent *s, enum account to, struct loads now)
{
    const enum account before = s->account;
    const uint64_t now_ns = clock_ns();
    s->ns[before] += now_ns - s->since_ns;
    s->loads[before].layers += now.layers - s->since.layers;
    s->loads[before].heads += now.heads - s->since.heads;
    s->account = to;
    s->since_ns = now_ns;
    s->since = now;
    return before;
}

void
spent_heads(struct spent *s, uint64_t ns)
{
    if (s->account != SPENT_ASIDE)
        s->heads_ns += ns;
}

static void
add(struct spent *to, const struct spent *what, bool less)
{
    const double sign = less ? -1 : 1;
    for (int i = 0; i < ACCOUNTS; i++) {
        to->ns[i] = less ? to->ns[i] - what->ns[i] : to->ns[i] + what->ns[i];
        to->loads[i].layers += sign * what->loads[i].layers;
        to->loads[i].heads += sign * what->loads[i].heads;
    }
    to->heads_ns = less ? to->heads_ns - what->heads_ns : to->heads_ns + what->heads_ns;
}

void
spent_own(struct spent *own, const struct spent *then, const struct spent *now)
{
    add(own, now, false);
    add(own, then, true);
}

void
spent_less(struct spent *s, const struct spent *own)
{
    add(s, own, true);
}

struct loads
spent_work(const struct spent *s)
{
    struct loads work = {0};
    for (int i = 0; i < ACCOUNTS; i++) {
        if (i == SPENT_ASIDE || i == SPENT_PROBE)
            continue;
        work.layers += s->loads[i].layers;
        work.heads += s->loads[i].heads;
    }
    return work;
}
