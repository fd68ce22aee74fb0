#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/train/train.h"
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

/* "training  [#####.....]  52%  KL 0.412 (was 0.731)  agreement 71.2% (was 60.3%)  18 s" */
void
train_progress(const struct job *j, double done, double loss, double agreement, bool line)
{
    const bool terminal = isatty(STDERR_FILENO) != 0;
    if (!terminal && !line)
        return;
    char bar[31];
    for (int i = 0; i < 30; i++)
        bar[i] = i < (int)(done * 30) ? '#' : '.';
    bar[30] = '\0';
    double was_loss, was_agreement;
    train_mean(j, j->lens_score, &was_loss, &was_agreement);
    fprintf(stderr, "%straining [%s] %3.0f%%  held out: KL %.3f (lens %.3f)  agreement %.1f%% (lens %.1f%%)  %.0f s%s",
            terminal ? "\r" : "", bar, done * 100, loss, was_loss, agreement * 100, was_agreement * 100, seconds(j),
            terminal ? " \x1b[K" : "\n");
    fflush(stderr);
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
