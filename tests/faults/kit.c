/* Sets up a folder for the tests, the kit of small files, and the shared page. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/faults/cases.h"
#include "tests/faults/folder.h"
#include "tests/faults/page.h"

static const struct {
    const char *name, *text;
} kit_files[] = {
    {"replay.script", ":goto 3\n:wait idle\n:panel layers\n:save-screen screen.txt\n:quit\n"},
    {"scope.script",
     ":wait round 1\n:set tau 0.3\n:wait idle\n:resume\n:wait end\n:wait idle\n:what-if off\n:save-screen screen.txt\n"
     ":quit\n"}, /* a forecast in time depends on how long the run lasts */
    {"end.script", ":goto 99999\n:wait idle\n:goto 1\n:wait idle\n:quit\n"},
    {"prompts.jsonl", "{\"turns\": [\"Three mice\"]}\n"},
    {"two.jsonl", "{\"turns\": [\"Three mice\"]}\n{\"turns\": [\"A fox\"]}\n"},
    {"chat/chat_template.jinja",
     "{% for m in messages %}<{{ m.role | upper }}>{{ m['content'].strip() }}{{ eos_token }}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<ASSISTANT>' }}{% endif %}"},
    {"hub/models--org--tiny/refs/main", "abc\n"},
    {"ollama/manifests/registry.ollama.ai/library/toy/latest",
     "{\"layers\": [{\"mediaType\": \"application/vnd.ollama.image.model\", \"digest\": \"sha256:00ff\"}]}"},
};

static const struct {
    const char *name, *target; /* in the source tree */
} kit_links[] = {
    {"chat/config.json", "tests/golden/models/llama3/config.json"},
    {"chat/model.safetensors", "tests/golden/models/llama3/model.safetensors"},
    {"chat/tokenizer.json", "tests/golden/models/llama3/tokenizer.json"},
    {"chat/tokenizer_config.json", "tests/golden/models/llama3/tokenizer_config.json"},
    {"hub/models--org--tiny/snapshots/abc", "tests/golden/models/llama3"},
    {"hub/models--org--one/snapshots/d/one-Q8_0-00001-of-00001.gguf", "tests/golden/models/llama-q8_0.gguf"},
    {"ollama/blobs/sha256-00ff", "tests/golden/models/qwen3.gguf"},
};

/* Makes the folders of a file's path. */
static void
make_way(const char *path)
{
    char way[1200];
    snprintf(way, sizeof way, "%s", path);
    for (char *at = strchr(way + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(way, 0700);
        *at = '/';
    }
}

static bool
write_file(const char *folder, const char *name, const char *text, size_t n)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    make_way(path);
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
    for (size_t i = 0; i < sizeof kit_links / sizeof *kit_links; i++) {
        char target[1200];
        snprintf(path, sizeof path, "%s/%s", b->kit, kit_links[i].name);
        snprintf(target, sizeof target, "%s/%s", b->tree, kit_links[i].target);
        make_way(path);
        if (symlink(target, path) != 0)
            return false;
    }
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
