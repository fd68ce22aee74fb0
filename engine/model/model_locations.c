#include "engine/model/model_locations.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file_read.h"
#include "base/json_read.h"
#include "base/utf8.h"
#include "engine/model/files/hf_folder.h"

#define MANIFEST_MOST ((size_t)1 << 20)
#define MOST_PART     160 /* bytes of a part of a file's name */
#define SHORTEST_HASH 4   /* digits of a commit, at least */
#define FETCH_ROOM    256
#define HF            "hf:"
#define OLLAMA        "ollama:"
#define REGISTRY      "registry.ollama.ai/" /* of names without one */
#define LIBRARY       "library/"            /* and without an owner */
#ifndef OLLAMA_SERVICE
#define OLLAMA_SERVICE "/usr/share/ollama/.ollama/models"
#endif

/* ---- Ollama's manifests ---- */

#define WEIGHTS "application/vnd.ollama.image.model"
#define ADAPTER "application/vnd.ollama.image.adapter"
#define DIGEST  "sha256:"

bool
ollama_manifest_blobs(const char *text, size_t n, struct ollama_blobs *out)
{
    cJSON *json;
    const cJSON *layer;
    const size_t begun = sizeof DIGEST - 1;
    *out = (struct ollama_blobs){.weights = ""};
    if (!json_read(&json, text, n))
        return false;
    cJSON_ArrayForEach(layer, cJSON_GetObjectItemCaseSensitive(json, "layers"))
    {
        const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(layer, "mediaType"));
        const char *digest = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(layer, "digest"));
        char *to = kind == NULL                 ? NULL
                   : strcmp(kind, WEIGHTS) == 0 ? out->weights
                   : strcmp(kind, ADAPTER) == 0 ? out->adapter
                                                : NULL;
        if (to != NULL && digest != NULL && strncmp(digest, DIGEST, begun) == 0 &&
            digest[begun + strspn(digest + begun, "0123456789abcdef")] == '\0')
            snprintf(to, OLLAMA_BLOB_MOST, "blobs/sha256-%.64s", digest + begun);
    }
    cJSON_Delete(json);
    return true;
}

/* ---- paths ---- */

static bool
is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Returns true if the last failed call lacked memory, descriptors or a working disk; false if the file does not
 * exist. */
static bool
lacks_resources(void)
{
    return errno == ENOMEM || errno == EMFILE || errno == ENFILE || errno == EIO;
}

static bool
join(char out[PATH_MAX], const char *folder, const char *rest)
{
    return (size_t)snprintf(out, PATH_MAX, "%s/%s", folder, rest) < PATH_MAX;
}

/* A folder: `below` in the folder that an environment variable names; else `in_home`, which is in $HOME or begins with
 * '/'. */
struct root {
    const char *variable, *below, *in_home;
};

static bool
root_path(const struct root *r, char out[PATH_MAX])
{
    const char *given = r->variable != NULL ? getenv(r->variable) : NULL, *home = getenv("HOME");
    if (given != NULL && given[0] != '\0')
        return (size_t)snprintf(out, PATH_MAX, "%s%s", given, r->below) < PATH_MAX;
    if (r->in_home != NULL && r->in_home[0] == '/')
        return (size_t)snprintf(out, PATH_MAX, "%s", r->in_home) < PATH_MAX;
    return r->in_home != NULL && home != NULL && home[0] == '/' && join(out, home, r->in_home);
}

/* Returns the first folder that exists, in the order in which the owning program looks for them. */
static bool
first_root(const struct root *roots, size_t n, char out[PATH_MAX])
{
    for (size_t i = 0; i < n; i++)
        if (root_path(&roots[i], out) && hf_is_folder(out))
            return true;
    return false;
}

static const struct root hf_roots[] = {{"HF_HUB_CACHE", "", NULL},
                                       {"HUGGINGFACE_HUB_CACHE", "", NULL},
                                       {"HF_HOME", "/hub", NULL},
                                       {"XDG_CACHE_HOME", "/huggingface/hub", ".cache/huggingface/hub"}};
/* The models of a server that the user starts, and those of the service that Ollama's installer sets up on Linux. */
static const struct root ollama_roots[] = {{"OLLAMA_MODELS", "", ".ollama/models"}, {NULL, "", OLLAMA_SERVICE}};
#define OLLAMA_ROOTS (sizeof ollama_roots / sizeof *ollama_roots)
static const struct root studio_homes[] = {{NULL, "", ".lmstudio"}, {NULL, "", ".cache/lm-studio"}};
#define STUDIO_HOMES (sizeof studio_homes / sizeof *studio_homes)
static const struct root llama_roots[] = {{"LLAMA_CACHE", "", NULL},
                                          {"XDG_CACHE_HOME", "/llama.cpp", ".cache/llama.cpp"}};
