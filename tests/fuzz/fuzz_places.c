/* Locations of models: Ollama's manifests, names of models, names of files in the Hugging Face cache, and parts of a
 * GGUF file, which are identified by their names and their metadata. The first byte selects one. Each is refused in one
 * line, or leads to an existing file. */
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/model/files/gguf.h"
#include "engine/model/model_locations.h"
#include "tests/fuzz/fuzz.h"

#define NAME_ROOM 160 /* bytes of the longest name */
#define MANIFESTS "manifests/registry.ollama.ai/library/toy"
#define SNAPSHOT  "models--org--tiny/snapshots/abc"

static char place[64]; /* a temporary folder; static, because the fuzzer's entry has no parameter for it */

static void
put_below(const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", place, name);
    for (char *at = path + strlen(place) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
    if (path[strlen(path) - 1] != '/')
        scratch_put(path, text, strlen(text));
}

static void
make_place(void)
{
    scratch_folder(place, sizeof place, "places");
    put_below("blobs/sha256-00ff", "GGUF");
    put_below(MANIFESTS "/latest",
              "{\"layers\": [{\"mediaType\": \"application/vnd.ollama.image.model\", \"digest\": \"sha256:00ff\"}]}");
    put_below(SNAPSHOT "/", "");
    put_below("parts/", "");
    setenv("HF_HUB_CACHE", place, 1);
    setenv("OLLAMA_MODELS", place, 1);
    setenv("HOME", "/nonesuch", 1);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("LLAMA_CACHE");
}

/* ---- Ollama ---- */

static void
try_manifest(const uint8_t *data, size_t size)
{
    static const char begin[] = "blobs/sha256-";
    struct ollama_blobs blobs;
    MUST(ollama_manifest_blobs((const char *)data, size, &blobs));
    for (int i = 0; i < 2; i++) {
        const char *blob = i == 0 ? blobs.weights : blobs.adapter, *digits = blob + sizeof begin - 1;
        MUST(blob[0] == '\0' || (strncmp(blob, begin, sizeof begin - 1) == 0 && strlen(digits) <= 64 &&
                                 strspn(digits, "0123456789abcdef") == strlen(digits)));
    }
}

/* ---- names ---- */

static void
try_name(const char *name)
{
    char path[PATH_MAX];
    struct err err = {0};
    if (!model_find(name, path, sizeof path, &err)) {
        must_refuse(&err);
        return;
    }
    const size_t n = strlen(place);
    const bool inside = strncmp(path, place, n) == 0 && path[n] == '/' && strstr(path, "..") == NULL;
    MUST(strcmp(path, name) == 0 || (inside && access(path, F_OK) == 0));
}

struct told {
    unsigned n;
    char name[PATH_MAX], path[PATH_MAX];
};

static bool
told(void *user, const char *name, const char *path)
{
    struct told *t = user;
    if (strncmp(name, "ollama:", 7) == 0)
        return true; /* the model that is always there */
    t->n++;
    snprintf(t->name, sizeof t->name, "%s", name);
    snprintf(t->path, sizeof t->path, "%s", path);
    return true;
}

/* Adds a file of that name to the cache. If the list of models has an entry for it, the entry's name must find the
 * file. */
static void
try_file(const char *name)
{
    char path[PATH_MAX], found[PATH_MAX];
    struct told t = {.n = 0};
    struct err err = {0};
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strchr(name, '/') != NULL)
        return;
    snprintf(path, sizeof path, "%s/" SNAPSHOT "/%s", place, name);
    scratch_put(path, "GGUF", 4);
    MUST(model_locations_list(told, &t, &err));
    if (strcmp(name, "config.json") == 0) {
        MUST(t.n == 1 && strcmp(t.name, "hf:org/tiny") == 0);
    } else if (t.n > 0) {
        MUST(t.n == 1 && strcmp(t.path, path) == 0);
        MUST(model_find(t.name, found, sizeof found, &err) && strcmp(found, path) == 0);
    }
    unlink(path);
}

/* ---- parts ---- */

static size_t
put_number(uint8_t *out, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> (8 * i));
    return bytes;
}

static void
put_part(const char *path, const uint8_t *says)
{
    static const char *const keys[] = {"split.no", "split.count", "split.tensors.count"};
    uint8_t bytes[200] = "GGUF";
    size_t n = 4;
    n += put_number(bytes + n, 3, 4);
    n += put_number(bytes + n, 0, 8);
    n += put_number(bytes + n, 3, 8);
    for (size_t i = 0; i < 3; i++) {
        const size_t length = strlen(keys[i]);
        n += put_number(bytes + n, length, 8);
        memcpy(bytes + n, keys[i], length);
        n += length;
        n += put_number(bytes + n, 4, 4); /* unsigned 32 bits */
        n += put_number(bytes + n, says[i] < 250 ? says[i] : (uint32_t)says[i] << 9 << (says[i] & 15), 4);
    }
    scratch_put(path, bytes, n);
}

/* Writes three files, with the metadata of each, and opens the first by its name. */
static void
try_parts(const uint8_t *data, size_t size, const char *name)
{
    char path[3][PATH_MAX];
    struct gguf *g;
    struct err err = {0};
    if (size < 9 || name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strchr(name, '/') != NULL)
        return;
    snprintf(path[2], sizeof path[2], "%s/parts/m-00003-of-00003.gguf", place);
    snprintf(path[1], sizeof path[1], "%s/parts/m-00002-of-00003.gguf", place);
    snprintf(path[0], sizeof path[0], "%s/parts/%s", place, name);
    for (size_t i = 3; i-- > 0;)
        put_part(path[i], data + 3 * i);
    if (gguf_open(&g, path[0], &err)) {
        MUST(g->n_tensors == 0 && g->n_parts < 3);
        gguf_close(g);
    } else {
        must_refuse(&err);
    }
    for (size_t i = 0; i < 3; i++)
        unlink(path[i]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (place[0] == '\0')
        make_place();
    if (size < 1)
        return 0;
    const uint8_t kind = data[0] % 4;
    const size_t before = kind == 3 ? (size < 10 ? size : 10) : 1;
    char *name = strndup((const char *)data + before, size - before < NAME_ROOM ? size - before : NAME_ROOM);
    MUST(name != NULL);
    switch (kind) {
    case 0: try_manifest(data + 1, size - 1); break;
    case 1: try_name(name); break;
    case 2: try_file(name); break;
    default: try_parts(data + 1, size - 1, name); break;
    }
    free(name);
    return 0;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    if (size < 2 || data[0] % 4 != 0 || seed % 8 == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    return 1 + mutate_json(data + 1, size - 1, max_size - 1, seed / 8);
}
