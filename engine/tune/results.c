#include "engine/tune/results.h"

#include <math.h>

#define CSV_BEGINS "policy,params"
#define MEASURE(name)                                                                                                  \
    static double name(const struct result *r)                                                                         \
    {                                                                                                                  \
        return r->m.name;                                                                                              \
    }
MEASURE(tokens_per_s)
MEASURE(tokens_per_round)
MEASURE(acceptance_rate)
MEASURE(per_token_acceptance)
MEASURE(etpl)
MEASURE(discard_rate)
MEASURE(verification_rate)
MEASURE(modelled)
MEASURE(heads_share)
MEASURE(verify_share)
MEASURE(probe_share)
MEASURE(wait_share)
MEASURE(learning_share)
MEASURE(tokens_per_s_all_in)

static double
layers_share(const struct result *r) /* the part of the draft's work outside head calls */
{
    return r->m.draft_share - r->m.heads_share;
}

static double
speedup(const struct result *r)
{
    return r->speedup;
}

static double
speedup_se(const struct result *r)
{
    return r->speedup_se;
}

static double
samples(const struct result *r)
{
    return r->samples > 0 ? (double)r->samples : (double)NAN;
}

static double
speedup_low(const struct result *r)
{
    return r->interval.low;
}

static double
speedup_high(const struct result *r)
{
    return r->interval.high;
}

static double
speed_se(const struct result *r)
{
    return r->speed_se;
}

static double
speedup_all_in(const struct result *r)
{
    return r->speedup_all_in;
}

static double
ratio(const struct result *r)
{
    return r->ratio;
}

const struct result_column result_columns[RESULT_COLUMNS] = {
    {"tokens/s", "tok_per_s", "%.1f", tokens_per_s, SHOWN},
    {"x ar", "speedup", "%.2f", speedup, SHOWN},
    {"", "speedup_se", "", speedup_se, SHOWN_FILES},
    {"", "samples", "", samples, SHOWN_FILES},
    {"from", "speedup_low", "%.2f", speedup_low, SHOWN},
    {"to", "speedup_high", "%.2f", speedup_high, SHOWN},
    {"all in", "speedup_all_in", "%.2f", speedup_all_in, SHOWN},
    {"tok/round", "tokens_per_round", "%.2f", tokens_per_round, SHOWN},
    {"accept", "acceptance_rate", "%.2f", acceptance_rate, SHOWN},
    {"per token", "per_token_acceptance", "%.2f", per_token_acceptance, SHOWN_WIDE},
    {"eTPL", "etpl", "%.3f", etpl, SHOWN},
    {"discard", "discard_rate", "%.2f", discard_rate, SHOWN_WIDE},
    {"verify", "verification_rate", "%.2f", verification_rate, SHOWN_WIDE},
    {"modelled", "modelled_speedup", "%.2f", modelled, SHOWN_WIDE},
    {"meas/mod", "measured_over_modelled", "%.2f", ratio, SHOWN_WIDE},
    {"", "draft_share", "", layers_share, SHOWN_FILES},
    {"", "heads_share", "", heads_share, SHOWN_FILES},
    {"", "verify_share", "", verify_share, SHOWN_FILES},
    {"", "probe_share", "", probe_share, SHOWN_FILES},
    {"", "wait_share", "", wait_share, SHOWN_FILES},
    {"", "learning_share", "", learning_share, SHOWN_FILES},
    {"", "tok_per_s_all_in", "", tokens_per_s_all_in, SHOWN_FILES},
    {"", "tok_per_s_se", "", speed_se, SHOWN_FILES},
};

void
results_csv_text(FILE *out, const char *text) /* a quote is written twice */
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
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

void
results_csv_line(FILE *out, const struct result *r)
{
    const struct tally *t = r->total;
    fprintf(out, "%s,", r->policy);
    results_csv_text(out, r->params);
    fputc(',', out);
    if (r->category != NULL)
        results_csv_text(out, r->category);
    for (int k = 0; k < RESULT_COLUMNS; k++) {
        const double value = result_columns[k].value(r);
        fputc(',', out);
        if (!isnan(value))
            fprintf(out, "%.9g", value);
    }
    fprintf(out, ",%s,%llu,%llu,%llu,%llu,%llu,%llu,%.9g,%.9g,%.9g,", r->lossless, (unsigned long long)t->rounds,
            (unsigned long long)t->drafted, (unsigned long long)t->verified, (unsigned long long)t->accepted,
            (unsigned long long)t->emitted, (unsigned long long)t->cut, t->layers, t->heads,
            (t->draft_us + t->verify_us) * 1e-6);
    results_csv_text(out, r->model);
    fputc(',', out);
    results_csv_text(out, r->machine);
    csv_rates(out, r->positions, positions_conditional);
    csv_rates(out, r->positions, positions_unconditional);
    csv_ranks(out, r->positions);
    fputs("\r\n", out);
}
