#include "cli/generation/acceptance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "base/text.h"
#include "tui/terminal/terminal.h"

static void
add_prompt(struct acceptance_part *part, const struct outcome_text *of_a_prompt)
{
    part->prompts++;
    tally_add(&part->total, &of_a_prompt->total);
    positions_add(&part->positions, &of_a_prompt->positions);
}

bool
acceptance_add(struct acceptance *a, const char *category, const struct outcome_text *of_a_prompt)
{
    size_t i = 0;
    add_prompt(&a->all, of_a_prompt);
    if (category == NULL || category[0] == '\0')
        return true;
    while (i < a->n_parts && strcmp(a->part[i].category, category) != 0)
        i++;
    if (i == a->n_parts) {
        struct acceptance_part *more = realloc(a->part, (a->n_parts + 1) * sizeof *more);
        if (more == NULL)
            return false;
        a->part = more;
        a->part[a->n_parts++] = (struct acceptance_part){.category = category};
    }
    add_prompt(&a->part[i], of_a_prompt);
    return true;
}

void
acceptance_free(struct acceptance *a)
{
    free(a->part);
    *a = (struct acceptance){0};
}

/* ---- the table ---- */

enum { NAME_COLS = 11, RATE_COLS = 13, CELL_COLS = 9 };

/* Prints a text in at least `cols` columns; negative: at their right end. */
static void
put(FILE *out, int cols, const char *text)
{
    char safe[256];
    snprintf(safe, sizeof safe, "%s", text);
    if (terminal_wants_ascii())
        text_ascii(safe);
    const int fill = abs(cols) - text_width(safe);
    fprintf(out, "%*s%s%*s", cols < 0 && fill > 0 ? fill : 0, "", safe, cols > 0 && fill > 0 ? fill : 0, "");
}

/* Prints ".81±.02", or with ones "2.41±.08". */
static void
put_estimate(FILE *out, struct estimate e)
{
    char value[16] = "–", error[16] = "", text[40];
    if (!isnan(e.value))
        snprintf(value, sizeof value, "%.2f", e.value);
    if (!isnan(e.value) && !isnan(e.se))
        snprintf(error, sizeof error, "%.2f", e.se);
    snprintf(text, sizeof text, "%s%s%s", value[0] == '0' ? value + 1 : value, error[0] != '\0' ? "±" : "",
             error[0] == '0' ? error + 1 : error);
    put(out, -CELL_COLS, text);
}

void
acceptance_print_title(FILE *out)
{
    put(out, NAME_COLS + RATE_COLS, "acceptance by position");
    put(out, -CELL_COLS, "tokens");
    for (int i = 0; i < POSITIONS_SHOWN; i++) {
        char number[8];
        snprintf(number, sizeof number, "%d", i + 1);
        put(out, -CELL_COLS, number);
    }
    fputc('\n', out);
}

typedef struct estimate rate_fn(const struct positions *, uint32_t);

static void
put_rates(FILE *out, const char *name, const char *what, const struct positions *p, rate_fn *rate)
{
    put(out, NAME_COLS, name);
    put(out, RATE_COLS, what);
    if (rate == positions_unconditional)
        put_estimate(out, positions_tokens(p));
    else
        put(out, CELL_COLS, "");
    for (uint32_t i = 0; i < positions_count(p) && i < POSITIONS_SHOWN; i++)
        put_estimate(out, rate(p, i));
    fputc('\n', out);
}

void
acceptance_print(FILE *out, const char *name, const struct acceptance *a)
{
    const struct positions *p = &a->all.positions;
    const uint64_t ranked = positions_ranked(p);
    char ranks[160];
    if (positions_count(p) == 0)
        return;
    put_rates(out, name, "conditional", p, positions_conditional);
    put_rates(out, "", "unconditional", p, positions_unconditional);
    if (ranked > 0) {
        put(out, NAME_COLS, "");
        put(out, 0, "rank of the target's token at ");
        fprintf(out, "%llu rejection%s: ", (unsigned long long)ranked, plural(ranked));
        put(out, 0, positions_ranks_text(p, ranks, sizeof ranks));
        fputc('\n', out);
    }
    for (size_t i = 0; i < a->n_parts; i++)
        if (a->part[i].prompts > 1)
            put_rates(out, "", a->part[i].category, &a->part[i].positions, positions_unconditional);
}

/* ---- files ---- */

void
acceptance_csv(FILE *out, const struct result *whole, const struct acceptance_part *part)
{
    struct result r = {.policy = whole->policy,
                       .params = whole->params,
                       .total = &part->total,
                       RESULT_WITHOUT_SPEED,
                       .lossless = whole->lossless,
                       .model = whole->model,
                       .machine = whole->machine,
                       .category = part->category,
                       .positions = &part->positions};
    const struct metrics none = {.layers = 1};
    r.m = metrics_measures(&none, &part->total);
    r.m.modelled = NAN;
    results_csv_line(out, &r);
}

void
acceptance_positions_json(cJSON *to, const struct positions *p)
{
    cJSON *list = cJSON_AddArrayToObject(to, "positions");
    for (uint32_t i = 0; i < positions_count(p); i++) {
        cJSON *at = cJSON_CreateObject();
        json_number(at, "tested", (double)p->tested[i]);
        json_number(at, "accepted", (double)p->accepted[i]);
        json_estimate(at, "conditional", positions_conditional(p, i));
        json_estimate(at, "unconditional", positions_unconditional(p, i));
        cJSON_AddItemToArray(list, at);
    }
    list = cJSON_AddArrayToObject(to, "reject_ranks");
    for (uint32_t i = 1; i <= POSITION_RANKS; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber((double)p->ranks[i]));
    json_number(to, "reject_later", (double)p->ranks[0]);
}

void
acceptance_categories_json(cJSON *to, const struct acceptance *a)
{
    cJSON *list = a->n_parts > 0 ? cJSON_AddArrayToObject(to, "categories") : NULL;
    for (size_t i = 0; i < a->n_parts; i++) {
        const struct acceptance_part *part = &a->part[i];
        const struct tally *t = &part->total;
        const double seconds = (t->draft_us + t->verify_us) * 1e-6;
        cJSON *at = cJSON_CreateObject();
        cJSON_AddStringToObject(at, "category", part->category);
        json_number(at, "prompts", (double)part->prompts);
        json_number(at, "rounds", (double)part->positions.rounds);
        json_number(at, "emitted", (double)t->emitted);
        json_number(at, "tok_per_s", seconds > 0 ? (double)t->emitted / seconds : (double)NAN);
        json_number(at, "acceptance_rate", t->verified > 0 ? (double)t->accepted / (double)t->verified : (double)NAN);
        json_estimate(at, "tokens_per_round", positions_tokens(&part->positions));
        acceptance_positions_json(at, &part->positions);
        cJSON_AddItemToArray(list, at);
    }
}