#define FIRST_ROOT(roots, out) first_root(roots, sizeof(roots) / sizeof *(roots), out)

/* ---- listing folders, in order ---- */

struct listing {
    model_seen_fn seen;
    void *user;
    bool over;
    const char *hub;    /* "hf:ORG/NAME" of the listed snapshot */
    const char *root;   /* the listed folder; names are relative to it */
    const char *before; /* of Ollama, a folder whose models have precedence, or NULL */
    bool lacks;         /* a folder or file could not be read */
    struct err *err;
};

static void
missed(struct listing *l, const char *path)
{
    if (lacks_resources() && !l->lacks)
        l->lacks = !err_set(l->err, ERR_WORK, "%.300s: cannot be read: %s", path, strerror(errno));
}

static void
emit(struct listing *l, const char *name, const char *path)
{
    if (!l->over && !l->seen(l->user, name, path))
        l->over = true;
}

static int
by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Calls `each` for the entries of a folder, in order. */
static void
each_entry(struct listing *l, const char *folder, void (*each)(struct listing *, const char *folder, const char *name))
{
    struct dirent **found;
    const int n = scandir(folder, &found, NULL, by_name);
    if (n < 0)
        missed(l, folder);
    for (int i = 0; i < n; i++) {
        if (found[i]->d_name[0] != '.' && !l->over)
            each(l, folder, found[i]->d_name);
        free(found[i]);
    }
    if (n >= 0)
        free(found);
}

static size_t
depth_of(const char *path)
{
    size_t depth = 0;
    for (; *path != '\0'; path++)
        depth += *path == '/';
    return depth;
}

/* Returns true for a GGUF file with a language model: not an image projector (mmproj), and of a split file the first
 * part. */
static bool
is_gguf(const char *name)
{
    const size_t n = strlen(name);
    if (n < 5 || strcasecmp(name + n - 5, ".gguf") != 0 || strcasestr(name, "mmproj") != NULL)
        return false;
    const char *split = strstr(name, "-of-");
    return split == NULL || (split - name >= 6 && memcmp(split - 6, "-00001", 6) == 0);
}

/* ---- the Hugging Face cache: models--ORG--NAME/{refs/REVISION, snapshots/COMMIT/} ---- */

struct hub_name {
    char folder[256], revision[128], part[MOST_PART];
};

static bool
split_hub_name(const char *name, struct hub_name *out)
{
    const char *slash = strchr(name, '/'), *end = name + strlen(name), *colon = strchr(name, ':');
    const char *at = memchr(name, '@', (size_t)((colon != NULL ? colon : end) - name)); /* PART may contain @ */
    const char *stem = at != NULL ? at : colon != NULL ? colon : end;
    if (slash == NULL || slash == name || slash + 1 >= stem ||
        memchr(slash + 1, '/', (size_t)(stem - slash - 1)) != NULL)
        return false;
    const int n = snprintf(out->folder, sizeof out->folder, "models--%.*s--%.*s", (int)(slash - name), name,
                           (int)(stem - slash - 1), slash + 1);
    const int r = at == NULL ? snprintf(out->revision, sizeof out->revision, "main")
                             : snprintf(out->revision, sizeof out->revision, "%.*s",
                                        (int)((colon != NULL ? colon : end) - at - 1), at + 1);
    const int p = snprintf(out->part, sizeof out->part, "%s", colon != NULL ? colon + 1 : "");
    return n > 0 && (size_t)n < sizeof out->folder && r > 0 && (size_t)r < sizeof out->revision && p >= 0 &&
           (size_t)p < sizeof out->part && strstr(out->folder, "..") == NULL && strstr(out->revision, "..") == NULL;
}

/* Returns the number of entries of a folder that begin with `start`, without hidden ones; name: the last of them. */
static size_t
entries(const char *folder, const char *start, char name[NAME_MAX + 1])
{
    size_t n = 0;
    DIR *d = opendir(folder);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.' && strncmp(e->d_name, start, strlen(start)) == 0) {
            snprintf(name, NAME_MAX + 1, "%s", e->d_name);
            n++;
        }
    if (d != NULL)
        closedir(d);
    return n;
}

