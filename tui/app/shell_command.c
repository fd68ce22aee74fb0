#include "tui/app/shell_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A word as a shell takes it for just that. */
static void
put_word(FILE *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:+,@%";
    if (text[0] != '\0' && text[strspn(text, plain)] == '\0') {
        fputs(text, out);
        return;
    }
    fputc('\'', out);
    for (const char *c = text; *c != '\0'; c++)
        if (*c == '\'')
            fputs("'\\''", out);
        else
            fputc(*c, out);
    fputc('\'', out);
}

static void
put_option(FILE *out, const char *name, const char *value)
{
    fprintf(out, " %s ", name);
    put_word(out, value);
}

static void
put_policy(FILE *out, const struct stretch *s, const struct run_info *info)
{
    if (s->policy >= info->n_policies)
        return;
    const struct policy_info *p = &info->policies[s->policy];
    put_option(out, "--policy", p->name);
    for (uint32_t k = 0; k < p->n_knobs; k++) {
        char value[32], text[64];
        if (s->value[k] == p->knobs[k].def)
            continue;
        knob_format(&p->knobs[k], s->value[k], value, sizeof value);
        snprintf(text, sizeof text, "%s=%s", p->knobs[k].name, value);
        put_option(out, "--set", text);
    }
    if (s->head[0] != '\0')
        put_option(out, "--head", s->head);
}

static void
put_models(FILE *out, const struct run_info *info)
{
    for (enum helper_role role = 0; role < HELPERS; role++) {
        const struct helper_info *helper = &info->helpers[role];
        char option[24];
        snprintf(option, sizeof option, "--%s", helper_names[role]);
        if (helper->name[0] != '\0')
            put_option(out, option, helper->path[0] != '\0' ? helper->path : helper->name);
    }
    if (info->accept_head.path[0] != '\0')
        put_option(out, "--accept", info->accept_head.path);
    if (info->profile.path[0] != '\0')
        put_option(out, "--profile", info->profile.path);
}

static void
put_sampling(FILE *out, const struct stretch *stretch, const struct run_info *info)
{
    const struct sampling *s = &stretch->sampling;
    if (s->temperature > 0) {
        fprintf(out, " --temp %.9g", (double)s->temperature);
        if (s->top_k > 0)
            fprintf(out, " --top-k %u", (unsigned)s->top_k);
        if (s->top_p < 1)
            fprintf(out, " --top-p %.9g", (double)s->top_p);
        fprintf(out, " --seed %llu", (unsigned long long)stretch->seed);
    }
    fprintf(out, " -c %u", (unsigned)info->ctx);
    if (info->sequences > 1 && info->prompts == info->sequences) /* of one prompt */
        fprintf(out, " --batch %u", (unsigned)info->sequences);
    fprintf(out, " -n %u", (unsigned)info->tokens);
    if (info->exact)
        fputs(" --exact", out);
}

char *
shell_command(const struct stretch *s, const struct run_info *info, const char *prompt)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    if (out == NULL)
        return NULL;
    fputs("specscope run", out);
    put_policy(out, s, info);
    put_models(out, info);
    put_sampling(out, s, info);
    if (prompt != NULL)
        put_option(out, "-p", prompt);
    /* Weights by formula have a shape in the place of a file: "TinyLlama-1.1B,6,0.75". */
    const bool planted = strchr(info->model_path, '/') == NULL && strchr(info->model_path, ',') != NULL;
    if (planted)
        put_option(out, "--synth", info->model_path);
    else if (info->model_path[0] != '\0')
        put_option(out, "--", info->model_path); /* whatever it begins with */
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
