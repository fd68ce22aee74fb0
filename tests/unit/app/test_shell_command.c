/* The command line of a segment: a shell splits it into the intended words. */
#include "cli/options/option_table.h"
#include "tests/rigs/test.h"
#include "tests/rigs/trace_events.h"
#include "tui/app/verbs.h"
#include "tui/terminal/terminal.h"

TEST(a_shell_takes_every_word_as_it_was_meant)
{
    struct run_info info;
    fake_run(&info);
    static const char prompt[] = "It's \"so\" $HOME `ls` \\\n* end";
    struct segment s = {.policy = 1, .head = "trained", .sampling = info.sampling, .seed = info.seed};
    for (uint32_t k = 0; k < info.policies[1].n_knobs; k++)
        s.value[k] = info.policies[1].knobs[k].def;
    s.value[0] = 0.7;
    char *command = shell_command(&s, &info, prompt, NULL);
    assert_non_null(command);
    char line[4096], got[4096];
    const char *end = strstr(command, "specscope run ");
    assert_ptr_equal(end, command);
    assert_less((size_t)snprintf(line, sizeof line, "printf '[%%s]' %s", command + 10), sizeof line);
    FILE *shell = popen(line, "r");
    assert_non_null(shell);
    got[fread(got, 1, sizeof got - 1, shell)] = '\0';
    assert_int_equal(pclose(shell), 0);
    char expected[4096];
    snprintf(
        expected, sizeof expected,
        "[run][--policy][specbound][--set][tau=0.7][--set][d_max=3][--set][mode=tpl][--head][trained][--draft][%s][--"
        "profile][%s][--vocab-counts][counts][--heads][%s]"
        "[--lora][an "
        "adapter:0.5][--lora][another][--exact][--backend][cpu][--isa][avx2][--gpu][0][-t][2][--temp][0.7][--top-k][40]"
        "[--top-p][0.95][--seed]"
        "[18446744073709551615][--chat][--chat-special][--system][%s][--chat-var][thinking=false][--chat-var][who=\"it'"
        "s\"][--tools]"
        "[some tools.json][--chat-template][tool_use][--chat-date][2026-03-05 "
        "14:30][--ignore-eos][-c][%u][-n][128][-p][%s]"
        "[--][%s]",
        info.aux[AUX_DRAFT].path, info.profile.path, info.exit_heads.path, info.asked.system, (unsigned)info.ctx,
        prompt, info.model_path);
    assert_string_equal(got, expected);
    free(command);
    run_info_free(&info);
}

static bool
has_option(const char *command, const struct option_row *row)
{
    char name[40], letter[8];
    snprintf(name, sizeof name, " --%s ", row->name);
    snprintf(letter, sizeof letter, " -%c ", row->letter != 0 ? row->letter : '?');
    return strstr(command, name) != NULL || strstr(command, letter) != NULL;
}

/* Every option is either in the copied command, or in this list of options that do not change the result. */
TEST(every_option_of_run_is_copied_or_changes_nothing)
{
    static const char *const nothing[] = {
        "file",          "preset",                                                  /* given by other options */
        "versus",                                                                   /* a row has one setting */
        "probe",         "trace",        "trace-max", "trace-probe", "json", "csv", /* other forms of its results */
        "server-kind",   "key-env",      "key-file",              /* a server is reached by its address */
        "list-policies", "list-presets", "help",      "version"}; /* no run is made */
    struct run_info info, batch, server;
    fake_run(&info);
    fake_run(&batch);
    fake_run(&server);
    snprintf(server.model_path, sizeof server.model_path, "http://127.0.0.1:8080");
    info.asked.quantize = true;
    info.aux[AUX_COMPANION] = info.aux[AUX_DRAFT];
    info.accept_head = info.profile;
    snprintf(batch.model_path, sizeof batch.model_path, "tiny,2,0.75");
    batch.asked.batch = 8;
    batch.asked.threads = 0;
    snprintf(batch.asked.prompts, sizeof batch.asked.prompts, "prompts.jsonl");
    const struct segment s = {
        .policy = 1, .value = {0.3}, .head = "lens", .sampling = info.sampling, .seed = info.seed};
    char *one = shell_command(&s, &info, "hello", NULL), *many = shell_command(&s, &batch, "hello", NULL),
         *served = shell_command(&s, &server, "hello", NULL);
    for (size_t i = 0; i < n_option_rows; i++) {
        const struct option_row *row = &option_rows[i];
        bool passed_over = (row->commands & COMMAND_RUN) == 0;
        for (size_t k = 0; k < sizeof nothing / sizeof nothing[0]; k++)
            passed_over = passed_over || strcmp(row->name, nothing[k]) == 0;
        if (!passed_over && !has_option(one, row) && !has_option(many, row) && !has_option(served, row))
            fail_msg("--%s is not copied", row->name);
    }
    assert_lacks(strstr(one, "--quantize") + 1, "--quantize"); /* each option occurs once */
    assert_lacks(many, " -t ");                                /* the program chose the number of threads */
    free(one);
    free(many);
    free(served);
    run_info_free(&info);
    run_info_free(&batch);
    run_info_free(&server);
}

TEST(the_clipboard_receives_base64)
{
    static const struct {
        const char *text, *code;
    } table[] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foobar\xff", "Zm9vYmFy/w=="}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char *got = clipboard_sequence(table[i].text, strlen(table[i].text)), expected[64];
        snprintf(expected, sizeof expected, "\033]52;c;%s\a", table[i].code);
        assert_non_null(got);
        assert_string_equal(got, expected);
        free(got);
    }
    char *large = calloc(1, CLIPBOARD_MOST + 1);
    assert_non_null(large);
    assert_null(clipboard_sequence(large, CLIPBOARD_MOST + 1));
    char *most = clipboard_sequence(large, CLIPBOARD_MOST);
    assert_non_null(most);
    free(most);
    free(large);
}