/* Finds the snapshot of a revision: the commit that a ref names, the commit that begins with it, or the only one. */
static bool
snapshot(const char *model, const char *revision, char out[PATH_MAX])
{
    char path[PATH_MAX], rest[300], only[NAME_MAX + 1] = "", *text = NULL;
    size_t n = 0;
    snprintf(rest, sizeof rest, "refs/%s", revision);
    if (join(path, model, rest) && is_file(path) && file_text(path, 4096, &text, &n, NULL)) {
        text[strcspn(text, " \r\n")] = '\0';
        snprintf(rest, sizeof rest, "snapshots/%.200s", text);
        free(text);
    } else {
        snprintf(rest, sizeof rest, "snapshots/%s", revision);
    }
    if (strstr(rest, "..") == NULL && join(out, model, rest) && hf_is_folder(out))
        return true;
    const char *start = strcmp(revision, "main") == 0 ? "" : revision;
    const size_t digits = strspn(start, "0123456789abcdef");
    if (start[digits] != '\0' || (digits > 0 && digits < SHORTEST_HASH) || !join(path, model, "snapshots") ||
        entries(path, start, only) != 1)
        return false;
    return join(out, path, only) && hf_is_folder(out);
}

/* Lists files of a snapshot and of its folders. */
static void
list_hub_file(struct listing *l, const char *folder, const char *name)
{
    char path[PATH_MAX], whole[300 + PATH_MAX];
    if (!join(path, folder, name))
        return;
    const char *below = path + strlen(l->root) + 1;
    if (hf_is_folder(path) && depth_of(below) < 3)
        each_entry(l, path, list_hub_file);
    if (!is_file(path) || !is_gguf(name))
        return;
    snprintf(whole, sizeof whole, "%s:%s", l->hub, below);
    emit(l, strlen(below) < MOST_PART ? whole : path, path);
}

/* The GGUF files of a snapshot whose names contain `part`. */
struct chosen {
    const char *part;
    size_t folder, n; /* bytes of the folder's path; number of files */
    bool exactly;     /* a file has the name `part` */
    char path[PATH_MAX], names[160];
};

static bool
choose(void *user, const char *name, const char *path)
{
    struct chosen *c = user;
    const char *below = path + c->folder + 1;
    (void)name;
    if (strcasestr(below, c->part) == NULL)
        return true;
    c->exactly = strcmp(below, c->part) == 0;
    c->n = c->exactly ? 1 : c->n + 1;
    snprintf(c->path, sizeof c->path, "%s", path);
    const size_t used = strlen(c->names), room = sizeof c->names - used;
    if (strlen(below) + sizeof ", …" < room)
        snprintf(c->names + used, room, "%s%s", used > 0 ? ", " : "", below);
    else if (strstr(c->names, "…") == NULL && room > sizeof ", …")
        snprintf(c->names + used, room, ", …");
    return !c->exactly;
}

/* Writes "hf download ORG/NAME --revision REVISION". */
static const char *
fetch_command(const char *name, char out[FETCH_ROOM])
{
    const char *stem = name + strlen(HF), *at = stem + strcspn(stem, "@:");
    const int n = *at == '@' ? (int)strcspn(at + 1, ":") : 0;
    snprintf(out, FETCH_ROOM, "hf download %.*s%s%.*s", (int)(at - stem), stem, n > 0 ? " --revision " : "", n,
             n > 0 ? at + 1 : "");
    return out;
}

static bool
in_snapshot(const char *name, const char *folder, const char *part, char *path, size_t size, struct err *err)
{
    char inner[PATH_MAX], fetch[FETCH_ROOM], names[200];
    if (part[0] == '\0' && join(inner, folder, "config.json") && is_file(inner))
        return (size_t)snprintf(path, size, "%s", folder) < size;
    struct chosen c = {.part = part, .folder = strlen(folder)};
    struct listing l = {.seen = choose, .user = &c, .hub = name, .root = folder, .err = err};
    each_entry(&l, folder, list_hub_file);
    if (l.lacks)
        return false;
    if (c.n == 1)
        return (size_t)snprintf(path, size, "%s", c.path) < size ||
               err_set(err, ERR_WORK, "%.80s: too long a path", name);
    if (c.n == 0)
        return err_set(err, ERR_WORK,
                       "%.80s: %.160s has neither a config.json nor such a GGUF file; fetch all of it: %s", name,
                       folder, fetch_command(name, fetch));
    return err_set(err, ERR_WORK,
                   "%.80s: there are several such GGUF files: %s; choose one by a part of its name: %.*s:PART", name,
                   printable_line(names, sizeof names, c.names, strlen(c.names)),
                   (int)(strlen(HF) + strcspn(name + strlen(HF), ":")), name);
}

