#include "tui/app/forecasting.h"
#include "base/clock.h"
#include "policies/registry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICE_US   1000
#define LOOK_US    1000000 /* between newer records */
#define LOOK_BUSY  4000000 /* during decoding at full speed, and then a multiple of a landscape's time */
#define BUSY_SHARE 400
#define LOOK_IDLE  100000 /* and while nothing moves */

bool
forecasting_open(struct forecasting *f, const struct followed *run, struct err *err)
{
    f->effects = calloc(1, sizeof *f->effects);
    if (f->effects == NULL)
        return err_set(err, ERR_WORK, "out of memory for the ledger's effects");
    return layer_record_open(&f->record, run->info->layers, err);
}

void
forecasting_close(struct forecasting *f)
{
    layer_record_close(&f->record);
    free(f->effects);
    f->effects = NULL;
}

void
forecasting_grid(struct forecasting *f, uint32_t across, uint32_t up)
{
    f->grid = true;
    f->knob[0] = across;
    f->knob[1] = up;
    f->shown.grid = (struct landscape_grid){.open = true, .knob = {across, up}};
    f->working = false;
    f->next.policy[0] = '\0'; /* begin again */
}

void
forecasting_grid_close(struct forecasting *f)
{
    f->grid = f->shown.grid.open = f->next.grid.open = false;
}

void
forecasting_enable(struct forecasting *f, bool on)
{
    f->off = !on;
    f->shown = (struct landscape){0};
    f->working = f->surveying = f->grid = false;
    f->seen = false;
    f->version = 0;
    f->reason = (struct reason){.kind = REASON_NONE};
    f->reason_line.n = 0;
}

/* True if the shown or computed landscape has other knob values. */
static bool
outdated(const struct forecasting *f, const struct followed *run, const struct policy_info *policy)
{
    if (strcmp(f->next.policy, policy->name) != 0)
        return true;
    for (uint32_t i = 0; i < policy->n_knobs; i++)
        if (f->next.values[i] != scope_knob(run->scope, i))
            return true;
    return false;
}

static void
begin(struct forecasting *f, const struct followed *run, const struct policy_info *policy)
{
    if (strcmp(f->shown.policy, policy->name) != 0) { /* other knobs */
        f->grid = false;
        f->shown = (struct landscape){0};
    }
    f->next =
        (struct landscape){.seq = f->record.sequence, .grid = {.open = f->grid, .knob = {f->knob[0], f->knob[1]}}};
    memcpy(f->next.policy, policy->name, sizeof f->next.policy);
    for (uint32_t i = 0; i < policy->n_knobs; i++) {
        f->next.values[i] = scope_knob(run->scope, i);
        f->next.strip[i].n = f->next.strip[i].best = landscape_points(&policy->knobs[i], LANDSCAPE_POINTS);
    }
    for (int i = 0; i < 2 && f->grid; i++)
        f->next.grid.n[i] = landscape_points(&policy->knobs[f->knob[i]], LANDSCAPE_POINTS);
    if (strcmp(f->shown.policy, policy->name) == 0) /* until there are newer ones */
        memcpy(f->next.other, f->shown.other, sizeof f->next.other);
    f->at = 0;
    f->took_us = f->record_us;
    f->working = true;
}

