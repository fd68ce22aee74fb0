/* The panel of `:score` with a report of four drafters: pictures at several sizes (tests/golden/panels/score.txt;
 * UPDATE=1 rewrites them), and what its keys do. */
#include "engine/tune/score_report.h"
#include "tests/rigs/panel_rig.h"
#include "tests/rigs/test.h"

#define GOLDEN "tests/golden/panels/score.txt"

static struct score_report report;

static struct score_part
part(uint64_t tokens, double per_round, double speed, double reach, enum difference_verdict verdict)
{
    return (struct score_part){tokens, {per_round, 0.04, 9}, {speed, speed - reach, speed + reach, 9, verdict}};
}

static void
row(const char *policy, const char *drafter, enum score_kind kind, struct score_part all)
{
    struct score_row *r = &report.row[report.n++];
    *r = (struct score_row){.kind = kind, .best = true, .all = all, .why = "at most 0.81 × plain decoding"};
    snprintf(r->preset.policy, sizeof r->preset.policy, "%s", policy);
    snprintf(r->drafter, sizeof r->drafter, "%s", drafter);
    snprintf(r->setting, sizeof r->setting, "k=4 draft_vocab=4096");
    r->preset.n_set = 1;
    r->preset.set[0] = (struct preset_knob){"k", "4"};
    r->depth[0] = r->category[1] = all;
    r->depth[2] = part(500, 1.5, all.speedup.value / 2, 0.1, DIFFERENCE_LESS);
    r->acceptance = 0.5f;
    for (uint32_t i = 0; i < SCORE_SEQUENCES; i++) {
        r->speedup_at[i] = (float)(all.speedup.value * 1.4 / (double)(i + 1));
        r->need_at[i] = 0.2f * (float)(i + 1);
    }
}

static void
show(struct fixture *f)
{
    report = (struct score_report){.conversations = 40, .of = 100, .read = 38412, .left_s = 21, .in_time = true};
    report.own = (struct estimate){0.991, 0.01, 2048};
    report.n_categories = 2;
    snprintf(report.model, sizeof report.model, "smollm2");
    snprintf(report.category[1], sizeof report.category[1], "code");
    row("suffix", "", SCORE_EXACT, part(900, 1.38, 1.05, 0.2, DIFFERENCE_NOISE));
    row("eagle", "smollm2-eagle", SCORE_EXACT, part(900, 2.31, 1.62, 0.1, DIFFERENCE_MORE));
    row("specbound", "", SCORE_NOT, part(0, 0, 0, 0, DIFFERENCE_UNKNOWN));
    row("layerskip", "", SCORE_ESTIMATED, part(900, 1.21, 0.7, 0.05, DIFFERENCE_LESS));
    use(f, "score");
    f->view.score = &report;
}

PANEL_TEST(a_report_looks_as_it_did)
{
    struct fixture *f = *state;
    char *got = NULL, wanted[1 << 14] = "";
    size_t n;
    FILE *out = open_memstream(&got, &n), *golden = fopen(GOLDEN, getenv("UPDATE") != NULL ? "w+" : "r");
    assert_non_null(out);
    assert_non_null(golden);
    show(f);
    picture(f, out, "narrow: no axis", 8, 58);
    picture(f, out, "with the axis", 8, 96);
    picture(f, out, "with all columns", 8, 156);
    picture(f, out, "low: two rows", 5, 78);
    press(f, 'b');
    picture(f, out, "acceptance", 8, 104);
    press(f, 'b');
    press(f, 'd');
    press(f, 'd');
    picture(f, out, "the next depth that has answers", 8, 104);
    press(f, 'c');
    picture(f, out, "the category that has answers", 8, 104);
    f->grid.utf8 = false;
    press(f, 'c');
    picture(f, out, "all again, in ASCII", 8, 104);
    f->grid.utf8 = true;
    fclose(out);
    if (getenv("UPDATE") != NULL)
        assert_at_least(fputs(got, golden), 0);
    rewind(golden);
    wanted[fread(wanted, 1, sizeof wanted - 1, golden)] = '\0';
    fclose(golden);
    assert_string_equal(got, wanted);
    free(got);
}

PANEL_TEST(enter_takes_the_row_at_the_cursor_unless_scoring_runs)
{
    struct fixture *f = *state;
    show(f);
    f->view.live = true;
    assert_null(strstr(f->ops->brief_now(&f->view), "Enter"));
    report.left_s = 0;
    assert_contains(f->ops->brief_now(&f->view), "Enter take");
    press(f, INPUT_DOWN);
    press(f, INPUT_ENTER);
    assert_string_equal(f->command, "score take 2");
}

PANEL_TEST(f_shows_the_options_of_other_engines_until_escape)
{
    struct fixture *f = *state;
    const struct policy_ops eagle = {.name = "eagle", .command = {"llama-server -m <target> -md <draft> -k <k>"}};
    const struct policy_ops *const policies[] = {&eagle, NULL};
    show(f);
    f->view.policies = policies;
    press(f, 'f');
    draw(f, 12, 104);
    assert_string_equal(line(f, 2), "  llama-server -m smollm2 -md smollm2-eagle -k 4");
    press(f, INPUT_ESCAPE);
    draw(f, 8, 104);
    assert_contains(line(f, 0), "best setting");
    assert_false(f->ops->key(f->panel, &f->view, INPUT_ESCAPE));
}
