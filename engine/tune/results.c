#include "engine/tune/results.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include <csv.h>

#define CSV_BEGINS "policy,params"

#define AT(member) offsetof(struct result, member)

const struct result_column result_columns[RESULT_COLUMNS] = {
    {"tokens/s", "tok_per_s", "%.1f", AT(m.tokens_per_s), SHOWN},
    {"x ar", "speedup", "%.2f", AT(speedup), SHOWN},
    {"", "speedup_se", "", AT(speedup_se), SHOWN_FILES},
    {"", "samples", "", AT(samples), SHOWN_FILES},
    {"from", "speedup_low", "%.2f", AT(interval.low), SHOWN},
    {"to", "speedup_high", "%.2f", AT(interval.high), SHOWN},
    {"all in", "speedup_all_in", "%.2f", AT(speedup_all_in), SHOWN},
    {"tok/round", "tokens_per_round", "%.2f", AT(m.tokens_per_round), SHOWN},
    {"accept", "acceptance_rate", "%.2f", AT(m.acceptance_rate), SHOWN},
    {"per token", "per_token_acceptance", "%.2f", AT(m.per_token_acceptance), SHOWN_WIDE},
    {"eTPL", "etpl", "%.3f", AT(m.etpl), SHOWN},
    {"discard", "discard_rate", "%.2f", AT(m.discard_rate), SHOWN_WIDE},
    {"verify", "verification_rate", "%.2f", AT(m.verification_rate), SHOWN_WIDE},
    {"modelled", "modelled_speedup", "%.2f", AT(m.modelled), SHOWN_WIDE},
    {"meas/mod", "measured_over_modelled", "%.2f", AT(ratio), SHOWN_WIDE},
    {"", "draft_share", "", AT(m.layers_share), SHOWN_FILES},
    {"", "heads_share", "", AT(m.heads_share), SHOWN_FILES},
    {"", "verify_share", "", AT(m.verify_share), SHOWN_FILES},
    {"", "probe_share", "", AT(m.probe_share), SHOWN_FILES},
    {"", "wait_share", "", AT(m.wait_share), SHOWN_FILES},
    {"", "learning_share", "", AT(m.learning_share), SHOWN_FILES},
    {"", "tok_per_s_all_in", "", AT(m.tokens_per_s_all_in), SHOWN_FILES},
    {"", "tok_per_s_se", "", AT(speed_se), SHOWN_FILES},
};

double
result_value(const struct result *r, int column)
{
    return *(const double *)((const char *)r + result_columns[column].at);
}

void
results_csv_text(FILE *out, const char *text)
{
    csv_fwrite(out, text, strlen(text));
}

const struct file_kind results_csv_file = {.what = "results of specscope as CSV", .begins = CSV_BEGINS ","};

void
results_csv_head(FILE *out)
{
    fputs(CSV_BEGINS ",category", out);
    for (int k = 0; k < RESULT_COLUMNS; k++)
        fprintf(out, ",%s", result_columns[k].csv);
    fputs(",lossless,rounds,drafted,verified,accepted,emitted,cut,layers_loaded,heads_loaded,decode_s,model,machine,"
          "conditional,unconditional,reject_ranks\r\n",
          out);
}

/* Writes the rates of positions 1, 2, … with blanks between them. */
static void
csv_rates(FILE *out, const struct positions *p, struct estimate (*rate)(const struct positions *, uint32_t))
{
    fputc(',', out);
    for (uint32_t i = 0; p != NULL && i < positions_count(p); i++) {
        const double value = rate(p, i).value;
        fprintf(out, isnan(value) ? "%snan" : "%s%.4f", i > 0 ? " " : "", value);
    }
}

/* Writes the rejections of rank 1, 2, … and last those of later ranks. */
static void
csv_ranks(FILE *out, const struct positions *p)
{
    fputc(',', out);
    for (uint32_t i = 1; p != NULL && positions_ranked(p) > 0 && i <= POSITION_RANKS + 1; i++)
        fprintf(out, "%s%llu", i > 1 ? " " : "", (unsigned long long)p->ranks[i % (POSITION_RANKS + 1)]);
}

static void
csv_number(FILE *out, double value) /* nothing if it is unknown */
{
    fputc(',', out);
    if (!isnan(value))
        fprintf(out, "%.9g", value);
}

void
results_csv_line(FILE *out, const struct result *r)
{
    const struct tally *t = r->total;
    fprintf(out, "%s,", r->policy);
    results_csv_text(out, r->params);
    fputc(',', out);
    if (r->category != NULL)
        results_csv_text(out, r->category);
    for (int k = 0; k < RESULT_COLUMNS; k++)
        csv_number(out, result_value(r, k));
    fprintf(out, ",%s,%llu,%llu,%llu,%llu,%llu,%llu", r->lossless, (unsigned long long)t->rounds,
            (unsigned long long)t->drafted, (unsigned long long)t->verified, (unsigned long long)t->accepted,
            (unsigned long long)t->emitted, (unsigned long long)t->cut);
    csv_number(out, t->layers);
    csv_number(out, t->heads);
    csv_number(out, (t->draft_us + t->verify_us) * 1e-6);
    fputc(',', out);
    results_csv_text(out, r->model);
    fputc(',', out);
    results_csv_text(out, r->machine);
    csv_rates(out, r->positions, positions_conditional);
    csv_rates(out, r->positions, positions_unconditional);
    csv_ranks(out, r->positions);
    fputs("\r\n", out);
}
