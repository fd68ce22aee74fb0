/* Draws every kind of figure from committed traces and benchmarks. The shapes are compared with reviewed golden files
 * (tests/golden/figures; UPDATE=1 rewrites them). Inputs that no figure can be made from are refused. */
#include <math.h>

#include "base/rng.h"
#include "tests/rigs/folders.h"
#include "tests/rigs/scope_events.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"
#include "tests/rigs/trace_checks.h"
#include "traces/reader.h"
#include "tui/figures/figure.h"
#include "tui/figures/record.h"

#define TRACES         "tests/screens/traces/"
#define GOLDENS        "tests/golden/figures"
#define MILLIMETRES(n) ((n)*72 / 25.4)
#define FIGURE_OPTIONS ((struct figure_options){.from = -1, .to = -1, .seq = -1})

static const struct golden {
    const char *file, *kind, *inputs[3];
    struct figure_options options;
} goldens[] = {
    {"layers.txt", "layers", {TRACES "specbound"}, {.width = MILLIMETRES(85), .from = 43, .to = 49, .seq = -1}},
    {"layers-rejected.txt", "layers", {TRACES "turned"}, {.width = MILLIMETRES(100), .from = 52, .to = 61, .seq = -1}},
    {"layers-many.txt", "layers", {TRACES "turned"}, {.width = MILLIMETRES(60), .from = 40, .to = 79, .seq = -1}},
    {"layers-batch.txt", "layers", {TRACES "batch"}, {.width = MILLIMETRES(85), .from = 15, .to = 20, .seq = 2}},
    {"series-judged.txt", "series", {TRACES "sv"}, {.width = MILLIMETRES(85), .from = -1, .to = -1, .seq = -1}},
    {"series.txt", "series", {TRACES "turned"}, {.from = -1, .to = -1, .seq = -1}},
    {"series-strips.txt", "series", {TRACES "del"}, {.width = MILLIMETRES(85), .from = 3, .to = 9, .seq = -1}},
    {"exits.txt", "exits", {TRACES "turned"}, {.from = -1, .to = -1, .seq = -1}},
    {"exits-narrow.txt", "exits", {TRACES "swift"}, {.width = MILLIMETRES(85), .from = -1, .to = -1, .seq = -1}},
    {"positions.txt", "positions", {TRACES "specdecpp"}, {.from = -1, .to = -1, .seq = -1}},
    {"positions-narrow.txt", "positions", {TRACES "sd"}, {.width = MILLIMETRES(85), .from = -1, .to = -1, .seq = -1}},
    {"positions-old.txt", "positions", {TRACES "swift"}, {.from = -1, .to = -1, .seq = -1}},
    {"reliability.txt", "reliability", {TRACES "turned"}, {.from = -1, .to = -1, .seq = -1}},
    {"reliability-moving.txt", "reliability", {TRACES "del"}, {.from = -1, .to = -1, .seq = -1}},
    {"mask.txt", "mask", {TRACES "swift"}, {.from = -1, .to = -1, .seq = -1}},
    {"grid-one.txt", "grid", {GOLDENS "/one.csv"}, {.from = -1, .to = -1, .seq = -1}},
    {"grid.txt", "grid", {GOLDENS "/two.csv"}, {.from = -1, .to = -1, .seq = -1}},
    {"grid-three.txt", "grid", {GOLDENS "/three.csv"}, {.from = -1, .to = -1, .seq = -1, .measure = "etpl"}},
    {"pareto.txt", "pareto", {GOLDENS "/two.csv"}, {.from = -1, .to = -1, .seq = -1}},
    {"pareto-axes.txt",
     "pareto",
     {GOLDENS "/three.csv", TRACES "turned"},
     {.from = -1, .to = -1, .seq = -1, .axes = "acceptance_rate,speedup"}},
    {"score.txt", "score", {GOLDENS "/score.json"}, {.from = -1, .to = -1, .seq = -1}},
    {"score-narrow.txt", "score", {GOLDENS "/score.json"}, {.width = MILLIMETRES(85), .from = -1, .to = -1, .seq = -1}},
    {"versus.txt", "versus", {TRACES "swift", TRACES "del"}, {.from = -1, .to = -1, .seq = -1}},
    {"versus-narrow.txt",
     "versus",
     {TRACES "turned", TRACES "del"},
     {.width = MILLIMETRES(85), .from = -1, .to = -1, .seq = -1, .caption = "A caption of one's own."}},
};

