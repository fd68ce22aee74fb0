/* The list of models on this machine: keys, typing, the mouse, and drawing at any size. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"
#include "tui/app/chooser.h"

#define BUNDLED "models/fables-q8_0.gguf"

static void
put_file(const char *home, const char *folders, const char *name)
{
    char path[512];
    size_t n = (size_t)snprintf(path, sizeof path, "%s", home);
    for (const char *at = folders; *at != '\0';) {
        const size_t part = strcspn(at, "/");
        n += (size_t)snprintf(path + n, sizeof path - n, "/%.*s", (int)part, at);
        mkdir(path, 0777);
        at += part + (at[part] == '/');
    }
    snprintf(path + n, sizeof path - n, "/%s", name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("no model", file);
    fclose(file);
}

/* The list contains bundled, hf:org/many:tiny-Q4_0.gguf, hf:org/many:tiny-Q8_0.gguf, a path that ends in wide.gguf. */
static int
make_home(void **state)
{
    char *home = strdup("/tmp/specscope-test-XXXXXX");
    assert_non_null(mkdtemp(home));
    static const char *const variables[] = {"HF_HOME",        "HF_HUB_CACHE",  "HUGGINGFACE_HUB_CACHE",
                                            "XDG_CACHE_HOME", "OLLAMA_MODELS", "LLAMA_CACHE"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    setenv("HOME", home, 1);
    put_file(home, ".cache/huggingface/hub/models--org--many/snapshots/c", "tiny-Q4_0.gguf");
    put_file(home, ".cache/huggingface/hub/models--org--many/snapshots/c", "tiny-Q8_0.gguf");
    put_file(home, ".lmstudio/models/somebody", "wide.gguf");
    *state = home;
    return 0;
}

static int
remove_home(void **state)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", (char *)*state);
    const int status = system(command);
    free(*state);
    return status;
}

static struct model_chooser
begin(struct model_list **list)
{
    struct model_chooser c;
    struct err err = {0};
    assert_ok(model_list_open(list, BUNDLED, &err), err);
    assert_int_equal((*list)->n, 4);
    c = (struct model_chooser){.list = *list};
    return c;
}

static enum chooser_result
press(struct model_chooser *c, int key)
{
    return model_chooser_input(c, &(struct input){.key = key});
}

static enum chooser_result
type(struct model_chooser *c, const char *text)
{
    enum chooser_result result = CHOOSER_STAYS;
    for (; *text != '\0'; text++)
        result = press(c, *text);
    return result;
}

static void
draw(struct model_chooser *c, int rows, int cols, bool utf8)
{
    struct grid g = {.utf8 = utf8};
    assert_true(grid_open(&g, rows, cols));
    model_chooser_draw(c, &(struct canvas){.rows = rows, .cols = cols, .grid = &g});
    grid_close(&g);
}

static void
wait_for_looks(struct model_list *l)
{
    for (int i = 0; i < 60000 && model_list_seen(l) < l->n; i++)
        usleep(5000);
    assert_int_equal(model_list_seen(l), l->n);
}

TEST(the_bundled_model_is_first_and_unusable_files_have_a_reason)
{
    struct model_list *l;
    struct model_summary look;
    begin(&l);
    assert_string_equal(l->at[0].name, "bundled");
    assert_string_equal(l->at[1].name, "hf:org/many:tiny-Q4_0.gguf");
    wait_for_looks(l);
    assert_true(model_list_look(l, 0, &look));
    assert_true(look.runs);
    assert_string_equal(look.arch, "llama");
    assert_int_equal(look.layers, 16);
    assert_int_equal(look.ctx, look.ctx_train);
    assert_true(model_list_look(l, 3, &look));
    assert_false(look.runs);
    assert_contains(look.why, "GGUF");
    assert_lacks(look.why, "wide.gguf"); /* the list shows the name before the reason */
    model_list_close(l);
}

TEST(a_model_that_memory_is_short_for_gets_a_shorter_context)
{
    struct model_summary whole, some, none;
    model_summary(&whole, BUNDLED, UINT64_MAX);
    assert_int_equal(whole.ctx, whole.ctx_train);
    uint64_t least = 0, most = UINT32_MAX; /* search for the memory that the trained context needs */
    while (least + 1 < most) {
        model_summary(&some, BUNDLED, (least + most) / 2);
        if (some.ctx == some.ctx_train)
            most = (least + most) / 2;
        else
            least = (least + most) / 2;
    }
    model_summary(&some, BUNDLED, most - 1);
    assert_true(some.runs);
    assert_int_equal(some.ctx, some.ctx_train / 2);
    assert_string_equal(some.why, "");
    model_summary(&none, BUNDLED, 1000);
    assert_true(none.runs);
    assert_int_equal(none.ctx, 0);
    assert_contains(none.why, "memory are available");
}

