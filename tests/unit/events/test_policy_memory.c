/* What policies learned goes from session to session, and through a folder from command to command. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/events/policy_memory.h"

/* A policy that learns one word. */
static char *
save(const struct policy *p)
{
    const char *word = p->state;
    return word[0] != '\0' ? strdup(word) : NULL;
}

static bool
load(struct policy *p, const char *text, struct err *err)
{
    if (strlen(text) > 8)
        return err_set(err, ERR_WORK, "not a word");
    memcpy(p->state, text, strlen(text) + 1);
    return true;
}

static const struct policy_ops learner = {
    .name = "learner", .title = "", .paper = "", .state_size = 16, .save = save, .load = load};
static const struct policy_ops plain = {.name = "plain", .title = "", .paper = ""};

static struct policy
open_policy(const struct policy_ops *ops, const char *word)
{
    struct policy p;
    struct err err = {0};
    const struct sampling greedy = {.top_p = 1};
    assert_true(policy_open(&p, ops, &(struct model_info){.layers = 4}, &greedy, &err));
    if (p.state != NULL)
        snprintf(p.state, 16, "%s", word);
    return p;
}

static void
assert_recalls(struct policy_memory *m, const char *word)
{
    struct err err = {0};
    struct policy p = open_policy(&learner, "");
    assert_true(policy_memory_recall(m, &p, &err));
    assert_string_equal(p.state, word);
    policy_close(&p);
}

static void
keep(struct policy_memory *m, const char *word)
{
    struct policy p = open_policy(&learner, word);
    policy_memory_keep(m, &p);
    policy_close(&p);
}

static void
test_the_next_session_knows_what_the_last_one_learned(void **state)
{
    (void)state;
    struct policy_memory m = {.folder = NULL}, other = {.folder = NULL};
    struct err err = {0};
    assert_recalls(&m, "");
    keep(&m, "layers");
    assert_recalls(&m, "layers");
    keep(&m, ""); /* a session that learned nothing */
    assert_recalls(&m, "layers");
    assert_recalls(&other, "");
    struct policy p = open_policy(&plain, ""); /* there is nothing to learn */
    assert_true(policy_memory_recall(&m, &p, &err));
    policy_memory_keep(&m, &p);
    policy_close(&p);
    assert_int_equal(m.n, 1);
    assert_true(policy_memory_close(&m, &err) && policy_memory_close(&other, &err));
}

static void
write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void
test_a_folder_keeps_it_by_policy_and_model(void **state)
{
    (void)state;
    char folder[] = "/tmp/specscope-memory-XXXXXX", path[128];
    struct err err = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/learner-00000000000000ab.json", folder);
    struct policy_memory m = {.folder = folder, .model_hash = 0xab};
    keep(&m, "layers");
    assert_int_not_equal(access(path, F_OK), 0); /* written at the end */
    assert_true(policy_memory_close(&m, &err));
    assert_int_equal(access(path, F_OK), 0);

    struct policy_memory next = {.folder = folder, .model_hash = 0xab}, other = {.folder = folder, .model_hash = 0xac};
    assert_recalls(&next, "layers");
    assert_recalls(&other, "");
    assert_true(policy_memory_close(&next, &err) && policy_memory_close(&other, &err));

    write_file(path, "something else altogether");
    struct policy p = open_policy(&learner, "");
    assert_false(policy_memory_recall(&next, &p, &err));
    assert_non_null(strstr(err.text, path));
    assert_non_null(strstr(err.text, "not a word"));
    policy_close(&p);
    assert_true(policy_memory_close(&next, &err));

    unlink(path);
    rmdir(folder);
    static char deep[2000];
    memset(deep, 'd', sizeof deep - 1);
    struct policy_memory too_deep = {.folder = deep};
    assert_false(policy_memory_recall(&too_deep, &p, &err));
    assert_non_null(strstr(err.text, "too long a name"));
    assert_true(policy_memory_close(&too_deep, &err));
    struct policy_memory lost = {.folder = folder}; /* the folder is gone */
    keep(&lost, "layers");
    assert_false(policy_memory_close(&lost, &err));
    assert_non_null(strstr(err.text, folder));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_next_session_knows_what_the_last_one_learned),
        cmocka_unit_test(test_a_folder_keeps_it_by_policy_and_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
