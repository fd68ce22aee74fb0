#include "policies/swift_search.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/file_replace.h"
#include "engine/base/file_text.h"

#include "kernels/rng.h"

#define KAPPA     2.5
#define FILE_MOST 65536

bool
search_open(struct swift_search *s, uint32_t layers, double ratio, uint64_t seed)
{
    uint32_t n = layers > 2 ? 2 * (layers - 2) : 0;
    *s = (struct swift_search){
        .switches = n, .skipped = (uint32_t)floor(n * ratio + 1e-9), .random = seed, .best_matchness = -1};
    s->best = calloc(n + 1, sizeof *s->best);
    s->proposed = calloc(n + 1, sizeof *s->proposed);
    s->point = calloc(n + 1, sizeof *s->point);
    return gp_open(&s->gp, n) && s->best != NULL && s->proposed != NULL && s->point != NULL;
}

void
search_close(struct swift_search *s)
{
    gp_close(&s->gp);
    free(s->best);
    free(s->proposed);
    free(s->point);
    *s = (struct swift_search){0};
}

/* Both sublayers of every second layer, then of the others, until enough are skipped. */
static void
initial_set(struct swift_search *s)
{
    uint32_t left = s->skipped, layers = s->switches / 2;
    memset(s->proposed, 0, s->switches * sizeof *s->proposed);
    for (uint32_t odd = 0; odd < 2; odd++)
        for (uint32_t i = 1 - odd; i < layers; i += 2)
            for (uint32_t half = 0; half < 2 && left > 0; half++, left--)
                s->proposed[2 * i + half] = true;
}

static void
random_set(struct swift_search *s)
{
    memset(s->proposed, 0, s->switches * sizeof *s->proposed);
    for (uint32_t i = s->switches - s->skipped; i < s->switches; i++) { /* Floyd's sampling without replacement */
        uint32_t k = (uint32_t)(splitmix64(&s->random) % (i + 1));
        s->proposed[s->proposed[k] ? i : k] = true;
    }
}

/* The largest values of a point become the skipped set; ties: the lower switch. */
static void
largest_set(struct swift_search *s)
{
    memset(s->proposed, 0, s->switches * sizeof *s->proposed);
    for (uint32_t left = s->skipped; left > 0; left--) {
        uint32_t at = s->switches;
        for (uint32_t i = 0; i < s->switches; i++)
            if (!s->proposed[i] && (at == s->switches || s->point[i] > s->point[at]))
                at = i;
        s->proposed[at] = true;
    }
}

void
search_propose(struct swift_search *s, uint32_t interval)
{
    if (s->steps == 0) {
        initial_set(s);
    } else if (interval > 0 && (s->steps + 1) % interval == 0 && gp_fit(&s->gp)) {
        gp_suggest(&s->gp, KAPPA, &s->random, s->point);
        largest_set(s);
    } else {
        random_set(s);
    }
}

bool
search_score(struct swift_search *s, double matchness, const struct search_limits *limits)
{
    for (uint32_t i = 0; i < s->switches; i++)
        s->point[i] = s->proposed[i] ? 1 : 0;
    gp_add(&s->gp, s->point, matchness);
    s->last_matchness = matchness;
    s->steps++;
    bool better = matchness > s->best_matchness;
    if (better) {
        memcpy(s->best, s->proposed, s->switches * sizeof *s->best);
        s->best_matchness = matchness;
        s->best_step = s->steps;
    }
    if (s->best_matchness >= limits->target)
        s->phase = SEARCH_FOUND;
    else if (s->steps >= limits->max_steps)
        s->phase = SEARCH_SPENT;
    else if (s->steps - s->best_step >= limits->patience)
        s->phase = SEARCH_STALE;
    return better;
}

/* ---- the state in a file ---- */

static bool
take_state(struct swift_search *s, const cJSON *j)
{
    const cJSON *set = cJSON_GetObjectItem(j, "skipped"), *matchness = cJSON_GetObjectItem(j, "matchness");
    const cJSON *steps = cJSON_GetObjectItem(j, "steps"), *switches = cJSON_GetObjectItem(j, "switches");
    if (!cJSON_IsArray(set) || !cJSON_IsNumber(matchness) || !cJSON_IsNumber(steps) || !cJSON_IsNumber(switches) ||
        switches->valuedouble != s->switches || cJSON_GetArraySize(set) != (int)s->skipped || steps->valuedouble < 1 ||
        steps->valuedouble > 1e9 || !(matchness->valuedouble >= 0 && matchness->valuedouble <= 1))
        return false;
    memset(s->proposed, 0, s->switches * sizeof *s->proposed);
    for (const cJSON *i = set->child; i != NULL; i = i->next) {
        if (!cJSON_IsNumber(i) || i->valueint < 0 || (uint32_t)i->valueint >= s->switches || s->proposed[i->valueint])
            return false;
        s->proposed[i->valueint] = true;
    }
    memcpy(s->best, s->proposed, s->switches * sizeof *s->best);
    s->best_matchness = s->last_matchness = matchness->valuedouble;
    s->steps = s->best_step = (uint32_t)steps->valuedouble;
    return true;
}

bool
search_load(struct swift_search *s, const char *path, struct err *err)
{
    *err = (struct err){0};
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return false;
    char *text;
    size_t n;
    if (!file_text(path, FILE_MOST, &text, &n, err))
        return false;
    cJSON *j = cJSON_ParseWithLength(text, n);
    free(text);
    if (!cJSON_IsObject(j)) {
        cJSON_Delete(j);
        return err_set(err, ERR_WORK, "%s: not a saved search; delete it to start afresh", path);
    }
    bool ok = take_state(s, j);
    cJSON_Delete(j);
    return ok;
}

bool
search_save(const struct swift_search *s, const char *path, struct err *err)
{
    cJSON *j = cJSON_CreateObject(), *set = cJSON_CreateArray();
    cJSON_AddNumberToObject(j, "switches", s->switches);
    cJSON_AddNumberToObject(j, "steps", s->steps);
    cJSON_AddNumberToObject(j, "matchness", s->best_matchness);
    for (uint32_t i = 0; i < s->switches; i++)
        if (s->best[i])
            cJSON_AddItemToArray(set, cJSON_CreateNumber(i));
    cJSON_AddItemToObject(j, "skipped", set);
    char *text = cJSON_Print(j);
    cJSON_Delete(j);
    const bool ok = text != NULL ? file_replace_text(AT_FDCWD, path, 0666, text, strlen(text), err)
                                 : err_set(err, ERR_WORK, "%s: out of memory", path);
    cJSON_free(text);
    return ok;
}