/* Values are stored by their places: the trace's policy must be the one that this program has. */
static bool
supports(const struct policy_info *recorded, const struct run_info *info, char why[WHY_NO_FORECAST])
{
    const struct policy_ops *ops = policy_named(policy_registry, recorded->name);
    const struct model_info model = {
        .layers = info->layers, .width = info->width, .vocab = info->vocab, .rho = info->rho};
    struct policy p = {0};
    why[0] = '\0';
    if (ops == NULL || ops->what_if == NULL || ops->no_what_if != NULL) {
        const char *reason = ops != NULL ? ops->no_what_if : NULL;
        snprintf(why, WHY_NO_FORECAST, "what-if does not support %s%s%s", recorded->name, reason != NULL ? ": " : "",
                 reason != NULL ? reason : "");
        return false;
    }
    bool same = policy_open(&p, ops, &model, &info->sampling, NULL) &&
                (p.info.n_knobs == recorded->n_knobs ||
                 (ops->draft_vocab > 0 && ops->draft_vocab == recorded->n_knobs)); /* an older trace */
    for (uint32_t i = 0; same && i < recorded->n_knobs; i++)
        same = strcmp(p.info.knobs[i].name, recorded->knobs[i].name) == 0 &&
               p.info.knobs[i].kind == recorded->knobs[i].kind;
    policy_close(&p);
    if (!same)
        snprintf(why, WHY_NO_FORECAST, "the trace is of another version of this policy");
    return same;
}

/* Shows why there is no forecast; "": there may be one. Returns true if this changes the screen. */
static bool
show_why(struct forecasting *f, const char *why)
{
    if (f->shown.tokens == 0 && strcmp(f->shown.why, why) == 0)
        return false;
    f->shown = (struct landscape){0};
    snprintf(f->shown.why, sizeof f->shown.why, "%s", why);
    f->next.policy[0] = '\0'; /* begin again */
    f->working = false;
    return true;
}

static void
ask(struct forecasting *f, const struct followed *run, const double *values, struct forecast *out)
{
    const struct policy_ops *ops = policy_named(policy_registry, f->next.policy);
    if (ops == NULL || !forecast_make(ops, &f->record, values, run->info->rho, &f->cost, out))
        *out = forecast_none;
}

/* Forecasts another policy that runs here, with the knobs that are requested for it, or in a replay with those that the
 * run began with. */
static void
ask_policy(struct forecasting *f, const struct followed *run, uint32_t policy)
{
    const struct policy_info *p = &run->info->policies[policy];
    const struct policy_ops *ops = policy_named(policy_registry, p->name);
    const double *begin = run->info->start_values, /* NULL: unknown */
        *values = follow_live(run) ? run->requested.value[policy]
                  : begin != NULL  ? begin + (size_t)policy * POLICY_KNOBS
                                   : NULL;
    struct landscape_policy *out = &f->shown.other[policy];
    char why[WHY_NO_FORECAST];
    out->of = forecast_none;
    out->better = values != NULL && p->missing == 0 && strcmp(p->name, f->shown.policy) != 0 &&
                  !policy_is_baseline(p->name) && supports(p, run->info, why) &&
                  layer_record_lacks(&f->record, p->needs) == NULL &&
                  forecast_make(ops, &f->record, values, run->info->rho, &f->cost, &out->of) &&
                  forecast_better(&out->of, &f->shown.now);
}

/* Does step `at`: the current settings, then all points of the strips, then those of the grid. False: it is
 * complete. */
static bool
work(struct forecasting *f, const struct followed *run, const struct policy_info *policy)
{
    double values[POLICY_KNOBS];
    memcpy(values, f->next.values, sizeof values);
    uint32_t at = f->at++;
    if (at == 0) {
        ask(f, run, values, &f->next.now);
        return (f->next.tokens = f->next.now.tokens) > 0; /* else there is nothing to forecast */
    }
    at--;
    for (uint32_t i = 0; i < policy->n_knobs; i++) {
        struct landscape_strip *s = &f->next.strip[i];
        if (at >= s->n) {
            at -= s->n;
            continue;
        }
        struct forecast forecast;
        values[i] = landscape_value(&policy->knobs[i], s->n, at, values[i]);
        ask(f, run, values, &forecast);
        s->speedup[at] = forecast.speedup;
        if (forecast_better(&forecast, &f->next.now) && (s->best == s->n || forecast.speedup > s->speedup[s->best])) {
            s->best = at;
            s->best_modelled = forecast.modelled;
            s->best_se = (float)forecast_gain(&forecast, &f->next.now).se;
        }
        return true;
    }
    struct landscape_grid *g = &f->next.grid;
    if (!g->open || at >= g->n[0] * g->n[1])
        return false;
    const uint32_t x = at % g->n[0], y = at / g->n[0];
    const uint32_t point[2] = {x, y};
    for (int i = 0; i < 2; i++) {
        const uint32_t k = g->knob[i];
        values[k] = landscape_value(&policy->knobs[k], g->n[i], point[i], values[k]);
    }
    struct forecast at_point;
    ask(f, run, values, &at_point);
    g->cell[y][x] =
        (struct landscape_cell){at_point.speedup,    at_point.modelled, at_point.se,   at_point.tokens_per_round,
                                at_point.acceptance, at_point.layers,   at_point.heads};
    if (forecast_better(&at_point, &f->next.now) &&
        (!g->has_best || at_point.speedup > g->cell[g->best[1]][g->best[0]].speedup)) {
        g->has_best = true;
        memcpy(g->best, point, sizeof g->best);
    }
    return true;
}

