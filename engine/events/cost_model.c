#include "engine/events/cost_model.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"

#define WEIGHT      0.15 /* of a correction */
#define FACTOR_MOST 8.0  /* corrections stay between 1/8 and 8 */
#define NEGLIGIBLE  0.01 /* share of a round's time below which a phase corrects nothing */
#define ERROR       0.05 /* relative error of a forecast's time before rounds show it */
#define US_MOST     1e9
#define COST_16     7 /* cost_rows[7] is 16 */

const uint32_t cost_rows[COST_ROWS] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
static const char *const cost_array_names[COST_ARRAYS] = {
    "layer", "pass",       "head",      "probe",     "trained_probe", "exits", "trained_exits",
    "draft", "draft_head", "set_probe", "set_exits", "feed",          "markov"};
static const char *const far_names[COST_FAR] = {"far_layer", "far_draft"};

/* further: the call that each further row of a step costs as much as. Passes and probes are of one row for each
 * sequence. */
static const struct {
    enum cost_array array, further;
    enum cost_phase phase;
} steps[COST_STEPS] = {
    [COST_DRAFT_PASS] = {COST_OF_PASS, COST_OF_LAYER, COST_DRAFTING},
    [COST_DRAFT_ROWS] = {COST_OF_LAYER, COST_OF_LAYER, COST_DRAFTING},
    [COST_TRAINED_PROBE] = {COST_OF_TRAINED_PROBE, COST_OF_TRAINED_PROBE, COST_HEADS},
    [COST_EXITS] = {COST_OF_EXITS, COST_OF_PROBE, COST_EXIT_HEADS},
    [COST_TRAINED_EXITS] = {COST_OF_TRAINED_EXITS, COST_OF_TRAINED_PROBE, COST_EXIT_HEADS},
    [COST_PASS] = {COST_OF_PASS, COST_OF_LAYER, COST_VERIFICATION},
    [COST_PROBE] = {COST_OF_PROBE, COST_OF_PROBE, COST_HEADS},
    [COST_DRAFT] = {COST_OF_DRAFT, COST_OF_DRAFT, COST_MODEL},
    [COST_DRAFT_HEAD] = {COST_OF_DRAFT_HEAD, COST_OF_DRAFT_HEAD, COST_HEADS},
    [COST_FEED] = {COST_OF_FEED, COST_OF_FEED, COST_MODEL},
    [COST_MARKOV] = {COST_OF_MARKOV, COST_OF_MARKOV, COST_HEADS},
    [COST_SET_PROBE] = {COST_OF_SET_PROBE, COST_OF_SET_PROBE, COST_HEADS},
    [COST_SET_EXITS] = {COST_OF_SET_EXITS, COST_OF_SET_PROBE, COST_EXIT_HEADS},
    [COST_LAYER] = {COST_OF_LAYER, COST_OF_LAYER, COST_VERIFICATION},
    [COST_HEAD] = {COST_OF_HEAD, COST_OF_HEAD, COST_VERIFICATION},
};

/* ---- counts ---- */

/* Returns the measured number of rows below a number, and the share of the next one in the cost. Numbers above the last
 * one continue its slope, with a negative share of the one before it. */
static uint32_t
below(uint32_t rows, double *upper)
{
    uint32_t i = 0;
    while (i + 2 < COST_ROWS && rows > cost_rows[i + 1])
        i++;
    *upper = ((double)rows - cost_rows[i]) / (double)(cost_rows[i + 1] - cost_rows[i]);
    return i;
}

void
cost_add(struct cost_count *c, enum cost_step step, uint32_t rows, double calls, double position)
{
    double upper;
    const uint32_t i = below(rows, &upper);
    c->calls[step][i] += calls * (1 - upper);
    c->calls[step][i + 1] += calls * upper;
    c->thousands[step][i] += calls * (1 - upper) * position / 1000;
    c->thousands[step][i + 1] += calls * upper * position / 1000;
}