static size_t
inputs_of(const struct golden *g)
{
    size_t n = 0;
    while (n < 3 && g->inputs[n] != NULL)
        n++;
    return n;
}

/* ---- a drawing as text ---- */

static double
hundredth(double value) /* never "-0.00" */
{
    return value > -0.005 && value < 0.005 ? 0 : value;
}

static void
list_pen(const struct pen *pen, FILE *out)
{
    static const char *const dashes[DASHES] = {"", " long", " short", " dots"};
    if (pen->fill != NO_COLOUR)
        fprintf(out, " fill %06x", (unsigned)pen->fill);
    if (pen->stroke != NO_COLOUR)
        fprintf(out, " line %06x %.2f%s", (unsigned)pen->stroke, pen->line > 0 ? pen->line : LINE_FINE,
                dashes[pen->dash]);
}

static void
list_text(const struct drawing *d, const struct shape *s, FILE *out)
{
    static const char *const anchors[] = {"left", "middle", "right"};
    const struct lettering *l = &s->lettering;
    fprintf(out, " %s %.2f %06x%s%s \"%s\"", anchors[l->anchor], l->size, (unsigned)l->colour, l->bold ? " bold" : "",
            l->upwards ? " upwards" : "", d->texts + s->text);
}

/* Writes one line per shape, with hundredths of a point. Returns false if writing failed. */
static bool
drawing_list(const struct drawing *d, FILE *out)
{
    static const char *const names[] = {"path", "circle", "text"};
    fprintf(out, "drawing %.2f %.2f\n", d->width, d->height);
    for (size_t i = 0; i < d->n_shapes; i++) {
        const struct shape *s = &d->shapes[i];
        fputs(s->closed ? "area" : names[s->kind], out);
        for (size_t k = 0; k < s->n; k++)
            fprintf(out, " %.2f,%.2f", hundredth(d->points[s->first + k].x), hundredth(d->points[s->first + k].y));
        if (s->kind == SHAPE_CIRCLE)
            fprintf(out, " r %.2f", s->radius);
        if (s->kind == SHAPE_TEXT)
            list_text(d, s, out);
        else
            list_pen(&s->pen, out);
        fputc('\n', out);
    }
    return ferror(out) == 0;
}

/* Returns the list of shapes without the program's version; the caller frees it. */
static char *
list_of(const struct drawing *d)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    assert_true(drawing_list(d, out));
    assert_int_equal(fclose(out), 0);
    for (char *at; (at = strstr(text, "specscope " SPECSCOPE_VERSION)) != NULL;)
        memmove(at + 9, at + 10 + strlen(SPECSCOPE_VERSION), strlen(at + 10 + strlen(SPECSCOPE_VERSION)) + 1);
    return text;
}

static void
same_lines(const char *file, const char *wanted, const char *got)
{
    for (size_t line = 1; *wanted != '\0' || *got != '\0'; line++) {
        const size_t a = strcspn(wanted, "\n"), b = strcspn(got, "\n");
        if (a != b || memcmp(wanted, got, a) != 0)
            fail_msg("%s/%s:%zu: wanted\n%.*s\nbut there is\n%.*s", GOLDENS, file, line, (int)a, wanted, (int)b, got);
        wanted += a + (wanted[a] == '\n');
        got += b + (got[b] == '\n');
    }
}

TEST(figures_are_as_they_were_looked_at)
{
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const struct golden *g = &goldens[i];
        struct drawing d;
        struct err err = {0};
        if (!figure_draw(&d, g->kind, g->inputs, inputs_of(g), &g->options, &err))
            fail_msg("%s: %s", g->file, err.text);
        char *list = list_of(&d);
        drawing_close(&d);
        if (getenv("UPDATE") != NULL)
            write_text(GOLDENS, g->file, list);
        char *wanted = read_text(GOLDENS, g->file);
        same_lines(g->file, wanted, list);
        free(wanted);
        free(list);
    }
}

#define WORD(kind) #kind,
static const char *const figure_kind_names[] = {FIGURE_KINDS(WORD) NULL};

TEST(every_kind_has_a_golden_figure_and_a_line_about_it)
{
    for (size_t k = 0; figure_kind_names[k] != NULL; k++) {
        bool found = false;
        for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++)
            found = found || strcmp(goldens[i].kind, figure_kind_names[k]) == 0;
        assert_true(found);
        assert_non_null(figure_kind_what(figure_kind_names[k]));
    }
    assert_null(figure_kind_what("pie"));
}

