/* The search's state as a text: {"version": 2, "switches", "steps", "best_step", "matchness", "last", "random" (64 bits
 * in hexadecimal), "skipped": the best set, "points": [{"set", "matchness"}, …], oldest first}. A set is a string of a
 * digit for each switch, 1 for skipped. Version 1 had no "version" and only the best set, its switches listed by
 * number. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "policies/swift_search.h"

static void
add_set(cJSON *to, const char *name, const bool *set, const double *point, uint32_t n)
{
    char *digits = calloc(n + 1, 1);
    for (uint32_t i = 0; i < n && digits != NULL; i++)
        digits[i] = (set != NULL ? set[i] : point[i] > 0.5) ? '1' : '0';
    if (digits != NULL)
        cJSON_AddStringToObject(to, name, digits);
    free(digits);
}

char *
search_save(const struct swift_search *s)
{
    char random[20];
    snprintf(random, sizeof random, "%016" PRIx64, s->random);
    cJSON *j = cJSON_CreateObject();
    cJSON_AddNumberToObject(j, "version", 2);
    cJSON_AddNumberToObject(j, "switches", s->switches);
    cJSON_AddNumberToObject(j, "steps", s->steps);
    cJSON_AddNumberToObject(j, "best_step", s->best_step);
    cJSON_AddNumberToObject(j, "matchness", s->best_matchness);
    cJSON_AddNumberToObject(j, "last", s->last_matchness);
    cJSON_AddStringToObject(j, "random", random);
    add_set(j, "skipped", s->best, NULL, s->switches);
    cJSON *points = cJSON_AddArrayToObject(j, "points");
    for (uint32_t i = 0; i < s->gp.n; i++) {
        cJSON *point = cJSON_CreateObject();
        add_set(point, "set", NULL, s->gp.x + (size_t)i * s->gp.d, s->switches);
        cJSON_AddNumberToObject(point, "matchness", s->gp.y[i]);
        cJSON_AddItemToArray(points, point);
    }
    char *text = cJSON_Print(j);
    cJSON_Delete(j);
    return text;
}

/* A whole number of [least, most]. */
static bool
take_count(const cJSON *from, const char *name, uint32_t least, uint32_t most, uint32_t *out)
{
    const cJSON *n = cJSON_GetObjectItem(from, name);
    if (!cJSON_IsNumber(n) || !(n->valuedouble >= least && n->valuedouble <= most))
        return false;
    *out = (uint32_t)n->valuedouble;
    return true;
}

static bool
take_matchness(const cJSON *from, const char *name, double *out)
{
    const cJSON *n = cJSON_GetObjectItem(from, name);
    if (!cJSON_IsNumber(n) || !(n->valuedouble >= 0 && n->valuedouble <= 1))
        return false;
    *out = n->valuedouble;
    return true;
}

/* Into out (switches); *skipped: how many are off. Both of the versions' ways to write a set. */
static bool
take_set(const cJSON *set, uint32_t switches, bool *out, uint32_t *skipped)
{
    memset(out, 0, switches * sizeof *out);
    *skipped = 0;
    if (cJSON_IsString(set)) {
        const size_t n = strspn(set->valuestring, "01");
        for (uint32_t i = 0; i < switches && i < n; i++)
            *skipped += out[i] = set->valuestring[i] == '1';
        return n == switches && set->valuestring[n] == '\0';
    }
    if (!cJSON_IsArray(set))
        return false;
    for (const cJSON *i = set->child; i != NULL; i = i->next) {
        if (!cJSON_IsNumber(i) || i->valueint < 0 || (uint32_t)i->valueint >= switches || out[i->valueint])
            return false;
        out[i->valueint] = true;
        ++*skipped;
    }
    return true;
}

/* What version 1 did not have. */
static bool
take_rest(struct swift_search *s, const cJSON *j)
{
    const cJSON *random = cJSON_GetObjectItem(j, "random"), *points = cJSON_GetObjectItem(j, "points");
    if (!take_count(j, "best_step", 1, s->steps, &s->best_step) || !take_matchness(j, "last", &s->last_matchness) ||
        !cJSON_IsString(random) || strspn(random->valuestring, "0123456789abcdef") != 16 ||
        random->valuestring[16] != '\0' || !cJSON_IsArray(points) || cJSON_GetArraySize(points) > GP_POINTS)
        return false;
    s->random = strtoull(random->valuestring, NULL, 16);
    s->gp.n = 0;
    for (const cJSON *point = points->child; point != NULL; point = point->next) {
        double matchness;
        uint32_t skipped;
        if (!take_set(cJSON_GetObjectItem(point, "set"), s->switches, s->proposed, &skipped) || skipped != s->skipped ||
            !take_matchness(point, "matchness", &matchness))
            return false;
        for (uint32_t i = 0; i < s->switches; i++)
            s->point[i] = s->proposed[i] ? 1 : 0;
        gp_add(&s->gp, s->point, matchness);
    }
    return true;
}

static bool
take(struct swift_search *s, const cJSON *j)
{
    uint32_t version = 1, switches, skipped;
    if (cJSON_GetObjectItem(j, "version") != NULL && !take_count(j, "version", 2, 2, &version))
        return false;
    if (!take_count(j, "switches", 0, UINT32_MAX, &switches))
        return false;
    if (switches != s->switches)
        return true;
    if (!take_set(cJSON_GetObjectItem(j, "skipped"), switches, s->proposed, &skipped))
        return false;
    if (skipped != s->skipped)
        return true;
    if (!take_count(j, "steps", 1, 1000000000, &s->steps) || !take_matchness(j, "matchness", &s->best_matchness))
        return false;
    memcpy(s->best, s->proposed, switches * sizeof *s->best);
    s->best_step = s->steps;
    s->last_matchness = s->best_matchness;
    return version == 1 || take_rest(s, j);
}

bool
search_load(struct swift_search *s, const char *text, struct err *err)
{
    cJSON *j;
    if (!json_read(&j, text, strlen(text)))
        return err_set(err, ERR_WORK, "out of memory");
    const bool ok = cJSON_IsObject(j) && take(s, j);
    cJSON_Delete(j);
    return ok || err_set(err, ERR_WORK, "not a saved search");
}
