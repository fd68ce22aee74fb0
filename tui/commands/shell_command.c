#include "tui/commands/shell_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/events/preset.h"

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
        const double *start = info->start_values;
        if (s->value[k] == p->knobs[k].def && (start == NULL || start[s->policy * POLICY_KNOBS + k] == p->knobs[k].def))
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
put_sampling(FILE *out, const struct stretch *s, const struct run_info *info)
{
    for (int i = 0; i < SAMPLING_KNOBS; i++) {
        char option[16], text[24];
        sampling_knob_text(&s->sampling, s->seed, i, text, sizeof text);
        snprintf(option, sizeof option, "--%s", preset_sampling[i]);
        if (sampling_knob_get(&s->sampling, s->seed, i) != sampling_knobs[i].def ||
            sampling_knob_get(&info->sampling, info->seed, i) != sampling_knobs[i].def)
            put_option(out, option, text);
    }
}

static void
put_switch(FILE *out, const char *name, bool given)
{
    if (given)
        fprintf(out, " %s", name);
}

static void
put_given(FILE *out, const char *name, const char *value)
{
    if (value[0] != '\0')
        put_option(out, name, value);
}

/* An option for each line of a text. */
static void
put_lines(FILE *out, const char *name, const char *text)
{
    for (const char *line = text; *line != '\0';) {
        char one[ASKED_VARS];
        const size_t n = strcspn(line, "\n");
        snprintf(one, sizeof one, "%.*s", (int)n, line);
        put_option(out, name, one);
        line += n + (line[n] != '\0');
    }
}

/* Where the numbers come from: who computes, from what. */
static void
put_machine(FILE *out, const struct run_info *info)
{
    const struct asked_info *asked = &info->asked;
    put_given(out, "--heads", asked->no_heads ? "none" : info->exit_heads.path);
    put_lines(out, "--lora", asked->lora);
    put_switch(out, "--exact", info->exact);
    put_switch(out, "--quantize q8_0", asked->quantize);
    put_switch(out, "--prefill blas", info->prefill.rows > 0);
    put_given(out, "--backend", info->backend);
    put_given(out, "--isa", asked->isa);
    put_given(out, "--gpu", asked->gpu);
    if (info->threads > 0)
        fprintf(out, " -t %u", (unsigned)info->threads);
}

static void
put_chat(FILE *out, const struct asked_info *asked)
{
    put_switch(out, "--chat", asked->chat);
    put_switch(out, "--chat-special", asked->chat_special);
    if (asked->system != NULL)
        put_option(out, "--system", asked->system);
    put_lines(out, "--chat-var", asked->chat_vars);
    put_given(out, "--tools", asked->tools);
    put_given(out, "--chat-template", asked->chat_template);
    put_given(out, "--chat-date", asked->chat_date);
}

/* What is gone on from, how far. */
static void
put_text(FILE *out, const struct stretch *s, const struct run_info *info, const char *prompt)
{
    const struct asked_info *asked = &info->asked;
    const bool list = s->prompt == 0 && asked->prompts[0] != '\0', one = info->prompts == info->sequences;
    put_chat(out, asked);
    put_switch(out, "--ignore-eos", asked->ignore_eos);
    fprintf(out, " -c %u", (unsigned)info->ctx);
    if (asked->batch > 0 || (info->sequences > 1 && one)) /* older traces don't say what was asked for */
        fprintf(out, " --batch %u", (unsigned)(asked->batch > 0 ? asked->batch : info->sequences));
    fprintf(out, " -n %u", (unsigned)info->tokens);
    put_given(out, "--policy-state", asked->policy_state);
    if (list)
        put_option(out, "--prompts", asked->prompts);
    else if (prompt != NULL)
        put_option(out, "-p", prompt);
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
    put_machine(out, info);
    put_sampling(out, s, info);
    put_text(out, s, info, prompt);
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