/* ---- effects ---- */

static const struct policy_ops *
checked_ops(const struct policy_info *recorded, const struct run_info *info)
{
    char why[WHY_NO_FORECAST];
    return supports(recorded, info, why) ? policy_named(policy_registry, recorded->name) : NULL;
}

/* Has the record the text that the scope has at these positions? An older record may be of another run. */
static bool
same_text(const struct layer_record *part, const struct scope *s)
{
    for (uint32_t row = part->begin; row < part->n; row++) {
        const struct scope_column *c = scope_column(s, part->first + row + 1);
        const uint32_t back = part->n - 1 - row;
        if (c == NULL || back >= part->n_text || c->token != part->text[part->n_text - 1 - back])
            return false;
    }
    return true;
}

/* The rows of the record that are of the segment. False: there are too few, or none. */
static bool
part_of(const struct forecasting *f, const struct scope *s, uint32_t back, struct layer_record *part)
{
    const struct segment *at = segments_at(scope_now(s)->segments, back), *next = NULL;
    if (at->run != scope_now(s)->run || !segment_concerns(at, scope_focus(s)) || f->record.sequence != scope_focus(s))
        return false;
    while (back > 0 && (next = segments_at(scope_now(s)->segments, --back)) != NULL &&
           !segment_concerns(next, scope_focus(s)))
        next = NULL;
    const uint32_t to = next != NULL ? scope_round_position(s, next->first_round) : UINT32_MAX;
    return effects_part(&f->record, scope_round_position(s, at->first_round), to, part) && same_text(part, s);
}

static void
begin_effects(struct forecasting *f, const struct scope *s)
{
    const struct segment *newest = segments_at(scope_now(s)->segments, 0);
    f->comparing = newest != NULL;
    f->segment = newest != NULL ? newest->number : 0;
    f->text = (struct effect_text){0};
}

/* One forecast, of the newest segment's text or of an older one's of which the record has more than before. False: all
 * is done. */
static bool
work_on_effects(struct forecasting *f, const struct followed *run)
{
    const struct segments *all = scope_now(run->scope)->segments;
    const struct segment *newest = segments_at(all, 0);
    const uint32_t back = newest != NULL ? newest->number - f->segment : 0;
    const struct segment *s = newest != NULL && f->segment <= newest->number ? segments_at(all, back) : NULL;
    struct effect_text *known = &f->effects->text[f->segment % SEGMENTS];
    struct layer_record part;
    if (s == NULL || s->run != scope_now(run->scope)->run)
        return false;
    const bool has = part_of(f, run->scope, back, &part) &&
                     (back == 0 || known->number != s->number || known->n == 0 || part.n - part.begin > known->tokens);
    if (has && effects_forecast(&f->text, all, s, run->info, checked_ops, &part))
        return true;
    if (f->text.n > 0)
        *known = f->text;
    f->text = (struct effect_text){0};
    return f->segment-- > 0;
}

/* ---- the cost model ---- */

