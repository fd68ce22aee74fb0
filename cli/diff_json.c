/* What specscope diff has found, as JSON. */
#include "cli/diff.h"
#include "cli/generation/outcome.h"
#include "tui/figures/bench_table.h"

static const char *const verdicts[] = {"unknown", "no clear difference", "more", "less"};

static cJSON *
side_json(const struct diff_side *s)
{
    const struct record *r = &s->record;
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "trace", r->path);
    json_number(j, "run", r->run);
    json_number(j, "sequence", r->rounds[0].seq);
    cJSON_AddStringToObject(j, "policy", r->policy->name);
    cJSON *knobs = cJSON_AddObjectToObject(j, "knobs");
    for (uint32_t k = 0; k < r->policy->n_knobs; k++) {
        char text[32];
        knob_format(&r->policy->knobs[k], r->settings->knobs[k], text, sizeof text);
        cJSON_AddStringToObject(knobs, r->policy->knobs[k].name, text);
    }
    json_number(j, "turns", (double)r->n_turns);
    cJSON_AddStringToObject(j, "head", r->settings->trained ? "trained" : "lens");
    json_number(j, "temperature", (double)r->info->sampling.temperature);
    json_number(j, "top_k", r->info->sampling.top_k);
    json_number(j, "top_p", (double)r->info->sampling.top_p);
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)r->info->seed);
    cJSON_AddStringToObject(j, "seed", seed);
    cJSON_AddStringToObject(j, "model", r->info->model_name);
    cJSON_AddStringToObject(j, "backend", r->info->backend);
    cJSON_AddStringToObject(j, "isa", r->info->isa);
    cJSON_AddStringToObject(j, "machine", r->info->host);
    cJSON_AddStringToObject(j, "started", r->info->started);
    json_number(j, "tokens", (double)r->n_tokens);
    json_number(j, "rounds", (double)r->n_rounds);
    cJSON_AddBoolToObject(j, "cut", r->info->cut);
    return j;
}

static void
add_pair(cJSON *to, struct estimate a, struct estimate b, const char *verdict)
{
    const struct estimate q = estimate_quotient(b, a);
    json_number(to, "a", a.value);
    json_number(to, "a_se", a.se);
    json_number(to, "b", b.value);
    json_number(to, "b_se", b.se);
    json_number(to, "b_over_a", q.value);
    json_number(to, "b_over_a_se", q.se);
    cJSON_AddStringToObject(to, "b_against_a", verdict);
}

/* Speeds: a verdict only where both ran in turns. */
static void
add_speeds(cJSON *to, const struct diff *d, struct estimate a, struct estimate b, struct comparison c)
{
    add_pair(to, a, b, d->together ? verdicts[c.verdict] : "not compared");
    if (!d->together)
        return;
    json_number(to, "speed_ratio", c.value);
    json_number(to, "low", c.low);
    json_number(to, "high", c.high);
}

static cJSON *
texts_json(const struct diff *d)
{
    const struct record *r[] = {&d->a.record, &d->b.record};
    cJSON *j = cJSON_CreateObject();
    char words[2000];
    const bool apart = d->common == TEXTS_APART, part = texts_part(r[0], r[1], d->common);
    cJSON_AddBoolToObject(j, "comparable", !apart);
    json_number(j, "same_tokens", apart ? 0 : (double)d->common);
    if (!part) {
        cJSON_AddNullToObject(j, "part_at");
        return j;
    }
    json_number(j, "part_at", r[0]->tokens[d->common].pos);
    cJSON_AddStringToObject(j, "a", diff_words(r[0], d->common, SIZE_MAX, words, sizeof words));
    cJSON_AddStringToObject(j, "b", diff_words(r[1], d->common, SIZE_MAX, words, sizeof words));
    return j;
}

bool
diff_json(const struct diff *d, const char *path, struct err *err)
{
    cJSON *j = cJSON_CreateObject();
    cJSON_AddItemToObject(j, "a", side_json(&d->a));
    cJSON_AddItemToObject(j, "b", side_json(&d->b));
    cJSON *list = cJSON_AddArrayToObject(j, "measures");
    for (const struct named_measure *m = named_measures; m->name != NULL; m++) {
        cJSON *at = cJSON_CreateObject();
        cJSON_AddStringToObject(at, "name", m->name);
        const struct estimate a = measure_estimate(m, &d->a.measured, d->a.baseline),
                              b = measure_estimate(m, &d->b.measured, d->b.baseline);
        if (m->timed)
            add_speeds(at, d, a, b, d->speed);
        else
            add_pair(at, a, b, verdicts[estimate_difference(b, a).verdict]);
        cJSON_AddItemToArray(list, at);
    }
    cJSON_AddItemToObject(j, "texts", texts_json(d));
    list = cJSON_AddArrayToObject(j, "spans");
    for (size_t i = 0; i < d->n_spans; i++) {
        cJSON *at = cJSON_CreateObject();
        json_number(at, "from", (double)d->span[i].from);
        json_number(at, "to", (double)d->span[i].to);
        add_speeds(at, d, d->span[i].a, d->span[i].b, d->span[i].of);
        cJSON_AddItemToArray(list, at);
    }
    const bool ok = json_write(j, path, err);
    cJSON_Delete(j);
    return ok;
}
