#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/train/train_accept.h"
#include "engine/base/clock.h"
#include "engine/base/plural.h"
#include "engine/trained/accept_predictor.h"

/* What a head comes to that says the same of every candidate: the mean label. */
static double
constant_kl(const struct accept_rows *r)
{
    double mean = 0, kl = 0;
    for (size_t i = 0; i < r->n; i++)
        mean += (double)r->label[i] / (double)r->n;
    for (size_t i = 0; i < r->n; i++) {
        const double a = (double)r->label[i];
        kl += (a > 0 ? a * log(a / mean) : 0) + (a < 1 ? (1 - a) * log((1 - a) / (1 - mean)) : 0);
    }
    return kl / (double)r->n;
}

static void
report_calibration(const struct accept_rows *held, const float *p)
{
    double sum_p[CALIBRATION_BINS] = {0}, sum_a[CALIBRATION_BINS] = {0};
    size_t n[CALIBRATION_BINS] = {0};
    for (size_t i = 0; i < held->n; i++) {
        int bin = (int)((double)p[i] * CALIBRATION_BINS);
        bin = bin < CALIBRATION_BINS ? bin : CALIBRATION_BINS - 1;
        sum_p[bin] += (double)p[i];
        sum_a[bin] += (double)held->label[i];
        n[bin]++;
    }
    printf("calibration      candidates   mean p   accepted\n");
    for (int bin = 0; bin < CALIBRATION_BINS; bin++)
        if (n[bin] > 0)
            printf("p %.1f .. %.1f  %14zu   %6.3f     %6.3f\n", (double)bin / CALIBRATION_BINS,
                   (double)(bin + 1) / CALIBRATION_BINS, n[bin], sum_p[bin] / (double)n[bin],
                   sum_a[bin] / (double)n[bin]);
}

bool
train_accept_report(const struct accept_job *j, struct err *err)
{
    const struct accept_rows *held = &j->held;
    struct accept_predictor *predictor;
    float *p = malloc(held->n * sizeof *p);
    if (p == NULL || !accept_predictor_open(&predictor, j->best, j->engine->threads, err)) {
        free(p);
        return err_set(err, ERR_WORK, "train accept: out of memory for the report; the head is in the file");
    }
    for (size_t i = 0; i < held->n; i++)
        p[i] = (float)accept_predictor_ask(predictor, held->x + i * j->best->width);
    printf("held out: %zu candidates, %zu to learn from\nblocks          loss       KL\n", held->n, j->train.n);
    printf("one number for all    %7.4f\n", constant_kl(held));
    for (size_t i = 0; i < j->n_results; i++)
        printf("%6u       %7.4f  %7.4f\n", (unsigned)j->results[i].blocks, j->results[i].loss, j->results[i].kl);
    report_calibration(held, p);
    printf("acceptance head of %s for %s, %u block%s: %s, %.0f s\n", j->best->draft, j->best->target,
           (unsigned)j->best->n_blocks, plural(j->best->n_blocks), j->options->train.out,
           (double)(clock_us() - j->start_us) * 1e-6);
    accept_predictor_close(predictor);
    free(p);
    return true;
}