/* Returns true if Ollama has ORG/NAME of the hub. */
static bool
ollama_has(const char *stem, int n)
{
    char root[PATH_MAX], rest[300], path[PATH_MAX];
    snprintf(rest, sizeof rest, "manifests/hf.co/%.*s", n, stem);
    for (size_t i = 0; i < OLLAMA_ROOTS; i++)
        if (root_path(&ollama_roots[i], root) && join(path, root, rest) && hf_is_folder(path))
            return true;
    return false;
}

/* Finds the snapshot of a name. */
static bool
hub_snapshot(const struct hub_name *h, char folder[PATH_MAX])
{
    char root[PATH_MAX], model[PATH_MAX];
    return FIRST_ROOT(hf_roots, root) && join(model, root, h->folder) && snapshot(model, h->revision, folder);
}

static bool
find_hub(const char *name, char *path, size_t size, struct err *err)
{
    struct hub_name h;
    char folder[PATH_MAX], fetch[FETCH_ROOM];
    const char *stem = name + strlen(HF);
    const int n = (int)strcspn(stem, "@:");
    if (!split_hub_name(stem, &h))
        return err_set(err, ERR_USAGE, "%.80s: a model of the Hugging Face cache is hf:ORG/NAME", name);
    errno = 0;
    if (hub_snapshot(&h, folder))
        return in_snapshot(name, folder, h.part, path, size, err);
    if (lacks_resources())
        return err_set(err, ERR_WORK, "%.120s: the cache cannot be read: %s", name, strerror(errno));
    if (ollama_has(stem, n))
        return err_set(err, ERR_WORK,
                       "%.120s is not in the Hugging Face cache, but Ollama has it: " OLLAMA "hf.co/%.*s", name, n,
                       stem);
    return err_set(err, ERR_WORK, "%.120s is not in the Hugging Face cache; fetch it: %s", name,
                   fetch_command(name, fetch));
}

/* For a path that does not exist: fails with a hint if it can be a name of the hub, ORG/NAME. */
static bool
hint_at_hub(const char *name, struct err *err)
{
    struct hub_name h;
    char folder[PATH_MAX], fetch[FETCH_ROOM], whole[300] = HF;
    if (strchr("./~", name[0]) != NULL || strlen(name) > 200 || is_gguf(name) || !split_hub_name(name, &h))
        return true;
    snprintf(whole + strlen(HF), sizeof whole - strlen(HF), "%s", name);
    if (hub_snapshot(&h, folder))
        return err_set(err, ERR_WORK, "%s: there is no such file or folder; the Hugging Face cache has %s", name,
                       whole);
    return err_set(
        err, ERR_WORK,
        "%s: there is no such file or folder; if it is a model of the Hugging Face hub, fetch it (%s) and give %s",
        name, fetch_command(whole, fetch), whole);
}

/* ---- Ollama: the manifest manifests/REGISTRY/OWNER/NAME/TAG lists blobs ---- */

/* Finds a manifest's blobs: the weights, which must exist, and an adapter; "": it has none. */
static bool
blobs_of(const char *root, const char *manifest, char out[PATH_MAX], char adapter[PATH_MAX])
{
    char *text;
    struct ollama_blobs blobs;
    size_t n;
    adapter[0] = '\0';
    if (!file_text(manifest, MANIFEST_MOST, &text, &n, NULL))
        return false;
    const bool read = ollama_manifest_blobs(text, n, &blobs);
    free(text);
    if (!read)
        errno = ENOMEM;
    return read && blobs.weights[0] != '\0' && join(out, root, blobs.weights) && is_file(out) &&
           (blobs.adapter[0] == '\0' || join(adapter, root, blobs.adapter));
}