/* All coordinates are numbers within the paper. */
TEST(shapes_lie_on_the_paper)
{
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const struct golden *g = &goldens[i];
        struct drawing d;
        struct err err = {0};
        assert_ok(figure_draw(&d, g->kind, g->inputs, inputs_of(g), &g->options, &err), err);
        for (size_t k = 0; k < d.n_shapes; k++) {
            const struct shape *s = &d.shapes[k];
            for (size_t p = s->first; p < s->first + s->n; p++)
                if (!(d.points[p].x >= -0.01 && d.points[p].x <= d.width + 0.01 && d.points[p].y >= -0.01 &&
                      d.points[p].y <= d.height + 0.01))
                    fail_msg("%s: shape %zu has a point at %g, %g of %g, %g", g->file, k, d.points[p].x, d.points[p].y,
                             d.width, d.height);
            if (s->kind != SHAPE_TEXT || s->lettering.upwards)
                continue;
            double wide = lettering_width(&s->lettering, d.texts + s->text);
            if (s->lettering.room > 0)
                wide = fmin(wide, s->lettering.room);
            const double left = d.points[s->first].x - (s->lettering.anchor == ANCHOR_MIDDLE  ? wide / 2
                                                        : s->lettering.anchor == ANCHOR_RIGHT ? wide
                                                                                              : 0);
            if (left < -1 || left + wide > d.width + 1)
                fail_msg("%s: \"%s\" goes from %g to %g of %g", g->file, d.texts + s->text, left, left + wide, d.width);
        }
        drawing_close(&d);
    }
}

/* ---- counts ---- */

static const struct record_wanted everything = {.seq = -1, .to = UINT32_MAX, .scope_to = UINT32_MAX};

TEST(a_record_contains_the_events_of_the_trace)
{
    static const char *const traces[] = {TRACES "specbound", TRACES "swift", TRACES "del", TRACES "turned"};
    for (size_t i = 0; i < 4; i++) {
        struct record r;
        struct err err = {0};
        struct trace_reader *reader;
        struct event e;
        uint64_t drafts = 0, drafted = 0, verified = 0, accepted = 0, emitted = 0, rounds = 0, got_verified = 0,
                 got_accepted = 0;
        assert_ok(record_open(&r, traces[i], &everything, &err), err);
        assert_ok(trace_reader_open(&reader, traces[i], false, &err), err);
        while (trace_reader_next(reader, &e, &err)) {
            drafts += e.type == EVENT_TOKEN && e.token.source == SOURCE_DRAFT;
            if (e.type != EVENT_ROUND)
                continue;
            rounds++;
            drafted += e.round_end.drafted;
            verified += e.round_end.verified;
            accepted += e.round_end.accepted;
            emitted += e.round_end.emitted;
        }
        for (size_t k = 0; k < r.n_steps; k++) {
            got_verified += r.steps[k].accepted >= 0;
            got_accepted += r.steps[k].accepted == 1;
            assert_at_least(r.steps[k].depth, 1);
            assert_true(r.steps[k].accepted != 1 || r.steps[k].tried);
        }
        assert_int_equal(r.n_drafts, drafts);
        assert_int_equal(r.n_steps, drafted);
        assert_int_equal(got_verified, verified);
        assert_int_equal(got_accepted, accepted);
        assert_int_equal(r.n_rounds, rounds);
        assert_int_equal(r.n_tokens, emitted + 1); /* the prefill emits one token */
        for (size_t k = 1; k < r.n_tokens; k++)
            assert_int_equal(r.tokens[k].pos, r.tokens[k - 1].pos + 1);
        trace_reader_close(reader);
        record_close(&r);
    }
}

/* A forecast of a block drafter's confidence head takes the place of the draft's probability, 0.75. */
TEST_WITH(a_record_has_the_forecasts_of_a_confidence_head, folder_set_up, folder_tear_down)
{
    struct run_info info;
    struct stream s;
    struct record r;
    struct err err = {0};
    char path[256];
    fake_run(&info);
    stream_begin(&s, 1);
    decode_begin(&(struct decoder){0}, &s, &info, 3);
    s.round = 1;
    for (uint32_t i = 0; i < 2; i++)
        say_block(&s, 4 + i, 1, 40, 0.5f)->layer.acceptance = i == 0 ? 0.25f : NAN;
    for (int i = 0; i < 2; i++)
        say_draft(&s, 4 + (uint32_t)i, i + 1, i, 40, -1);
    say_round(&s, 0, 0, 1);
    write_trace(*state, &s, true, path);
    assert_ok(record_open(&r, path, &everything, &err), err);
    assert_int_equal(r.n_steps, 2);
    assert_number_equal(r.steps[0].confidence, 0.25f);
    assert_number_equal(r.steps[1].confidence, 0.75f);
    record_close(&r);
    stream_free(&s);
    run_info_free(&info);
}