void
cost_add_all(struct cost_count *to, const struct cost_count *from, double share)
{
    for (int s = 0; s < COST_STEPS; s++)
        for (int i = 0; i < COST_ROWS; i++) {
            to->calls[s][i] += share * from->calls[s][i];
            to->thousands[s][i] += share * from->thousands[s][i];
        }
    to->passes += share * from->passes;
    to->first += share * from->first;
    to->first_draft += share * from->first_draft;
    to->rounds += share * from->rounds;
}

/* ---- prices ---- */

void
cost_reset(struct cost_model *m)
{
    for (int p = 0; p < COST_PHASES; p++)
        m->factor[p] = 1;
    m->autoregressive = 0;
    m->corrected = false;
    m->error = ERROR;
}

/* Returns the further time of a call at 1,000 more positions: of number i of rows, or of layers for one row. It is at
 * most what makes the measured call free at position 0. */
static double
far_of(const struct cost_model *m, enum cost_array array, int i)
{
    const double most = m->context > 0 ? m->us[array][i] / m->context * 1000 : INFINITY;
    switch (array) {
    case COST_OF_LAYER: return fmin(m->far[COST_FAR_LAYER][i], most);
    case COST_OF_PASS: return fmin(m->far[COST_FAR_LAYER][0] * cost_rows[i], most);
    case COST_OF_DRAFT: return fmin(m->far[COST_FAR_DRAFT][i], most);
    default: /* heads */ return 0;
    }
}

/* Returns the time of a call of a step, for number i of rows (or of layers or probes), at n sequences. Above 64 rows the
 * slope from 16 to 64 rows continues: that of the last two numbers is mostly noise, over many rows. */
static double
call_of(const struct cost_model *m, int step, int i, uint32_t n)
{
    const double *us = m->us[steps[step].array], *further = m->us[steps[step].further];
    const uint32_t rows = us == further ? n * cost_rows[i] : n, most = cost_rows[COST_ROWS - 1];
    double upper;
    if (n == 1)
        return us[i];
    const uint32_t at = below(rows < most ? rows : most, &upper);
    double time = further[at] * (1 - upper) + further[at + 1] * upper;
    if (rows > most)
        time += fmax(further[COST_ROWS - 1] - further[COST_16], 0) * (rows - most) / (most - cost_rows[COST_16]);
    return us == further ? time : us[i] + cost_rows[i] * (time - further[0]);
}

double
cost_price_sequences(const struct cost_model *m, const struct cost_count *c, uint32_t n, double us[COST_PHASES])
{
    double sum = 0;
    memset(us, 0, COST_PHASES * sizeof *us);
    us[COST_HOST] = m->draft * (c->passes + c->rounds);
    us[COST_DRAFTING] = m->first * c->first;
    us[COST_MODEL] = m->first_draft * c->first_draft;
    us[COST_VERIFICATION] = m->round * c->rounds;
    for (int s = 0; s < COST_STEPS; s++) {
        const enum cost_array array = steps[s].array;
        double price = 0, rows = 0;
        for (int i = 0; i < COST_ROWS; i++) { /* costs were measured at position `context` */
            const double calls = c->calls[s][i], thousands = c->thousands[s][i] - calls * m->context / 1000;
            const double further = (thousands > 0) == (calls > 0) ? n : 1; /* each sequence has attention of its own */
            price += calls * call_of(m, s, i, n) + thousands * further * far_of(m, array, i);
            rows += calls * cost_rows[i];
        }
        if (rows > 0 && !(m->us[array][0] > 0))
            return NAN;
        us[steps[s].phase] += price;
    }
    for (int p = 0; p < COST_PHASES; p++)
        sum += us[p] *= m->factor[p];
    return sum;
}

double
cost_price(const struct cost_model *m, const struct cost_count *c, double us[COST_PHASES])
{
    return cost_price_sequences(m, c, 1, us);
}

double
cost_autoregressive_sequences(const struct cost_model *m, uint32_t layers, double position, uint32_t n)
{
    const double verification = m->factor[COST_VERIFICATION];
    double us[COST_PHASES];
    struct cost_count step = {.rounds = 1};
    cost_add(&step, COST_PASS, layers, 1, position);
    cost_add(&step, COST_HEAD, 1, 1, position);
    cost_price_sequences(m, &step, n, us);
    return us[COST_VERIFICATION] * (m->autoregressive > 0 ? m->autoregressive / verification : 1);
}