static bool
find_ollama(const char *name, char *path, size_t size, struct err *err)
{
    static const char *const before[] = {REGISTRY LIBRARY, REGISTRY, ""};
    char root[PATH_MAX], manifest[PATH_MAX], blob[PATH_MAX], adapter[PATH_MAX], rest[300];
    const char *model = name + strlen(OLLAMA), *slash = strrchr(model, '/');
    const char *tag = strchr(slash != NULL ? slash : model, ':'); /* a registry may have a port */
    const int stem = tag != NULL ? (int)(tag - model) : (int)strlen(model);
    const size_t depth = depth_of(model);
    if (stem == 0 || strstr(model, "..") != NULL || model[0] == '/' || depth >= sizeof before / sizeof *before)
        return err_set(err, ERR_USAGE, "%.80s: an Ollama model is ollama:NAME or ollama:NAME:TAG", name);
    const int n = snprintf(rest, sizeof rest, "manifests/%s%.*s/%s", before[depth], stem, model,
                           tag != NULL ? tag + 1 : "latest");
    errno = 0;
    for (size_t i = 0; i < OLLAMA_ROOTS && n > 0 && (size_t)n < sizeof rest; i++) {
        if (!root_path(&ollama_roots[i], root) || !join(manifest, root, rest) || !is_file(manifest) ||
            !blobs_of(root, manifest, blob, adapter))
            continue;
        if (adapter[0] != '\0')
            return err_set(err, ERR_WORK,
                           "%.80s has an adapter, which is not merged by this name; give both files: --lora %s %s",
                           name, adapter, blob);
        return (size_t)snprintf(path, size, "%s", blob) < size || err_set(err, ERR_WORK, "%s: too long a path", name);
    }
    if (lacks_resources())
        return err_set(err, ERR_WORK, "%.120s: Ollama's list cannot be read: %s", name, strerror(errno));
    return err_set(err, ERR_WORK, "%.120s is not among Ollama's models; fetch it: ollama pull %.100s", name, model);
}

/* ---- by any name ---- */

bool
model_find(const char *name, char *path, size_t size, struct err *err)
{
    struct stat st;
    if (stat(name, &st) != 0 && !file_exists(name)) { /* an existing path has precedence over names */
        if (strncmp(name, HF, strlen(HF)) == 0)
            return find_hub(name, path, size, err);
        if (strncmp(name, OLLAMA, strlen(OLLAMA)) == 0)
            return find_ollama(name, path, size, err);
        if (!hint_at_hub(name, err))
            return false;
    }
    return (size_t)snprintf(path, size, "%s", name) < size || err_set(err, ERR_WORK, "%.80s…: too long a path", name);
}

/* ---- all models ---- */

static void
list_hub(struct listing *l, const char *root, const char *entry)
{
    char model[PATH_MAX], folder[PATH_MAX], config[PATH_MAX], name[300] = HF;
    errno = 0;
    if (strncmp(entry, "models--", 8) != 0 || !join(model, root, entry) || !snapshot(model, "main", folder)) {
        missed(l, entry);
        return;
    }
    const char *org = entry + 8, *dashes = strstr(org, "--");
    if (dashes == NULL)
        return;
    snprintf(name, sizeof name, HF "%.*s/%s", (int)(dashes - org), org, dashes + 2);
    l->hub = name;
    l->root = folder;
    if (join(config, folder, "config.json") && is_file(config))
        emit(l, name, folder);
    else
        each_entry(l, folder, list_hub_file);
}

static void
list_files(struct listing *l, const char *folder, const char *name)
{
    char path[PATH_MAX];
    if (!join(path, folder, name))
        return;
    if (hf_is_folder(path) && depth_of(path) < 64)
        each_entry(l, path, list_files);
    else if (is_gguf(name))
        emit(l, path, path);
}

/* A manifest's path below the root is manifests/REGISTRY/OWNER/NAME/TAG. Of a model with an adapter the list has the
 * adapter, whose entry reports that it needs the base model; without the adapter the weights are another model. */
static void
list_ollama(struct listing *l, const char *folder, const char *name)
{
    char path[PATH_MAX], other[PATH_MAX], blob[PATH_MAX], adapter[PATH_MAX], shown[300];
    if (!join(path, folder, name))
        return;
    if (hf_is_folder(path)) {
        each_entry(l, path, list_ollama);
        return;
    }
    if (l->before != NULL && join(other, l->before, path + strlen(l->root) + 1) && is_file(other))
        return;
    const char *at = path + strlen(l->root) + strlen("/manifests/");
    if (strncmp(at, REGISTRY, strlen(REGISTRY)) == 0)
        at += strlen(REGISTRY);
    if (strncmp(at, LIBRARY, strlen(LIBRARY)) == 0)
        at += strlen(LIBRARY);
    const char *slash = strrchr(at, '/');
    errno = 0;
    if (slash == NULL || !blobs_of(l->root, path, blob, adapter)) {
        missed(l, path);
        return;
    }
    snprintf(shown, sizeof shown, OLLAMA "%.*s:%s", (int)(slash - at), at, slash + 1);
    emit(l, shown, adapter[0] != '\0' ? adapter : blob);
}