/* Sums up the rounds of the sequence in focus that begin at the positions from..to-1. */
static struct tally
rounds_of(const struct scope *s, uint32_t from, uint32_t to)
{
    struct tally sum = {0};
    const struct scope_round *r;
    for (uint32_t back = 0; (r = scope_round(s, back)) != NULL; back++)
        if (r->whole && scope_round_position(s, r->number) >= from && scope_round_position(s, r->number) < to) {
            const struct tally t = tally_of(&r->end);
            tally_add(&sum, &t);
        }
    return sum;
}

/* Corrects the costs by the newest segment's rounds since the last correction: simulates them, and compares the price
 * with their times. Needs as many tokens as an effect. */
static void
correct(struct forecasting *f, const struct followed *run, const struct policy_info *policy)
{
    const struct scope *s = run->scope;
    const uint32_t now = scope_now(s)->run;
    struct layer_record part;
    struct forecast own;
    double values[POLICY_KNOBS] = {0}, us[COST_PHASES];
    if (run->info->sequences > 1 || !part_of(f, s, 0, &part))
        return;
    const uint32_t after = f->corrected_run == now ? scope_round_position(s, f->corrected + 1) : 0;
    if (after > part.first + part.begin + 1 && !effects_part(&part, after, UINT32_MAX, &part))
        return;
    for (uint32_t i = 0; i < policy->n_knobs; i++)
        values[i] = scope_knob(s, i);
    const struct tally t = rounds_of(s, part.first + part.begin + 1, part.first + part.n + 1);
    if (t.emitted < EFFECT_TOKENS ||
        !forecast_make(policy_named(policy_registry, policy->name), &part, values, run->info->rho, &f->cost, &own) ||
        !own.in_time)
        return;
    for (int p = 0; p < COST_PHASES; p++)
        us[p] = (double)own.us[p] * (double)t.emitted;
    cost_correct(&f->cost, us, t.draft_us, t.heads_us, t.verify_us);
    f->corrected = scope_now(s)->round;
    f->corrected_run = now;
}

static void
correct_baseline(struct forecasting *f, const struct followed *run)
{
    const struct estimate speed = metrics_baseline(&scope_now(run->scope)->metrics);
    const double middle = f->record.first + (f->record.begin + f->record.n) / 2.0;
    if (isnan(speed.value) || (float)speed.value == f->baseline)
        return;
    f->baseline = (float)speed.value;
    cost_correct_autoregressive(&f->cost, run->info->layers, middle, 1e6 / speed.value);
}

/* Takes the scope's costs, or asks for them; then corrects them. */
static void
update_costs(struct forecasting *f, const struct followed *run, const struct policy_info *policy)
{
    const struct cost_model *measured = &scope_now(run->scope)->costs;
    struct err unused;
    if (!cost_known(measured)) {
        if (follow_live(run) && !f->costs_asked)
            f->costs_asked = run->live->ops->post(run->live, &(struct control){.kind = CONTROL_COSTS}, &unused);
        f->cost = (struct cost_model){0};
        return;
    }
    if (memcmp(measured->us, f->cost.us, sizeof measured->us) != 0) {
        f->cost = *measured;
        f->baseline = 0;
    }
    if (!f->seen)
        return;
    correct(f, run, policy);
    correct_baseline(f, run);
}

/* ---- why there is no gain ---- */

#define REASON_ROUNDS 8 /* least rounds of a measured reason */

/* Returns the rounds of the present setting: measured beside plain decoding, or simulated, or measured and compared
 * with the costs. False: there are none. */
