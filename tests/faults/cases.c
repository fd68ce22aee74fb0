#include "tests/faults/cases.h"

#include <stdio.h>
#include <string.h>

#include "tests/faults/page.h"

#define DRAFT  "@models/fables-draft-q8_0.gguf"
#define FOLDER "@tests/golden/models/llama3"

const struct fault_case fault_cases[] = {
    {"info", .words = {"info", DRAFT}},
    {"info of a folder", .words = {"info", FOLDER}},
    {"tokenize", .words = {"tokenize", "--pieces", DRAFT}, .in = "text"},
    {"tokenize with a folder", .words = {"tokenize", FOLDER}, .in = "text"},
    {"run", .words = {"run", "-t", "1", "-n", "4", "--policy", "layerskip", "-p", "Three mice", DRAFT}},
    {"run --chat",
     .words = {"run", "-t", "1", "-n", "4", "--policy", "ar", "--chat", "--system", "Be brief.", "-p", "a", "%chat"}},
    {"run --batch",
     .words = {"run", "-t", "1", "-n", "4", "--policy", "layerskip", "--batch", "2", "--prompts", "%two.jsonl", DRAFT}},
    {"run --versus",
     .words = {"run", "-t", "1", "-n", "4", "--policy", "layerskip", "--versus", "ar", "-p", "Three mice", DRAFT}},
    {"run --lora", .words = {"run", "-t", "1", "-n", "4", "--policy", "ar", "--lora", "@tests/golden/lora/llama", "-p",
                             "a", "@tests/golden/models/llama"}},
    {"run of GPTQ", .words = {"run", "-t", "1", "-n", "4", "--policy", "ar", "-p", "a", "@tests/golden/packed/gptq"}},
    {"run of AWQ", .words = {"run", "-t", "1", "-n", "4", "--policy", "ar", "-p", "a", "@tests/golden/packed/awq"}},
    {"run of a mixture",
     .words = {"run", "-t", "1", "-n", "4", "--policy", "ar", "-p", "a", "@tests/golden/families/mixtral"}},
    {"run of a folder", .words = {"run", "-t", "1", "-n", "4", "--policy", "ar", "-p", "a", FOLDER}},
    {"run with auxiliary models", .words = {"run", "-t", "1", "-n", "4", "--policy", "sv", "--chat", "-p", "Three mice",
                                            "@models/fables-q8_0.gguf"}},
    {"run --trace", .words = {"run", "-t", "1", "-n", "4", "--policy", "specbound", "--probe", "all", "--trace",
                              "trace", "-p", "Three mice", DRAFT}},
    {"run --trace --json", .words = {"run", "-t", "1", "-n", "4", "--policy", "ar", "--trace", "trace", "--json",
                                     "out.json", "-p", "Three mice", DRAFT}},
    {"run of mtp",
     .words = {"run", "-t", "1", "-n", "4", "--policy", "mtp", "-p", "a", "@tests/golden/eagle/targets/qwen3_5"}},
    {"bench", .words = {"bench", "-t", "1", "-n", "3", "--repeat", "1", "--policy", "layerskip", "--prompts",
                        "%prompts.jsonl", "--csv", "out.csv", "--json", "out.json", DRAFT}},
    {"replay", .words = {"replay", "--script", "%replay.script", "@tests/screens/traces/specdecpp"}, .terminal = true},
    {"train heads", .words = {"train", "heads", "-t", "1", "--model", DRAFT, "--text", "%text", "--out",
                              "out.safetensors", "--tokens", "64", "--batch", "32", "--window", "16"}},
    {"train heads --prompts",
     .words =
         {"train",           "heads",    "-t", "1",          "--model", DRAFT,     "--prompts", "%two.jsonl", "--out",
          "out.safetensors", "--tokens", "24", "--response", "12",      "--batch", "16",        "--layers",   "1:2",
          "--draft-vocab",   "256"}},
    {"train eagle", .words = {"train", "eagle", "-t", "1", "--model", DRAFT, "--text", "%text", "--out", "head.gguf",
                              "--tokens", "320", "--batch", "32", "--window", "16", "--draft-vocab", "64"}},
    {"scope",
     .words = {"-t", "1", "-n", "4", "--script", "%scope.script", "--trace", "trace", "--heads", "none", "-p",
               "Three mice", DRAFT},
     .terminal = true},
    {"models", .words = {"models"}},
    {"doctor", .words = {"doctor"}},
    {"diff", .words = {"diff", "@tests/screens/traces/specdecpp", "@tests/screens/traces/sv"}},
    {"plot", .words = {"plot", "@tests/screens/traces/sv", "exits", "-o", "out.svg"}},
};
const size_t n_fault_cases = sizeof fault_cases / sizeof *fault_cases;

void
command_make(struct command *c, const struct bench *b, const struct fault_case *k, const char *fault)
{
    static const char *const always[] = {"TERM=xterm-256color", "LC_ALL=C.UTF-8", "OMP_NUM_THREADS=1",
                                         "OMP_WAIT_POLICY=passive", "SPECSCOPE_CUDA_PLUGIN="};
    size_t n = 0, v = 0;
    c->argv[n++] = (char *)b->program;
    for (size_t i = 0; i < CASE_WORDS && k->words[i] != NULL; i++) {
        const char *w = k->words[i], *folder = w[0] == '@' ? b->tree : w[0] == '%' ? b->kit : NULL;
        if (folder != NULL)
            snprintf(c->text[i], sizeof c->text[i], "%s/%s", folder, w + 1);
        else
            snprintf(c->text[i], sizeof c->text[i], "%s", w);
        c->argv[n++] = c->text[i];
    }
    c->argv[n] = NULL;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        c->variables[v++] = always[i];
    snprintf(c->made[0], sizeof c->made[0], "HOME=%s", b->run); /* a home without settings */
    c->variables[v++] = c->made[0];
    snprintf(c->made[4], sizeof c->made[4], "HF_HUB_CACHE=%s/hub", b->kit);
    snprintf(c->made[5], sizeof c->made[5], "OLLAMA_MODELS=%s/ollama", b->kit);
    c->variables[v++] = c->made[4];
    c->variables[v++] = c->made[5];
    if (fault != NULL) {
        snprintf(c->made[1], sizeof c->made[1], "LD_PRELOAD=%s", b->shim);
        snprintf(c->made[2], sizeof c->made[2], FAULT_VARIABLE "=%s", fault);
        snprintf(c->made[3], sizeof c->made[3], PAGE_VARIABLE "=%s", b->page_path);
        for (int i = 1; i < 4; i++)
            c->variables[v++] = c->made[i];
    }
    c->variables[v] = NULL;
    c->plan = (struct child_plan){.argv = c->argv,
                                  .folder = b->run,
                                  .out = b->out,
                                  .err = b->err,
                                  .terminal = k->terminal,
                                  .rows = 24,
                                  .cols = 80,
                                  .variables = c->variables};
    if (k->in != NULL) {
        static char in[400];
        snprintf(in, sizeof in, "%s/%s", b->kit, k->in);
        c->plan.in = in;
    }
}

void
command_print(const struct command *c, const struct fault_case *k, const struct bench *b, const char *fault)
{
    printf("    FAULT=%s LD_PRELOAD=%s %s", fault, b->shim, b->program);
    for (int i = 1; c->argv[i] != NULL; i++)
        printf(strpbrk(c->argv[i], " *") != NULL ? " '%s'" : " %s", c->argv[i]);
    printf("%s%s\n", k->in != NULL ? " <" : "", k->in != NULL ? k->in : "");
}
