#include "engine/model/model_places.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "engine/base/embedded.h"
#include "engine/base/file_text.h"
#include "engine/model/model_near.h"
#include "engine/model/ollama_manifest.h"

#define MANIFEST_MOST ((size_t)1 << 20)
#define MOST_PART     96 /* bytes of a part of a file's name */
#define HF            "hf:"
#define OLLAMA        "ollama:"

/* ---- paths ---- */

static bool
is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool
is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The last call that failed did so for want of something, not because nothing is there. */
static bool
in_want(void)
{
    return errno == ENOMEM || errno == EMFILE || errno == ENFILE || errno == EIO;
}

static bool
join(char out[PATH_MAX], const char *folder, const char *rest)
{
    return (size_t)snprintf(out, PATH_MAX, "%s/%s", folder, rest) < PATH_MAX;
}

/* The folder that a variable names, with what follows it; else one in $HOME. */
struct root {
    const char *variable, *below, *in_home;
};

static bool
root_path(const struct root *r, char out[PATH_MAX])
{
    const char *given = r->variable != NULL ? getenv(r->variable) : NULL, *home = getenv("HOME");
    if (given != NULL && given[0] != '\0')
        return (size_t)snprintf(out, PATH_MAX, "%s%s", given, r->below) < PATH_MAX;
    return r->in_home != NULL && home != NULL && home[0] == '/' && join(out, home, r->in_home);
}

/* The first that a program would look at, and is there. */
static bool
first_root(const struct root *roots, size_t n, char out[PATH_MAX])
{
    for (size_t i = 0; i < n; i++)
        if (root_path(&roots[i], out) && is_folder(out))
            return true;
    return false;
}

static const struct root hf_roots[] = {{"HF_HUB_CACHE", "", NULL},
                                       {"HUGGINGFACE_HUB_CACHE", "", NULL},
                                       {"HF_HOME", "/hub", NULL},
                                       {"XDG_CACHE_HOME", "/huggingface/hub", ".cache/huggingface/hub"}};
static const struct root ollama_roots[] = {{"OLLAMA_MODELS", "", ".ollama/models"}};
static const struct root studio_roots[] = {{NULL, "", ".lmstudio/models"}, {NULL, "", ".cache/lm-studio/models"}};
static const struct root llama_roots[] = {{"LLAMA_CACHE", "", NULL},
                                          {"XDG_CACHE_HOME", "/llama.cpp", ".cache/llama.cpp"}};
#define FIRST_ROOT(roots, out) first_root(roots, sizeof(roots) / sizeof *(roots), out)

/* ---- the Hugging Face cache: models--ORG--NAME/{refs/REVISION, snapshots/COMMIT/} ---- */

struct hub_name {
    char folder[256], revision[128], part[MOST_PART];
};

static bool
split_hub_name(const char *name, struct hub_name *out)
{
    const char *slash = strchr(name, '/'), *end = name + strlen(name), *colon = strchr(name, ':');
    const char *at = memchr(name, '@', (size_t)((colon != NULL ? colon : end) - name)); /* a part may have one, too */
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

/* The only entry of a folder that matches, hidden ones aside: how many there are, the last one's name in `name`. */
static size_t
entries(const char *folder, bool (*match)(const char *name, const void *user), const void *user,
        char name[NAME_MAX + 1])
{
    size_t n = 0;
    DIR *d = opendir(folder);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.' && match(e->d_name, user)) {
            snprintf(name, NAME_MAX + 1, "%s", e->d_name);
            n++;
        }
    if (d != NULL)
        closedir(d);
    return n;
}

static bool
any(const char *name, const void *user)
{
    (void)name;
    (void)user;
    return true;
}

/* The snapshot of a revision: a ref says which commit, or it is the commit itself, or there is only one. */
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
    if (strstr(rest, "..") == NULL && join(out, model, rest) && is_folder(out))
        return true;
    if (strcmp(revision, "main") != 0 || !join(path, model, "snapshots") || entries(path, any, NULL, only) != 1)
        return false;
    return join(out, path, only) && is_folder(out);
}

