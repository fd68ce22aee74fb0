#include "tests/faults/cases.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/faults/folder.h"
#include "tests/faults/page.h"

#define DRAFT  "@models/fables-draft-q8_0.gguf"
#define FOLDER "@tests/golden/models/llama3"

const struct fault_case fault_cases[] = {
    {"info", false, NULL, {"info", DRAFT}},
    {"info of a folder", false, NULL, {"info", FOLDER}},
    {"tokenize", false, "text", {"tokenize", "--pieces", DRAFT}},
    {"tokenize with a folder", false, "text", {"tokenize", FOLDER}},
    {"run", false, NULL, {"run", "-t", "1", "-n", "4", "--policy", "layerskip", "-p", "Three mice", DRAFT}},
    {"run of a folder", false, NULL, {"run", "-t", "1", "-n", "4", "--policy", "ar", "-p", "a", FOLDER}},
    {"run with helpers",
     false,
     NULL,
     {"run", "-t", "1", "-n", "4", "--policy", "sv", "--chat", "-p", "Three mice", "@models/fables-q8_0.gguf"}},
    {"run --trace",
     false,
     NULL,
     {"run", "-t", "1", "-n", "4", "--policy", "specbound", "--probe", "all", "--trace", "trace", "-p", "Three mice",
      DRAFT}},
    {"bench",
     false,
     NULL,
     {"bench", "-t", "1", "-n", "3", "--repeat", "1", "--policy", "layerskip", "--prompts", "%prompts.jsonl", "--csv",
      "out.csv", "--json", "out.json", DRAFT}},
    {"replay", true, NULL, {"replay", "--script", "%replay.script", "@tests/screens/traces/specdecpp"}},
    {"train heads",
     false,
     NULL,
     {"train", "heads", "-t", "1", "--model", DRAFT, "--text", "%text", "--out", "out.safetensors", "--tokens", "64",
      "--batch", "32", "--window", "16"}},
    {"scope",
     true,
     NULL,
     {"-t", "1", "-n", "4", "--script", "%scope.script", "--trace", "trace", "--heads", "none", "-p", "Three mice",
      DRAFT}},
    {"diff", false, NULL, {"diff", "@tests/screens/traces/specdecpp", "@tests/screens/traces/sv"}},
};
const size_t n_fault_cases = sizeof fault_cases / sizeof *fault_cases;

static const struct {
    const char *name, *text;
} kit_files[] = {
    {"replay.script", ":goto 3\n:wait idle\n:panel layers\n:save-screen screen.txt\n:quit\n"},
    {"scope.script",
     ":wait round 1\n:set tau 0.3\n:wait idle\n:resume\n:wait end\n:wait idle\n:save-screen screen.txt\n:quit\n"},
    {"end.script", ":goto 99999\n:wait idle\n:goto 1\n:wait idle\n:quit\n"},
    {"prompts.jsonl", "{\"turns\": [\"Three mice\"]}\n"},
};

static bool
write_file(const char *folder, const char *name, const char *text, size_t n)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    bool ok = f != NULL && fwrite(text, 1, n, f) == n;
    ok = f != NULL && fclose(f) == 0 && ok;
    if (!ok)
        fprintf(stderr, "%s: cannot be written: %s\n", path, strerror(errno));
    return ok;
}

static bool
write_kit(const struct bench *b)
{
    char path[1200];
    size_t n = 0;
    for (size_t i = 0; i < sizeof kit_files / sizeof *kit_files; i++)
        if (!write_file(b->kit, kit_files[i].name, kit_files[i].text, strlen(kit_files[i].text)))
            return false;
    snprintf(path, sizeof path, "%s/README.md", b->tree);
    char *text = whole_file(path, &n);
    const bool ok = text != NULL && write_file(b->kit, "text", text, n < 3000 ? n : 3000);
    free(text);
    return ok;
}

static bool
map_page(struct bench *b)
{
    const int fd = open(b->page_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *b->page) != 0)
        return false;
    void *at = mmap(NULL, sizeof *b->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    b->page = at == MAP_FAILED ? NULL : at;
    return b->page != NULL;
}

bool
bench_open(struct bench *b, const char *build)
{
    *b = (struct bench){0};
    const char *tmp = getenv("TMPDIR");
    char *whole = realpath(build, NULL);
    if (whole == NULL || getcwd(b->tree, sizeof b->tree) == NULL) {
        fprintf(stderr, "%s: %s\n", build, strerror(errno));
        free(whole);
        return false;
    }
    snprintf(b->program, sizeof b->program, "%.900s/specscope", whole);
    snprintf(b->shim, sizeof b->shim, "%.900s/tests/fault_shim.so", whole);
    free(whole);
    snprintf(b->top, sizeof b->top, "%.200s/faults-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(b->top) == NULL) {
        fprintf(stderr, "%s: %s\n", b->top, strerror(errno));
        return false;
    }
    snprintf(b->kit, sizeof b->kit, "%s/kit", b->top);
    snprintf(b->run, sizeof b->run, "%s/run", b->top);
    snprintf(b->out, sizeof b->out, "%s/out", b->top);
    snprintf(b->err, sizeof b->err, "%s/err", b->top);
    snprintf(b->page_path, sizeof b->page_path, "%s/page", b->top);
    return mkdir(b->kit, 0700) == 0 && mkdir(b->run, 0700) == 0 && write_kit(b) && map_page(b);
}

void
bench_close(struct bench *b)
{
    if (b->page != NULL)
        munmap(b->page, sizeof *b->page);
    if (b->top[0] != '\0') {
        folder_empty(b->top);
        rmdir(b->top);
    }
}

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
    snprintf(c->made[0], sizeof c->made[0], "HOME=%s", b->run); /* nobody's own settings */
    c->variables[v++] = c->made[0];
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