TEST(a_figure_marks_the_changes_after_the_first_round)
{
    struct record r;
    struct err err = {0};
    assert_ok(record_open(&r, TRACES "turned", &everything, &err), err);
    assert_string_equal(r.policy->name, "specbound");
    assert_near(r.settings->knobs[policy_knob_index(r.policy, "tau")], 0.9, 1e-9);
    assert_near(record_setting(&r, 14)->knobs[policy_knob_index(r.policy, "tau")], 0.3, 1e-9);
    assert_near(record_setting(&r, 15)->knobs[policy_knob_index(r.policy, "d_max")], 7, 1e-9);
    assert_string_equal(record_setting(&r, 36)->policy->name, "layerskip");
    static const char *const turned[] = {"τ 0.9 → 0.3", "α 0.2 → 0.05", "d_max 5 → 7", "τ 0.3 → 0.6",
                                         "policy layerskip"};
    assert_int_equal(r.n_changes, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(r.changes[i].text, turned[i]);
    record_close(&r);
    struct record_wanted later = everything;
    later.from = 20;
    later.to = 25;
    assert_ok(record_open(&r, TRACES "turned", &later, &err), err);
    assert_int_equal(r.n_rounds, 6);
    assert_near(r.settings->knobs[policy_knob_index(r.policy, "d_max")], 7, 1e-9);
    assert_int_equal(r.n_changes, 1);
    record_close(&r);
}

/* ---- inputs that are refused ---- */

static void
refused(const char *kind, const char *const *inputs, size_t n, struct figure_options o, const char *words)
{
    struct drawing d;
    struct err err = {0};
    assert_false(figure_draw(&d, kind, inputs, n, &o, &err));
    drawing_close(&d);
    if (err.kind == ERR_NONE || strstr(err.text, words) == NULL || strchr(err.text, '\n') != NULL)
        fail_msg("%s: said \"%s\", wanted something of \"%s\"", kind, err.text, words);
}
#define INPUTS(...) (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

TEST_WITH(what_can_not_be_drawn_says_what_to_do, folder_set_up, folder_tear_down)
{
    const char *folder = *state;
    char path[300];
    struct figure_options o = FIGURE_OPTIONS;
    refused("pie", INPUTS(TRACES "del"), o,
            "layers, series, exits, positions, reliability, mask, grid, pareto, versus and score");
    refused("mask", INPUTS(TRACES "del"), o, "--policy swift");
    refused("layers", INPUTS(TRACES "swift"), o, "--probe all");
    refused("grid", INPUTS(TRACES "del"), o, "bench --grid");
    refused("versus", INPUTS(TRACES "del"), o, "two traces");
    refused("score", INPUTS(TRACES "del"), o, "score --texts FILE --json FILE");
    refused("score", INPUTS(GOLDENS "/two.csv"), o, "not a report");
    refused("series", INPUTS(GOLDENS "/two.csv"), o, "--trace DIR");
    refused("series", INPUTS(TRACES "none"), o, "No such file");
    o.from = 1000;
    refused("series", INPUTS(TRACES "del"), o, "no round from 1000");
    refused("layers", INPUTS(TRACES "del"), o, "ends before position 1000");
    refused("pareto", INPUTS(GOLDENS "/one.csv", TRACES "del"), o, "no round from 1000");
    refused("grid", INPUTS(GOLDENS "/two.csv"), o, "--from");
    o = FIGURE_OPTIONS;
    o.run = 7;
    refused("series", INPUTS(TRACES "del"), o, "run 7");
    o = FIGURE_OPTIONS;
    o.seq = 3;
    refused("series", INPUTS(TRACES "del"), o, "sequence 4");
    o = FIGURE_OPTIONS;
    o.width = MILLIMETRES(30);
    refused("series", INPUTS(TRACES "del"), o, "45mm at least");
    o.width = MILLIMETRES(40);
    o.from = 0;
    o.to = 900;
    refused("layers", INPUTS(TRACES "turned"), o, "--width");
    o = FIGURE_OPTIONS;
    o.measure = "beauty";
    refused("grid", INPUTS(GOLDENS "/two.csv"), o, "tokens_per_round");
    o = FIGURE_OPTIONS;
    o.axes = "speedup";
    refused("pareto", INPUTS(GOLDENS "/two.csv"), o, "comma");
    o.axes = "speedup,etpl";
    refused("pareto", INPUTS(TRACES "del"), o, "baseline");
    snprintf(path, sizeof path, "%s/x.csv", folder);
    o = FIGURE_OPTIONS;
    static const char *const tables[][2] = {{"", "no table of a benchmark"},
                                            {"a,b\r\n1,2\r\n", "no columns policy and params"},
                                            {"policy,params,speedup\r\n", "no line below"},
                                            {"policy,params,speedup\r\nar,1\r\n", "different numbers of fields"},
                                            {"policy,params,speedup\r\nar,\"x\"y,1\r\n", "is no CSV"},
                                            {"policy,params,speedup\r\nar,,1\r\n", "no knob was swept"},
                                            {"policy,params\r\nar,a=1\r\nar,a=2\r\n", "no column 'speedup'"}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        write_text(folder, "x.csv", tables[i][0]);
        refused("grid", INPUTS(path), o, tables[i][1]);
    }
}

TEST_WITH(a_best_point_must_stand_out, folder_set_up, folder_tear_down)
{
    const char *folder = *state;
    static const struct {
        const char *table;
        bool best;
    } cases[] = {{"policy,params,speedup,speedup_se\nx,a=1,1.5,0.01\nx,a=2,1.2,0.01\n", true},
                 {"policy,params,speedup,speedup_se\nx,a=1,1.5,0.2\nx,a=2,1.2,0.2\n", false},
                 {"policy,params,speedup,speedup_se\nx,a=1,1.5,0.08\nx,a=2,1.2,0.08\n", true},
                 {"policy,params,speedup,speedup_se,samples\nx,a=1,1.5,0.08,3\nx,a=2,1.2,0.08,3\n", false},
                 {"policy,params,speedup\nx,a=1,1.5\nx,a=2,1.2\n", true}};
    char path[300];
    const char *input = path;
    const struct figure_options o = FIGURE_OPTIONS;
    snprintf(path, sizeof path, "%s/best.csv", folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct drawing d;
        struct err err = {0};
        write_text(folder, "best.csv", cases[i].table);
        assert_ok(figure_draw(&d, "grid", &input, 1, &o, &err), err);
        bool ring = false;
        for (size_t k = 0; k < d.n_shapes; k++)
            ring = ring || (d.shapes[k].kind == SHAPE_CIRCLE && d.shapes[k].pen.stroke != NO_COLOUR);
        assert_int_equal(ring, cases[i].best);
        drawing_close(&d);
    }
}

/* A trace can contain any bytes: drawing it gives a figure or an error message. */
TEST_WITH(broken_traces_do_no_harm, folder_set_up, folder_tear_down)
{
    const char *folder = *state, *const tables[] = {"tokens.csv",   "rounds.csv", "series.csv",
                                                    "controls.csv", "vocab.csv",  "layers.csv"};
    static const char *const traces[] = {TRACES "swift", TRACES "turned", TRACES "sv", TRACES "batch"};
    static const char marks[] = "0123456789-.,\"\nxe\\";
    uint64_t random = seed_or(21);
    const int times = getenv("SPECSCOPE_LONG") != NULL ? 400 : 24;
    for (int i = 0; i < times; i++) {
        const char *trace = traces[splitmix64(&random) % 4], *broken = tables[splitmix64(&random) % 6];
        char *run = read_text(trace, "run.json");
        write_text(folder, "run.json", run);
        free(run);
        for (int k = 0; k < 6; k++) {
            char *text = read_text(trace, tables[k]);
            const size_t n = strlen(text);
            for (int hits = tables[k] == broken ? 1 + (int)(splitmix64(&random) % 4) : 0; hits > 0; hits--)
                text[splitmix64(&random) % n] = marks[splitmix64(&random) % (sizeof marks - 1)];
            write_text(folder, tables[k], text);
            free(text);
        }
        for (int k = 0; figure_kind_names[k] != NULL; k++) {
            const char *inputs[] = {folder, TRACES "del"};
            const struct figure_options o = FIGURE_OPTIONS;
            struct drawing d;
            struct err err = {0};
            const bool two = strcmp(figure_kind_names[k], "versus") == 0 || strcmp(figure_kind_names[k], "pareto") == 0;
            const bool drawn = figure_draw(&d, figure_kind_names[k], inputs, two ? 2 : 1, &o, &err);
            if (!drawn)
                assert_int_not_equal(err.text[0], '\0');
            drawing_close(&d);
        }
    }
}