TEST(typing_leaves_the_models_that_have_all_words)
{
    struct model_list *l;
    struct model_chooser c = begin(&l);
    type(&c, "TINY q8");
    assert_int_equal(c.at, 2);
    assert_true(model_chooser_listed(&c, 2));
    assert_false(model_chooser_listed(&c, 1));
    assert_int_equal(press(&c, INPUT_DOWN), CHOOSER_STAYS); /* the list contains no other model */
    assert_int_equal(press(&c, INPUT_ENTER), CHOOSER_CHOSEN);
    press(&c, INPUT_CTRL('u'));
    assert_int_equal(press(&c, INPUT_UP), CHOOSER_MOVED);
    assert_int_equal(c.at, 1);
    type(&c, "nothing such");
    assert_int_equal(press(&c, INPUT_ENTER), CHOOSER_STAYS);
    draw(&c, 24, 80, true);
    press(&c, INPUT_ESCAPE);
    assert_string_equal(c.filter, "");
    assert_int_equal(press(&c, INPUT_ESCAPE), CHOOSER_LEFT);
    model_list_close(l);
}

TEST(q_closes_the_list_unless_a_model_begins_with_it)
{
    char *home = *state;
    struct model_list *l;
    struct model_chooser c = begin(&l);
    assert_int_equal(press(&c, 'q'), CHOOSER_LEFT); /* Q8_0 begins no name */
    type(&c, "ti");
    assert_int_equal(press(&c, 'q'), CHOOSER_MOVED); /* after another letter, q is part of the name */
    model_list_close(l);
    put_file(home, ".cache/huggingface/hub/models--Qwen--Q/snapshots/c", "config.json");
    struct err err = {0};
    assert_ok(model_list_open(&l, BUNDLED, &err), err);
    c = (struct model_chooser){.list = l};
    assert_int_equal(press(&c, 'q'), CHOOSER_MOVED);
    assert_string_equal(l->at[c.at].name, "hf:Qwen/Q");
    assert_int_equal(press(&c, 'q'), CHOOSER_LEFT);
    model_list_close(l);
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s/.cache/huggingface/hub/models--Qwen--Q'", home);
    assert_int_equal(system(command), 0);
}

TEST(a_click_selects_a_model_and_two_open_it)
{
    struct model_list *l;
    struct model_chooser c = begin(&l);
    draw(&c, 24, 80, true);
    struct input click = {.key = INPUT_MOUSE, .mouse = MOUSE_PRESS, .y = c.y + 2};
    assert_int_equal(model_chooser_input(&c, &click), CHOOSER_MOVED);
    assert_int_equal(c.at, 2);
    click.mouse = MOUSE_DOUBLE;
    assert_int_equal(model_chooser_input(&c, &click), CHOOSER_CHOSEN);
    click.y = c.y + 4; /* a row below the last model */
    assert_int_equal(model_chooser_input(&c, &click), CHOOSER_STAYS);
    click.mouse = MOUSE_WHEEL_UP;
    assert_int_equal(model_chooser_input(&c, &click), CHOOSER_MOVED);
    assert_int_equal(c.at, 1);
    type(&c, "wide");
    draw(&c, 24, 80, true);
    click = (struct input){.key = INPUT_MOUSE, .mouse = MOUSE_PRESS, .y = c.y};
    model_chooser_input(&c, &click);
    assert_int_equal(c.at, 3); /* the first row is the first model that is listed */
    model_list_close(l);
}

TEST(the_list_of_models_can_be_drawn_at_any_size_after_any_keys)
{
    static const int keys[] = {
        INPUT_UP, INPUT_DOWN, INPUT_PAGE_UP, INPUT_PAGE_DOWN, INPUT_HOME, INPUT_END,  INPUT_BACKSPACE, INPUT_ESCAPE,
        'q',      'o',        ' ',           0x20ac,          't',        INPUT_ENTER};
    uint64_t random = seed_or(7);
    struct model_list *l;
    struct model_chooser c = begin(&l);
    for (int i = 0; i < 400; i++) {
        press(&c, keys[splitmix64(&random) % (sizeof keys / sizeof *keys)]);
        if (splitmix64(&random) % 8 == 0)
            snprintf(c.message, sizeof c.message, "why not");
        draw(&c, 1 + (int)(splitmix64(&random) % 60), 1 + (int)(splitmix64(&random) % 260), i % 2 == 0);
        assert_less(c.at, l->n);
    }
    model_list_close(l);
}

FIXTURE(make_home, remove_home);
