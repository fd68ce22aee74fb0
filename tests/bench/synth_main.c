/* synth OUT.gguf SHAPE [--type TYPE] [--plant K,ACCEPTANCE] [--seed N]: writes a model with random weights in the shape
 * of a real one, as a GGUF file (engine/model/synthetic/synthetic.h). */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/rigs/synthetic_gguf.h"

static void
print_usage(FILE *f)
{
    fputs("usage: synth OUT.gguf SHAPE [--type f16|q8_0|f32|bf16] [--plant K,ACCEPTANCE] [--seed N]\n"
          "a GGUF file with random weights; with --plant layers after K change little, so that drafts that exit there "
          "are accepted as often as asked\n"
          "shapes:",
          f);
    for (const struct synthetic_shape *s = synthetic_shapes; s->name != NULL; s++)
        fprintf(f, " %s", s->name);
    fputc('\n', f);
}

static bool
read_seed(const char *text, uint64_t *out, struct err *err)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0) ||
           err_set(err, ERR_USAGE, "--seed %.40s: a whole number is wanted", text);
}

static volatile sig_atomic_t interrupted;

static void
on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static bool
show(void *user, double done)
{
    (void)user;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\rwriting %3.0f%% ", done * 100);
    return !interrupted;
}

int
main(int argc, char **argv)
{
    static const struct option options[] = {{"type", required_argument, NULL, 't'},
                                            {"plant", required_argument, NULL, 'p'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct synthetic_spec spec = {.type = WEIGHT_Q8_0, .seed = SYNTHETIC_SEED};
    const char *plant = NULL;
    struct err err = {0};
    bool ok = true;
    for (int o; ok && (o = getopt_long(argc, argv, "h", options, NULL)) != -1;)
        switch (o) {
        case 't': ok = synthetic_find_type(optarg, strlen(optarg), &spec.type, &err); break;
        case 'p': plant = optarg; break;
        case 's': ok = read_seed(optarg, &spec.seed, &err); break;
        case 'h': print_usage(stdout); return 0;
        default: print_usage(stderr); return 2;
        }
    if (ok && argc - optind != 2) {
        print_usage(stderr);
        return 2;
    }
    signal(SIGXFSZ, SIG_IGN); /* reports a file that grew too large as an error */
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    struct synthetic_weights *w = NULL;
    ok = ok && synthetic_find_shape(argv[optind + 1], strlen(argv[optind + 1]), &spec.shape, &err) &&
         (plant == NULL || synthetic_read_exit(plant, &spec, &err)) && synthetic_weights_make(&w, &spec, &err) &&
         synthetic_gguf_write(w, argv[optind], show, NULL, &err);
    synthetic_weights_free(w);
    if (isatty(STDERR_FILENO))
        fputs("\r\x1b[K", stderr);
    if (!ok)
        fprintf(stderr, "synth: %s\n", err.text);
    return ok ? 0 : err.kind == ERR_USAGE ? 2 : 1;
}