static bool
ends_in_gguf(const char *name, const void *part)
{
    const size_t n = strlen(name);
    if (n < 5 || strcasecmp(name + n - 5, ".gguf") != 0)
        return false;
    const char *split = strstr(name, "-of-"); /* of a split file the first part stands for all */
    if (split != NULL && (split - name < 6 || memcmp(split - 6, "-00001", 6) != 0))
        return false;
    return strcasestr(name, part) != NULL;
}

static bool
in_snapshot(const char *name, const char *folder, const char *part, char *path, size_t size, struct err *err)
{
    char inner[PATH_MAX], file[NAME_MAX + 1] = "";
    if (part[0] == '\0' && join(inner, folder, "config.json") && is_file(inner))
        return (size_t)snprintf(path, size, "%s", folder) < size;
    const size_t n = entries(folder, ends_in_gguf, part, file);
    if (n == 1 && join(inner, folder, file))
        return (size_t)snprintf(path, size, "%s", inner) < size;
    return err_set(err, ERR_WORK,
                   n == 0 ? "%s: %s has neither a config.json nor such a GGUF file; fetch the whole of it"
                          : "%s: %s has several such GGUF files; say which with a part of the name: hf:ORG/NAME:Q4_K_M",
                   name, folder);
}

static bool
find_hub(const char *name, char *path, size_t size, struct err *err)
{
    struct hub_name h;
    char root[PATH_MAX], model[PATH_MAX], folder[PATH_MAX];
    if (!split_hub_name(name + strlen(HF), &h))
        return err_set(err, ERR_USAGE, "%.80s: a model of the Hugging Face cache is hf:ORG/NAME", name);
    errno = 0;
    if (FIRST_ROOT(hf_roots, root) && join(model, root, h.folder) && snapshot(model, h.revision, folder))
        return in_snapshot(name, folder, h.part, path, size, err);
    if (in_want())
        return err_set(err, ERR_WORK, "%.120s: the cache cannot be read: %s", name, strerror(errno));
    return err_set(err, ERR_WORK, "%.120s is not in the Hugging Face cache; fetch it: hf download %.*s", name,
                   (int)strcspn(name + strlen(HF), "@:"), name + strlen(HF));
}

/* ---- Ollama: manifests/registry.ollama.ai/library/NAME/TAG names blobs ---- */

/* The blob with the weights that a manifest names, if it is there. */
static bool
blob_of(const char *root, const char *manifest, char out[PATH_MAX])
{
    char *text, rest[OLLAMA_BLOB_MOST];
    size_t n;
    if (!file_text(manifest, MANIFEST_MOST, &text, &n, NULL))
        return false;
    const bool read = ollama_manifest_blob(text, n, rest);
    free(text);
    if (!read)
        errno = ENOMEM;
    return read && rest[0] != '\0' && join(out, root, rest) && is_file(out);
}

static bool
find_ollama(const char *name, char *path, size_t size, struct err *err)
{
    char root[PATH_MAX], manifest[PATH_MAX], blob[PATH_MAX], rest[300];
    const char *model = name + strlen(OLLAMA), *tag = strrchr(model, ':');
    const int stem = tag != NULL ? (int)(tag - model) : (int)strlen(model);
    if (stem == 0 || strstr(model, "..") != NULL || model[0] == '/')
        return err_set(err, ERR_USAGE, "%.80s: an Ollama model is ollama:NAME or ollama:NAME:TAG", name);
    const bool own = memchr(model, '/', (size_t)stem) != NULL; /* of a user's: USER/NAME */
    const int n = snprintf(rest, sizeof rest, "manifests/registry.ollama.ai/%s%.*s/%s", own ? "" : "library/", stem,
                           model, tag != NULL ? tag + 1 : "latest");
    errno = 0;
    if (n > 0 && (size_t)n < sizeof rest && FIRST_ROOT(ollama_roots, root) && join(manifest, root, rest) &&
        is_file(manifest) && blob_of(root, manifest, blob))
        return (size_t)snprintf(path, size, "%s", blob) < size || err_set(err, ERR_WORK, "%s: too long a path", name);
    if (in_want())
        return err_set(err, ERR_WORK, "%.120s: Ollama's list cannot be read: %s", name, strerror(errno));
    return err_set(err, ERR_WORK, "%.120s is not among Ollama's models; fetch it: ollama pull %.100s", name, model);
}