/* False: there is no cache. */
static bool
list_hubs(struct listing *l)
{
    char root[PATH_MAX];
    const bool there = FIRST_ROOT(hf_roots, root);
    if (there)
        each_entry(l, root, list_hub);
    return there;
}

static bool
list_ollamas(struct listing *l)
{
    char roots[OLLAMA_ROOTS][PATH_MAX], manifests[PATH_MAX];
    bool there = false;
    for (size_t i = 0; i < OLLAMA_ROOTS; i++) {
        if (!root_path(&ollama_roots[i], roots[i]) || !join(manifests, roots[i], "manifests") ||
            !hf_is_folder(manifests))
            continue;
        l->root = roots[i];
        each_entry(l, manifests, list_ollama);
        l->before = roots[i];
        there = true;
    }
    l->root = l->before = NULL;
    return there;
}

/* Writes LM Studio's folder of models: `downloadsFolder` in the settings of its home folder, or "models" in it. */
static bool
studio_models(const char *home, char out[PATH_MAX])
{
    char path[PATH_MAX], *text = NULL;
    size_t n = 0;
    cJSON *settings = NULL;
    const bool read = join(path, home, "settings.json") && file_text(path, MANIFEST_MOST, &text, &n, NULL) &&
                      json_read(&settings, text, n);
    const char *given =
        read ? cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(settings, "downloadsFolder")) : NULL;
    const bool ok = given != NULL && given[0] == '/' ? (size_t)snprintf(out, PATH_MAX, "%s", given) < PATH_MAX
                                                     : join(out, home, "models");
    cJSON_Delete(settings);
    free(text);
    return ok && hf_is_folder(out);
}

/* Lists the models of LM Studio, whose home folder is in a file of $HOME or has one of two names. */
static void
list_studio(struct listing *l)
{
    static const struct root pointer = {NULL, "", ".lmstudio-home-pointer"};
    char home[PATH_MAX], models[STUDIO_HOMES + 1][PATH_MAX], *text = NULL;
    size_t length, n = 0;
    if (root_path(&pointer, home) && file_text(home, PATH_MAX, &text, &length, NULL)) {
        text[strcspn(text, "\r\n")] = '\0';
        n += studio_models(text, models[0]);
    }
    free(text);
    for (size_t i = 0; i < STUDIO_HOMES; i++)
        n += root_path(&studio_homes[i], home) && studio_models(home, models[n]);
    for (size_t i = 0; i < n; i++) {
        size_t same = 0;
        while (strcmp(models[same], models[i]) != 0)
            same++;
        if (same == i)
            each_entry(l, models[i], list_files);
    }
}

bool
model_locations_list(model_seen_fn seen, void *user, struct err *err)
{
    struct listing l = {.seen = seen, .user = user, .err = err};
    char root[PATH_MAX];
    list_hubs(&l);
    list_ollamas(&l);
    list_studio(&l);
    if (FIRST_ROOT(llama_roots, root))
        each_entry(&l, root, list_files);
    return !l.lacks;
}

static void list_models(struct listing *l, const char *folder, const char *name);

/* Lists a folder that belongs to no other program: it is a model, or models are below it. */
static void
list_folder(struct listing *l, const char *path)
{
    char config[PATH_MAX];
    if (join(config, path, "config.json") && is_file(config))
        emit(l, path, path);
    else if (depth_of(path) < 64)
        each_entry(l, path, list_models);
}

static void
list_models(struct listing *l, const char *folder, const char *name)
{
    char path[PATH_MAX];
    if (join(path, folder, name) && hf_is_folder(path))
        list_folder(l, path);
    else
        list_files(l, folder, name);
}

bool
model_place_list(const char *place, model_seen_fn seen, void *user, struct err *err)
{
    struct listing l = {.seen = seen, .user = user, .err = err};
    const bool hub = strcmp(place, "hf") == 0, ollama = strcmp(place, "ollama") == 0;
    if (!(hub ? list_hubs(&l) : ollama ? list_ollamas(&l) : hf_is_folder(place)))
        return err_set(err, ERR_USAGE,
                       hub || ollama ? "%.200s: this machine has no such cache of models"
                                     : "%.200s: no such folder; 'hf' and 'ollama' are the caches of these programs",
                       place);
    if (!hub && !ollama)
        list_folder(&l, place);
    return !l.lacks;
}
