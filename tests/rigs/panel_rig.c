#include "tests/rigs/panel_rig.h"

void
request(struct fixture *f, const char *name, const char *text)
{
    struct settings *r = &f->requested;
    const struct policy_info *policy = &f->info.policies[r->policy];
    const int knob = policy_knob_index(policy, name), sampling = sampling_knob_index(name);
    double value;
    if (knob >= 0 && knob_parse(&policy->knobs[knob], text, &value, NULL))
        r->value[r->policy][knob] = value;
    if (sampling >= 0 && knob_parse(&sampling_knobs[sampling], text, &value, NULL))
        sampling_knob_set(&r->sampling, &r->seed, sampling, value);
}

static bool
take_command(void *user, const char *line)
{
    struct fixture *f = user;
    char name[24];
    snprintf(f->command, sizeof f->command, "%s", line);
    if (!f->refuse && sscanf(line, "set %23s", name) == 1)
        request(f, name, line + strlen("set ") + strlen(name) + 1);
    return !f->refuse;
}

static void
take_saying(void *user, const char *text)
{
    struct fixture *f = user;
    snprintf(f->said, sizeof f->said, "%s", text);
}

const struct panel_ops *
panel_named(const char *name)
{
    for (const struct panel_ops *const *p = panel_registry; *p != NULL; p++)
        if (strcmp((*p)->name, name) == 0)
            return *p;
    fail_msg("there is no panel %s", name);
    return NULL;
}

void
open_panels(struct fixture *f, uint32_t layers)
{
    struct err err = {0};
    memset(f, 0, sizeof *f);
    fake_forms_run(&f->info, layers);
    f->info.start_values[POLICY_KNOBS] = 0.55;
    assert_ok(scope_open(&f->scope, &f->info, &err), err);
    stream_begin(&f->stream, 1);
    f->requested = (struct settings){.sampling = f->info.sampling, .seed = f->info.seed};
    f->requested.policy = (uint32_t)(scope_policy(f->scope) - f->info.policies);
    memcpy(f->requested.value, f->info.start_values, f->info.n_policies * sizeof f->requested.value[0]);
    f->selection.follow = true;
    f->host = (struct panel_host){.user = f, .command = take_command, .say = take_saying};
    f->view = (struct view){.scope = f->scope,
                            .host = &f->host,
                            .focused = true,
                            .live = true,
                            .selection = &f->selection,
                            .search = "",
                            .requested = &f->requested};
    f->grid.utf8 = true;
}

void
close_panels(struct fixture *f)
{
    if (f->ops != NULL)
        panel_close(f->ops, f->panel);
    grid_close(&f->grid);
    scope_close(f->scope);
    run_info_free(&f->info);
    stream_free(&f->stream);
}

void
see(struct fixture *f)
{
    feed(f->scope, &f->stream, f->fed);
    f->fed = f->stream.n;
}

void
use(struct fixture *f, const char *name)
{
    f->ops = panel_named(name);
    assert_true(panel_open(f->ops, &f->panel));
}

void
draw(struct fixture *f, int rows, int cols)
{
    see(f);
    assert_true(grid_open(&f->grid, rows, cols));
    const struct canvas c = {.rows = rows, .cols = cols, .grid = &f->grid};
    f->ops->draw(f->panel, &f->view, &c);
}

const char *
line(struct fixture *f, int y)
{
    grid_row(&f->grid, y, f->line, sizeof f->line);
    return f->line;
}

int
row_with(struct fixture *f, const char *text)
{
    for (int y = 0; y < f->grid.rows; y++)
        if (strstr(line(f, y), text) != NULL)
            return y;
    return -1;
}

void
press(struct fixture *f, int key)
{
    f->ops->key(f->panel, &f->view, key);
}

int
panel_set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    open_panels(f, FAKE_LAYERS);
    f->stream.run = 1;
    stream_control(&f->stream, "run", "start");
    *state = f;
    return 0;
}

void
panel_passed(struct fixture *f)
{
    f->passed = true;
}

int
panel_tear_down(void **state)
{
    struct fixture *f = *state;
    for (int y = 0; !f->passed && y < f->grid.rows; y++)
        print_message("# |%s|\n", line(f, y));
    close_panels(f);
    free(f);
    return 0;
}

void
prompt(struct fixture *f, const char *const *words, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        say_vocab(&f->stream, (token_t)i, words[i], strlen(words[i]));
        say_token(&f->stream, SOURCE_PROMPT, i, (token_t)i);
    }
}

void
emit_a_round(struct fixture *f)
{
    static const char *const words[] = {"Once", " upon", " king", " man", " who", " had", " sons"};
    prompt(f, words, 2);
    for (token_t t = 2; t < 7; t++)
        say_vocab(&f->stream, t, words[t], strlen(words[t]));
    f->stream.round = 1;
    say_layer(&f->stream, 2, 1, 3, 0.8f);
    say_layer(&f->stream, 2, 2, 2, 0.9f);
    say_draft(&f->stream, 2, 1, 0, 2, 2);
    say_layer(&f->stream, 3, 1, 5, 0.3f);
    say_layer(&f->stream, 3, 2, 6, 0.2f);
    say_layer(&f->stream, 3, 3, 6, 0.9f);
    say_draft(&f->stream, 3, 2, 1, 6, 3);
    say_verdict(&f->stream, 1, true, true);
    say_verdict(&f->stream, 2, false, false);
    say_token(&f->stream, SOURCE_CORRECTION, 3, 4);
    say_layer(&f->stream, 2, FAKE_LAYERS, 2, 0.95f)->layer.probed_by = PROBED_VERIFY;
    say_layer(&f->stream, 3, FAKE_LAYERS, 4, 0.6f)->layer.probed_by = PROBED_VERIFY;
    say_round(&f->stream, 2, 1, 2);
}

void
picture(struct fixture *f, FILE *out, const char *what, int rows, int cols)
{
    char note[200] = "";
    draw(f, rows, cols);
    f->ops->note(f->panel, &f->view, note, (int)sizeof note);
    fprintf(out, "== %s, %dx%d: %s\n", what, cols, rows, note);
    for (int y = 0; y < rows; y++)
        fprintf(out, "%s\n", line(f, y));
}