static bool
rounds_now(const struct forecasting *f, const struct followed *run, struct reason_rounds *out)
{
    const struct scope *s = run->scope;
    const struct policy_info *policy = scope_policy(s);
    const struct segment *now = segments_at(scope_now(s)->segments, 0);
    const bool forecast = f->shown.tokens > 0 && strcmp(f->shown.policy, policy->name) == 0;
    if (now == NULL || now->run != scope_now(s)->run || scope_is_batch(s) || scope_now(s)->versus != NULL)
        return false;
    const struct tally *t = &now->total;
    const struct estimate measured = segment_speedup(now, run->info);
    const bool enough = t->rounds >= REASON_ROUNDS && t->emitted > 0;
    *out = (struct reason_rounds){.of = *t, .model = (policy->needs & NEEDS_DRAFTER) != 0, .speedup_se = measured.se};
    if (enough && !isnan(measured.value))
        out->plain_us = measured.value * (t->draft_us + t->verify_us) / (double)t->emitted;
    else if (forecast && f->shown.now.tokens > 0)
        *out = reason_simulated(&f->shown.now, policy, run->info->layers, run->info->rho);
    else if (enough && cost_known(&f->cost) && !(scope_now(s)->metrics.pace > 0))
        out->plain_us = cost_autoregressive(&f->cost, run->info->layers, scope_now(s)->committed);
    else
        return false;
    return true;
}

/* Plain decoding needs no reason, but the policy with the best forecast does. */
static void
explain_plain(struct forecasting *f, const struct followed *run)
{
    const struct landscape_policy *best = NULL;
    const struct run_info *info = run->info;
    uint32_t at = 0;
    struct remedies remedies = {.n = 0};
    for (uint32_t i = 0; i < info->n_policies; i++) {
        const struct landscape_policy *p = &f->shown.other[i];
        if (p->of.tokens == 0 || !(p->of.drafted > 0))
            continue;
        if (p->better)
            remedies_add_policy(&remedies, info->policies[i].name, (double)p->of.speedup);
        if (best == NULL || p->of.speedup > best->of.speedup) {
            best = p;
            at = i;
        }
    }
    if (best == NULL)
        return;
    const struct reason_rounds rounds = reason_simulated(&best->of, &info->policies[at], info->layers, info->rho);
    struct reason why = reason_find(&rounds, info->layers, info->rho, &f->cost, f->seen ? &f->record : NULL);
    why.kind = why.kind == REASON_NONE ? REASON_NOISE : why.kind; /* a gain that is not clear */
    reason_print(remedies.n > 0 ? NULL : &why, &remedies, info->policies[at].name, &f->reason_line);
}

static void
explain(struct forecasting *f, const struct followed *run)
{
    const struct policy_info *policy = scope_policy(run->scope);
    const struct landscape *l = &f->shown;
    const bool forecast = l->tokens > 0 && strcmp(l->policy, policy->name) == 0;
    struct remedies remedies = {.n = 0};
    struct reason_rounds rounds;
    f->reason_line.n = 0;
    f->reason = (struct reason){.kind = REASON_NONE};
    if (policy_is_baseline(policy->name)) {
        if (forecast)
            explain_plain(f, run);
        return;
    }
    if (!rounds_now(f, run, &rounds))
        return;
    const int set = policy_knob_index(policy, DRAFT_VOCAB);
    rounds.draft_vocab = set >= 0 && scope_knob(run->scope, (uint32_t)set) > 0;
    f->reason = reason_find(&rounds, run->info->layers, run->info->rho, &f->cost, f->seen ? &f->record : NULL);
    for (uint32_t i = 0; i < policy->n_knobs && forecast; i++) {
        const struct landscape_strip *s = &l->strip[i];
        const struct knob *k = &policy->knobs[i];
        if (s->best < s->n)
            remedies_add_knob(&remedies, k, landscape_value(k, s->n, s->best, l->values[i]),
                              (double)s->speedup[s->best]);
    }
    for (uint32_t i = 0; i < run->info->n_policies && forecast; i++)
        if (l->other[i].better && l->other[i].of.drafted > 0)
            remedies_add_policy(&remedies, run->info->policies[i].name, (double)l->other[i].of.speedup);
    if (f->reason.speedup < 1)
        remedies_add_policy(&remedies, POLICY_BASELINE, 1);
    reason_print(&f->reason, &remedies, NULL, &f->reason_line);
}

