/* The model folders of Ollama and LM Studio, in trees like those that these programs make. */
#include <sys/stat.h>

#include "tests/rigs/folders.h"
#include "tests/rigs/test.h"

static char service[256]; /* the folder of models of Ollama's service */
#define OLLAMA_SERVICE service
#include "engine/model/model_locations.c"

FIXTURE(folder_set_up, folder_tear_down);

/* Writes a file and the folders on its path. */
static void
put(const char *folder, const char *file, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0777);
        *slash = '/';
    }
    write_text(folder, file, text);
}

static void
put_ollama(const char *models, const char *name, const char *digest)
{
    char file[200], text[300];
    snprintf(file, sizeof file, "manifests/registry.ollama.ai/library/%s", name);
    snprintf(text, sizeof text,
             "{\"schemaVersion\":2,\"mediaType\":\"application/vnd.docker.distribution.manifest.v2+json\",\"layers\":"
             "[{\"mediaType\":\"application/vnd.ollama.image.model\",\"digest\":\"sha256:%s\",\"size\":4}]}",
             digest);
    put(models, file, text);
    snprintf(file, sizeof file, "blobs/sha256-%s", digest);
    put(models, file, "GGUF");
}

struct listed {
    char text[2000];
};

static bool
note(void *user, const char *name, const char *path)
{
    struct listed *l = user;
    const size_t used = strlen(l->text);
    snprintf(l->text + used, sizeof l->text - used, "%s=%s\n", name, path);
    return true;
}

static void
assert_listed(const char *folder, const char *name, const char *path, int times)
{
    struct listed l = {""};
    struct err err;
    char line[700];
    int n = 0;
    assert_ok(model_locations_list(note, &l, &err), err);
    snprintf(line, sizeof line, "%s%s=%s%s", name[0] == '/' ? folder : "", name, folder, path);
    for (const char *at = l.text; (at = strstr(at, line)) != NULL; at++)
        n++;
    if (n != times)
        fail_msg("%s: %d times in\n%s", line, n, l.text);
}

static void
assert_found(const char *folder, const char *name, const char *path)
{
    char found[PATH_MAX], expected[PATH_MAX];
    struct err err;
    assert_ok(model_find(name, found, sizeof found, &err), err);
    snprintf(expected, sizeof expected, "%s%s", folder, path);
    assert_string_equal(found, expected);
}

static const char *
home(void *const *state)
{
    const char *folder = *state;
    static const char *const variables[] = {"OLLAMA_MODELS", "HF_HUB_CACHE",   "HUGGINGFACE_HUB_CACHE",
                                            "HF_HOME",       "XDG_CACHE_HOME", "LLAMA_CACHE"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    setenv("HOME", folder, 1);
    snprintf(service, sizeof service, "%s/share/ollama", folder);
    return folder;
}

TEST(models_of_ollamas_service_are_found)
{
    const char *folder = home(state);
    put_ollama(service, "toy/latest", "0a");
    put_ollama(service, "both/7b", "0b");
    assert_found(folder, "ollama:toy", "/share/ollama/blobs/sha256-0a");
    assert_listed(folder, "ollama:toy:latest", "/share/ollama/blobs/sha256-0a", 1);

    char own[300];
    snprintf(own, sizeof own, "%s/.ollama/models", folder);
    put_ollama(own, "both/7b", "0c");
    put_ollama(own, "mine/latest", "0d");
    assert_found(folder, "ollama:toy", "/share/ollama/blobs/sha256-0a");
    assert_found(folder, "ollama:both:7b", "/.ollama/models/blobs/sha256-0c");
    assert_listed(folder, "ollama:mine:latest", "/.ollama/models/blobs/sha256-0d", 1);
    assert_listed(folder, "ollama:both:7b", "/.ollama/models/blobs/sha256-0c", 1);
    assert_listed(folder, "ollama:both:7b", "/share/ollama/blobs/sha256-0b", 0);

    setenv("OLLAMA_MODELS", service, 1);
    assert_found(folder, "ollama:both:7b", "/share/ollama/blobs/sha256-0b");
    assert_listed(folder, "ollama:toy:latest", "/share/ollama/blobs/sha256-0a", 1);
}

TEST(lm_studios_folder_of_models_is_that_of_its_settings)
{
    const char *folder = home(state);
    char text[600];
    put(folder, ".lmstudio/models/org/one/one.gguf", "");
    assert_listed(folder, "/.lmstudio/models/org/one/one.gguf", "/.lmstudio/models/org/one/one.gguf", 1);

    snprintf(text, sizeof text, "{\"language\": \"en\", \"downloadsFolder\": \"%s/disk/llms\"}", folder);
    put(folder, ".lmstudio/settings.json", text);
    put(folder, "disk/llms/org/two/two.gguf", "");
    assert_listed(folder, "/disk/llms/org/two/two.gguf", "/disk/llms/org/two/two.gguf", 1);
    assert_listed(folder, "/.lmstudio/models/org/one/one.gguf", "/.lmstudio/models/org/one/one.gguf", 0);

    snprintf(text, sizeof text, "%s/studio\n", folder); /* LM Studio's home folder is elsewhere */
    put(folder, ".lmstudio-home-pointer", text);
    put(folder, "studio/models/org/three/three.gguf", "");
    assert_listed(folder, "/studio/models/org/three/three.gguf", "/studio/models/org/three/three.gguf", 1);
    snprintf(text, sizeof text, "%s/.lmstudio", folder); /* the default home folder */
    put(folder, ".lmstudio-home-pointer", text);
    assert_listed(folder, "/disk/llms/org/two/two.gguf", "/disk/llms/org/two/two.gguf", 1);
    put(folder, ".lmstudio/settings.json", "{");
    assert_listed(folder, "/.lmstudio/models/org/one/one.gguf", "/.lmstudio/models/org/one/one.gguf", 1);
}
