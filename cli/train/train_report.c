#include <inttypes.h>
#include <stdio.h>

#include "cli/train/train.h"
#include "cli/train/train_prompts.h"
#include "engine/base/clock.h"

static double
seconds(const struct job *j)
{
    return (double)(clock_us() - j->start_us) * 1e-6;
}

void
train_mean(const struct job *j, const struct head_score *sums, double *loss, double *agreement)
{
    *loss = *agreement = 0;
    for (uint32_t l = 1; l < j->layers; l++) {
        *loss += sums[l].loss / (double)j->held_rows / (j->layers - 1);
        *agreement += sums[l].agreement / (double)j->held_rows / (j->layers - 1);
    }
}

void
train_progress(const struct job *j, double done, double loss, double agreement, bool line)
{
    double was_loss, was_agreement;
    char text[128];
    train_mean(j, j->lens_score, &was_loss, &was_agreement);
    snprintf(text, sizeof text, "held out: KL %.3f (lens %.3f)  agreement %.1f%% (lens %.1f%%)", loss, was_loss,
             agreement * 100, was_agreement * 100);
    train_bar("training", done, line, text, j->start_us);
}

void
train_report(const struct job *j)
{
    printf("held out: %zu tokens          lens             %s\nlayer         agreement     KL  agreement     KL\n",
           j->held_rows, head_kind_name(j->heads->kind));
    const double n = (double)j->held_rows;
    for (uint32_t l = 1; l < j->layers; l++)
        printf("%5" PRIu32 "            %5.1f%%  %6.3f     %5.1f%%  %6.3f\n", l, j->lens_score[l].agreement / n * 100,
               j->lens_score[l].loss / n, j->best_score[l].agreement / n * 100, j->best_score[l].loss / n);
    printf("%s heads of %s: %s, %.0f s\n", head_kind_name(j->heads->kind), j->engine->model->name,
           j->options->train.out, seconds(j));
}