/* Forecasts the other policies on the record of the landscape that is shown, then explains. Returns true at its end. */
static bool
survey(struct forecasting *f, const struct followed *run, uint64_t until_us)
{
    const bool began = !f->working && f->surveying;
    const uint64_t from = clock_us();
    while (!f->working && f->surveying && clock_us() < until_us)
        if (f->survey_at < run->info->n_policies)
            ask_policy(f, run, f->survey_at++);
        else
            f->surveying = false;
    f->took_us += began ? clock_us() - from : 0;
    if (began && !f->surveying)
        explain(f, run);
    return began && !f->surveying;
}

static bool
due(struct forecasting *f, const struct followed *run, bool flat_out)
{
    const uint64_t now = clock_us(), busy = f->took_us * BUSY_SHARE > LOOK_BUSY ? f->took_us * BUSY_SHARE : LOOK_BUSY,
                   rest = flat_out             ? busy
                          : follow_moving(run) ? LOOK_US
                                               : LOOK_IDLE;
    if (scope_now(run->scope)->version == f->version || (f->looked_us != 0 && now - f->looked_us < rest) ||
        (!follow_live(run) && replay_status(run->source->replay).seeking))
        return false;
    f->looked_us = now;
    return true;
}

/* A new record, up to the latest token or the play head. */
static bool
make_record(struct forecasting *f, const struct followed *run, const struct policy_info *policy)
{
    const uint64_t start = clock_us();
    char why[WHY_NO_FORECAST];
    f->version = scope_now(run->scope)->version;
    if (supports(policy, scope_info(run->scope), why)) {
        const char *lacks = scope_sampling(run->scope, NULL)->temperature > 0 ? "what-if does not support sampling"
                                                                              : scope_record(run->scope, &f->record);
        if (lacks == NULL)
            lacks = layer_record_lacks(&f->record, policy->needs);
        snprintf(why, sizeof why, "%s", lacks != NULL ? lacks : "");
    }
    f->seen = why[0] == '\0';
    update_costs(f, run, policy);
    f->record_us = clock_us() - start;
    return f->seen || show_why(f, why);
}

bool
forecasting_step(struct forecasting *f, const struct followed *run, bool flat_out)
{
    if (f->off)
        return false;
    const struct policy_info *policy = scope_policy(run->scope);
    const bool looks = !f->working && !f->surveying && due(f, run, flat_out),
               newer = looks && make_record(f, run, policy);
    if (looks && !f->seen) {
        f->surveying = false;
        explain(f, run);
    }
    if (!f->seen)
        return looks;
    if (newer || outdated(f, run, policy))
        begin(f, run, policy);
    if (newer)
        begin_effects(f, run->scope);
    const uint64_t from = clock_us();
    const bool began = f->working;
    while (f->working && clock_us() < from + SLICE_US)
        f->working = work(f, run, policy);
    const bool done = began && !f->working, compared = f->comparing;
    f->took_us += began ? clock_us() - from : 0;
    if (done) {
        f->shown = f->next;
        f->surveying = true;
        f->survey_at = 0;
    }
    const bool surveyed = survey(f, run, from + SLICE_US);
    while (!f->working && f->comparing && clock_us() < from + SLICE_US)
        f->comparing = work_on_effects(f, run);
    return done || surveyed || (compared && !f->comparing);
}

bool
forecasting_complete(const struct forecasting *f, const struct followed *run)
{
    if (f->off)
        return true;
    return f->version == scope_now(run->scope)->version && !f->working && !f->surveying && !f->comparing &&
           (!f->seen || !outdated(f, run, scope_policy(run->scope)));
}

bool
forecasting_there(const struct forecasting *f, const struct followed *run)
{
    return f->shown.tokens > 0 && !f->working && !f->comparing && !outdated(f, run, scope_policy(run->scope));
}