/* ---- by any name ---- */

bool
model_find(const char *name, char *path, size_t size, struct err *err)
{
    struct stat st;
    if (stat(name, &st) != 0 && !embedded_or_there(name)) { /* what is there is meant, whatever it is called */
        if (strncmp(name, HF, strlen(HF)) == 0)
            return find_hub(name, path, size, err);
        if (strncmp(name, OLLAMA, strlen(OLLAMA)) == 0)
            return find_ollama(name, path, size, err);
        if (!model_near(name, err))
            return false;
    }
    return (size_t)snprintf(path, size, "%s", name) < size || err_set(err, ERR_WORK, "%.80s…: too long a path", name);
}

/* ---- all there are ---- */

struct listing {
    model_seen_fn seen;
    void *user;
    bool over;
    const char *hub; /* "hf:ORG/NAME" of the folder that is listed */
    bool lacks;      /* something could not be looked into */
    struct err *err;
};

static void
missed(struct listing *l, const char *path)
{
    if (in_want() && !l->lacks)
        l->lacks = !err_set(l->err, ERR_WORK, "%.300s: cannot be looked into: %s", path, strerror(errno));
}

static void
tell(struct listing *l, const char *name, const char *path)
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

static void
list_hub_file(struct listing *l, const char *folder, const char *name)
{
    char path[PATH_MAX], whole[300 + NAME_MAX + 2];
    if (!ends_in_gguf(name, "") || !join(path, folder, name))
        return;
    snprintf(whole, sizeof whole, "%s:%s", l->hub, name);
    tell(l, strlen(name) < MOST_PART ? whole : path, path);
}

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
    if (join(config, folder, "config.json") && is_file(config))
        tell(l, name, folder);
    else
        each_entry(l, folder, list_hub_file);
}

static void
list_files(struct listing *l, const char *folder, const char *name)
{
    char path[PATH_MAX];
    if (!join(path, folder, name))
        return;
    size_t depth = 0;
    for (const char *at = path; *at != '\0'; at++)
        depth += *at == '/';
    if (is_folder(path) && depth < 64)
        each_entry(l, path, list_files);
    else if (ends_in_gguf(name, ""))
        tell(l, path, path);
}

/* A manifest's path below the library ends in NAME/TAG. */
static void
list_ollama(struct listing *l, const char *folder, const char *name)
{
    char path[PATH_MAX], blob[PATH_MAX], root[PATH_MAX], shown[300];
    static const char below[] = "/manifests/registry.ollama.ai/";
    if (!join(path, folder, name))
        return;
    if (is_folder(path)) {
        each_entry(l, path, list_ollama);
        return;
    }
    const char *at = strstr(path, below);
    if (at == NULL)
        return;
    snprintf(root, sizeof root, "%.*s", (int)(at - path), path);
    at += strlen(below);
    if (strncmp(at, "library/", 8) == 0)
        at += 8;
    const char *slash = strrchr(at, '/');
    errno = 0;
    if (slash == NULL || !blob_of(root, path, blob)) {
        missed(l, path);
        return;
    }
    snprintf(shown, sizeof shown, OLLAMA "%.*s:%s", (int)(slash - at), at, slash + 1);
    tell(l, shown, blob);
}

bool
model_places_list(model_seen_fn seen, void *user, struct err *err)
{
    struct listing l = {.seen = seen, .user = user, .err = err};
    char root[PATH_MAX], manifests[PATH_MAX];
    if (FIRST_ROOT(hf_roots, root))
        each_entry(&l, root, list_hub);
    if (FIRST_ROOT(ollama_roots, root) && join(manifests, root, "manifests/registry.ollama.ai"))
        each_entry(&l, manifests, list_ollama);
    for (size_t i = 0; i < sizeof studio_roots / sizeof *studio_roots; i++)
        if (root_path(&studio_roots[i], root))
            each_entry(&l, root, list_files);
    if (FIRST_ROOT(llama_roots, root))
        each_entry(&l, root, list_files);
    return !l.lacks;
}