double
cost_autoregressive(const struct cost_model *m, uint32_t layers, double position)
{
    return cost_autoregressive_sequences(m, layers, position, 1);
}

/* ---- corrections ---- */

static double
corrected(double factor, double by)
{
    return fmin(fmax(factor * by, 1 / FACTOR_MOST), FACTOR_MOST);
}

/* Corrects phases whose times are known only as a sum. Each one's part is its share of the sum, so that a small phase
 * changes little, and the sum changes by WEIGHT of its error. */
static void
correct_sum(struct cost_model *m, const double us[COST_PHASES], unsigned phases, double measured, double all)
{
    double sum = 0, squares = 0;
    for (unsigned p = 0; p < COST_PHASES; p++)
        if ((phases >> p & 1u) != 0) {
            sum += us[p];
            squares += us[p] * us[p];
        }
    if (!(sum > 0) || !(measured > 0) || (sum < NEGLIGIBLE * all && measured < NEGLIGIBLE * all))
        return;
    for (unsigned p = 0; p < COST_PHASES; p++)
        if ((phases >> p & 1u) != 0)
            m->factor[p] = corrected(m->factor[p], pow(measured / sum, WEIGHT * us[p] * sum / squares));
}

/* The first correction concerns all phases: the machine may be busier, or less so, than when the costs were measured.
 * Returns its factor; 1: this is not the first one. */
static double
correct_all(struct cost_model *m, double by)
{
    if (m->corrected)
        return 1;
    m->corrected = true;
    for (int p = 0; p < COST_PHASES; p++)
        m->factor[p] = corrected(m->factor[p], by);
    return by;
}

void
cost_correct(struct cost_model *m, const double priced[COST_PHASES], double draft_us, double heads_us, double verify_us)
{
    const unsigned drafting = 1u << COST_HOST | 1u << COST_DRAFTING | 1u << COST_MODEL,
                   heads = 1u << COST_HEADS | 1u << COST_EXIT_HEADS;
    const double all = draft_us + verify_us;
    double price = 0, us[COST_PHASES];
    for (int p = 0; p < COST_PHASES; p++)
        price += priced[p];
    if (!(price > 0) || !(all > 0))
        return;
    const double common = correct_all(m, all / price);
    for (int p = 0; p < COST_PHASES; p++)
        us[p] = priced[p] * common;
    price *= common;
    if (isnan(heads_us)) {
        correct_sum(m, us, drafting | heads, draft_us, all);
    } else {
        correct_sum(m, us, drafting, draft_us - heads_us, all);
        correct_sum(m, us, heads, heads_us, all);
    }
    correct_sum(m, us, 1u << COST_VERIFICATION, verify_us, all);
    const double off = log(all / price);
    m->error = sqrt((1 - WEIGHT) * m->error * m->error + WEIGHT * off * off);
}

void
cost_correct_autoregressive(struct cost_model *m, uint32_t layers, double position, double measured_us)
{
    const double us = cost_autoregressive(m, layers, position);
    const double before = m->autoregressive > 0 ? m->autoregressive : m->factor[COST_VERIFICATION];
    if (!(us > 0) || !(measured_us > 0))
        return;
    correct_all(m, measured_us / us);
    m->autoregressive = corrected(before, pow(measured_us / us, m->autoregressive > 0 ? WEIGHT : 1));
}

/* ---- JSON ---- */

/* Members with a number, in the order in which they are printed. */
static const struct {
    const char *name;
    size_t at;
} numbers[] = {{"fixed_draft", offsetof(struct cost_model, draft)},
               {"fixed_first", offsetof(struct cost_model, first)},
               {"fixed_first_draft", offsetof(struct cost_model, first_draft)},
               {"fixed_round", offsetof(struct cost_model, round)}};

static bool
add_array(cJSON *to, const char *name, const double values[COST_ROWS])
{
    cJSON *array = cJSON_CreateDoubleArray(values, COST_ROWS);
    return array != NULL && cJSON_AddItemToObject(to, name, array);
}

cJSON *
cost_model_json(const struct cost_model *m)
{
    cJSON *j = cJSON_CreateObject();
    bool ok = j != NULL && cJSON_AddNumberToObject(j, "context", m->context) != NULL;
    for (size_t i = 0; ok && i < sizeof numbers / sizeof *numbers; i++)
        ok = cJSON_AddNumberToObject(j, numbers[i].name, *(const double *)((const char *)m + numbers[i].at)) != NULL;
    for (int a = 0; ok && a < COST_ARRAYS; a++)
        if (m->us[a][0] > 0)
            ok = add_array(j, cost_array_names[a], m->us[a]);
    for (int f = 0; ok && f < COST_FAR; f++)
        if (f == COST_FAR_LAYER || m->us[COST_OF_DRAFT][0] > 0)
            ok = add_array(j, far_names[f], m->far[f]);
    if (ok)
        return j;
    cJSON_Delete(j);
    return NULL;
}

static bool
read_number(const cJSON *j, const char *name, double most, double *out, struct err *err)
{
    if (!cJSON_IsNumber(j) || !(j->valuedouble >= 0) || !(j->valuedouble <= most))
        return err_set(err, ERR_WORK, "has a '%s' that is not a number from 0 to %g", name, most);
    *out = j->valuedouble;
    return true;
}

static bool
read_array(const cJSON *j, const char *name, double out[COST_ROWS], struct err *err)
{
    const cJSON *item;
    int i = 0;
    if (!cJSON_IsArray(j) || cJSON_GetArraySize(j) != COST_ROWS)
        return err_set(err, ERR_WORK, "has a '%s' that is not an array of %d numbers", name, COST_ROWS);
    cJSON_ArrayForEach(item, j) if (!read_number(item, name, US_MOST, &out[i++], err)) return false;
    return true;
}

bool
cost_model_read(const cJSON *j, struct cost_model *m, struct err *err)
{
    double context = 0;
    *m = (struct cost_model){.context = 0};
    cost_reset(m);
    bool ok = cJSON_IsObject(j)
                  ? read_number(cJSON_GetObjectItemCaseSensitive(j, "context"), "context", 1e9, &context, err)
                  : err_set(err, ERR_WORK, "is not an object");
    m->context = (uint32_t)context;
    for (size_t i = 0; ok && i < sizeof numbers / sizeof *numbers; i++)
        ok = read_number(cJSON_GetObjectItemCaseSensitive(j, numbers[i].name), numbers[i].name, US_MOST,
                         (double *)((char *)m + numbers[i].at), err);
    for (int a = 0; ok && a < COST_ARRAYS; a++) {
        const cJSON *array = cJSON_GetObjectItemCaseSensitive(j, cost_array_names[a]);
        ok = array == NULL || read_array(array, cost_array_names[a], m->us[a], err);
    }
    for (int f = 0; ok && f < COST_FAR; f++) {
        const cJSON *array = cJSON_GetObjectItemCaseSensitive(j, far_names[f]);
        ok = (array == NULL && f != COST_FAR_LAYER) || read_array(array, far_names[f], m->far[f], err);
    }
    for (int a = 0; ok && a <= COST_OF_PROBE; a++) /* the others may be missing */
        ok = m->us[a][0] > 0 || err_set(err, ERR_WORK, "has no '%s'", cost_array_names[a]);
    return ok;
}

bool
cost_model_print(const struct cost_model *m, char out[COST_TEXT])
{
    cJSON *j = cost_model_json(m);
    const bool ok = j != NULL && cJSON_PrintPreallocated(j, out, COST_TEXT, false);
    cJSON_Delete(j);
    return ok;
}

bool
cost_model_parse(const char *text, struct cost_model *m, struct err *err)
{
    cJSON *j;
    if (!json_read(&j, text, strlen(text)))
        return err_set(err, ERR_WORK, "cost: out of memory");
    const bool ok = cost_model_read(j, m, err);
    cJSON_Delete(j);
    return ok;
}
