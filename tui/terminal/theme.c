#include "tui/terminal/theme.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/colour.h"
#include "base/file_read.h"
#include "base/json_read.h"

const struct role_form role_forms[ROLES] = {
    [ROLE_TEXT] = {"text", 0},
    [ROLE_DIM] = {"dim", THEME_DIM},
    [ROLE_TITLE] = {"title", THEME_BOLD},
    [ROLE_BORDER] = {"border", THEME_DIM},
    [ROLE_FOCUS] = {"focus", THEME_BOLD},
    [ROLE_STATUS] = {"status", 0},
    [ROLE_ERROR] = {"error", THEME_BOLD | THEME_REVERSE},
    [ROLE_OK] = {"ok", THEME_BOLD},
    [ROLE_WARN] = {"warn", THEME_BOLD | THEME_UNDERLINE},
    [ROLE_PROMPT] = {"prompt", THEME_DIM},
    [ROLE_DRAFT] = {"draft", THEME_DIM | THEME_UNDERLINE},
    [ROLE_ACCEPTED] = {"accepted", 0},
    [ROLE_REJECTED] = {"rejected", THEME_DIM | THEME_STRIKE},
    [ROLE_CORRECTION] = {"correction", THEME_BOLD},
    [ROLE_BONUS] = {"bonus", THEME_BOLD | THEME_UNDERLINE},
    [ROLE_EXITED] = {"exited", THEME_DIM},
    [ROLE_SPURIOUS] = {"spurious", THEME_BOLD | THEME_UNDERLINE},
    [ROLE_CURSOR] = {"cursor", THEME_REVERSE},
    [ROLE_LINE] = {"line", THEME_DIM},
    [ROLE_KNOB] = {"knob", THEME_BOLD},
    [ROLE_KNOB_PENDING] = {"knob-pending", THEME_UNDERLINE},
    [ROLE_KEY] = {"key", THEME_BOLD},
    [ROLE_SERIES_1] = {"series-1", THEME_BOLD},
    [ROLE_SERIES_2] = {"series-2", 0},
    [ROLE_SERIES_3] = {"series-3", THEME_DIM},
    [ROLE_SERIES_4] = {"series-4", 0},
};

static const struct {
    const char *name;
    enum theme_attribute attribute;
} attribute_names[] = {{"bold", THEME_BOLD},
                       {"dim", THEME_DIM},
                       {"underline", THEME_UNDERLINE},
                       {"reverse", THEME_REVERSE},
                       {"strike", THEME_STRIKE}};

/* Parses "#rrggbb" or "default"; false if it is neither. */
static bool
parse_colour(const cJSON *item, int32_t *rgb)
{
    const char *s = cJSON_GetStringValue(item);
    if (s == NULL)
        return false;
    if (strcmp(s, "default") == 0) {
        *rgb = THEME_NO_RGB;
        return true;
    }
    if (s[0] != '#' || strlen(s) != 7 || strspn(s + 1, "0123456789abcdefABCDEF") != 6)
        return false;
    *rgb = (int32_t)strtol(s + 1, NULL, 16);
    return true;
}

static bool
parse_role(struct theme_style *style, const cJSON *item, const char *theme, struct err *err)
{
    if (!cJSON_IsObject(item))
        return err_set(err, ERR_USAGE, "theme %s: role \"%s\" must be an object like {\"fg\": \"#c0c0c0\"}", theme,
                       item->string);
    const cJSON *key = NULL;
    cJSON_ArrayForEach(key, item)
    {
        if (strcmp(key->string, "fg") == 0 || strcmp(key->string, "bg") == 0) {
            if (!parse_colour(key, key->string[0] == 'f' ? &style->fg : &style->bg))
                return err_set(err, ERR_USAGE,
                               "theme %s: %s of role \"%s\" must be a colour like \"#c0c0c0\", or \"default\"", theme,
                               key->string, item->string);
            continue;
        }
        bool known = false;
        for (size_t i = 0; i < sizeof attribute_names / sizeof attribute_names[0]; i++) {
            if (strcmp(key->string, attribute_names[i].name) != 0)
                continue;
            known = true;
            if (!cJSON_IsBool(key))
                return err_set(err, ERR_USAGE, "theme %s: %s of role \"%s\" must be true or false", theme, key->string,
                               item->string);
            const uint8_t bit = (uint8_t)attribute_names[i].attribute;
            style->attributes = (uint8_t)(cJSON_IsTrue(key) ? style->attributes | bit : style->attributes & ~bit);
        }
        if (!known)
            return err_set(err, ERR_USAGE,
                           "theme %s: role \"%s\" has no key \"%.40s\"; its keys are fg, bg, bold, dim, underline, "
                           "reverse, strike",
                           theme, item->string, key->string);
    }
    return true;
}

static bool
parse_roles(struct theme *t, const cJSON *roles, struct err *err)
{
    /* "text" first: the others start from its colours. */
    struct theme_style base = {.fg = THEME_NO_RGB, .bg = THEME_NO_RGB};
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(roles, role_forms[ROLE_TEXT].name);
    if (text != NULL && !parse_role(&base, text, t->name, err))
        return false;
    for (int i = 0; i < ROLES; i++)
        t->role[i] = (struct theme_style){.fg = base.fg, .bg = base.bg};
    t->role[ROLE_TEXT] = base;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, roles)
    {
        int role = 0;
        while (role < ROLES && strcmp(role_forms[role].name, item->string) != 0)
            role++;
        if (role == ROLES)
            return err_set(err, ERR_USAGE, "theme %s: there is no role \"%.40s\"; see themes/dark.json for all of them",
                           t->name, item->string);
        if (role != ROLE_TEXT && !parse_role(&t->role[role], item, t->name, err))
            return false;
    }
    return true;
}

static bool
parse_stops(struct theme *t, const cJSON *heat, struct err *err)
{
    if (!cJSON_IsArray(heat) || cJSON_GetArraySize(heat) > THEME_STOPS || cJSON_GetArraySize(heat) == 1)
        return err_set(err, ERR_USAGE, "theme %s: \"heat\" must be a list of 2 to %d colours, or empty", t->name,
                       THEME_STOPS);
    t->stops = 0;
    const cJSON *stop = NULL;
    cJSON_ArrayForEach(stop, heat)
    {
        if (!parse_colour(stop, &t->heat[t->stops]) || t->heat[t->stops] == THEME_NO_RGB)
            return err_set(err, ERR_USAGE, "theme %s: stop %d of \"heat\" must be a colour like \"#fde725\"", t->name,
                           t->stops + 1);
        t->stops++;
    }
    t->darker = t->stops > 0 && colour_lightness(t->heat[t->stops - 1]) < colour_lightness(t->heat[0]);
    return true;
}

static bool
parse_more(const struct theme *t, const cJSON *more, struct err *err)
{
    const char *wanted = cJSON_GetStringValue(more), *is = t->darker ? "darker" : "lighter";
    if (wanted == NULL || (strcmp(wanted, "lighter") != 0 && strcmp(wanted, "darker") != 0))
        return err_set(err, ERR_USAGE, "theme %s: \"more\" must be \"lighter\" or \"darker\"", t->name);
    if (strcmp(wanted, is) != 0)
        return err_set(err, ERR_USAGE, "theme %s: \"more\" is %s, but \"heat\" becomes %s; reverse one of them",
                       t->name, wanted, is);
    return true;
}

static bool
parse_steps(struct theme *t, enum theme_palette palette, const cJSON *steps, struct err *err)
{
    static const int colours[THEME_PALETTES] = {256, 16, 8};
    const int n = cJSON_GetArraySize(steps);
    if (!cJSON_IsArray(steps) || n < 2 || n > THEME_STOPS)
        return err_set(err, ERR_USAGE, "theme %s: \"%s\" must be a list of 2 to %d colour numbers", t->name,
                       steps->string, THEME_STOPS);
    t->steps[palette].n = 0;
    const cJSON *step = NULL;
    cJSON_ArrayForEach(step, steps)
    {
        const double number = cJSON_IsNumber(step) ? step->valuedouble : -1;
        if (!(number >= 0 && number < colours[palette]) || number != floor(number))
            return err_set(err, ERR_USAGE, "theme %s: step %d of \"%s\" must be a colour number from 0 to %d", t->name,
                           t->steps[palette].n + 1, steps->string, colours[palette] - 1);
        t->steps[palette].number[t->steps[palette].n++] = (uint8_t)number;
    }
    return true;
}

/* Reads the heat scale, all of which is optional. */
static bool
parse_heat(struct theme *t, const cJSON *root, struct err *err)
{
    static const char *const keys[THEME_PALETTES] = {"heat-256", "heat-16", "heat-8"};
    const cJSON *heat = cJSON_GetObjectItemCaseSensitive(root, "heat"),
                *more = cJSON_GetObjectItemCaseSensitive(root, "more");
    if ((heat != NULL && !parse_stops(t, heat, err)) || (more != NULL && !parse_more(t, more, err)))
        return false;
    for (int i = 0; i < THEME_PALETTES; i++) {
        const cJSON *steps = cJSON_GetObjectItemCaseSensitive(root, keys[i]);
        if (steps != NULL && !parse_steps(t, (enum theme_palette)i, steps, err))
            return false;
    }
    return true;
}

bool
theme_parse(struct theme *out, const char *json, size_t n, const char *name, struct err *err)
{
    struct theme t = {0};
    snprintf(t.name, sizeof t.name, "%s", name);
    size_t wrong;
    cJSON *root;
    if (!json_read_typed(&root, json, n, &wrong))
        return err_set(err, ERR_WORK, "theme %s: out of memory", t.name);
    if (wrong > 0)
        return err_set(err, ERR_USAGE, "theme %s: not valid JSON in line %zu; mend it or choose another with :theme",
                       t.name, wrong);
    bool fine = false;
    const cJSON *roles = cJSON_GetObjectItemCaseSensitive(root, "roles");
    if (!cJSON_IsObject(root) || !cJSON_IsObject(roles))
        err_set(err, ERR_USAGE, "theme %s: an object with \"roles\" and \"heat\" was expected; see themes/dark.json",
                t.name);
    else
        fine = parse_roles(&t, roles, err) && parse_heat(&t, root, err);
    cJSON_Delete(root);
    if (fine)
        *out = t;
    return fine;
}

void
theme_mono(struct theme *t)
{
    *t = (struct theme){.name = "mono"};
    for (int i = 0; i < ROLES; i++)
        t->role[i] =
            (struct theme_style){.fg = THEME_NO_RGB, .bg = THEME_NO_RGB, .attributes = role_forms[i].attributes};
}

int32_t
theme_heat(const struct theme *t, float fraction)
{
    if (t->stops == 0)
        return THEME_NO_RGB;
    const float at = (fraction <= 0 ? 0 : fraction >= 1 ? 1 : fraction) * (float)(t->stops - 1);
    const int i = at >= (float)(t->stops - 1) ? t->stops - 2 : (int)at;
    const float share = at - (float)i;
    int32_t rgb = 0;
    for (int shift = 16; shift >= 0; shift -= 8) {
        const float from = (float)((t->heat[i] >> shift) & 0xff), to = (float)((t->heat[i + 1] >> shift) & 0xff);
        rgb |= (int32_t)lrintf(from + share * (to - from)) << shift;
    }
    return rgb;
}

/* ---- files ---- */

#define THEME_FILE_MAX (256 * 1024) /* bytes; the bundled ones have two thousand */

bool
theme_builtin(struct theme *t, struct err *err)
{
    static const unsigned char dark[] = {
#include "theme_dark.inc" /* themes/dark.json as a list of byte values, made by the Makefile */
    };
    const bool fine = theme_parse(t, (const char *)dark, sizeof dark, THEME_DEFAULT, err);
    if (!fine)
        theme_mono(t);
    return fine;
}

static bool
load_file(struct theme *t, const char *path, const char *name, struct err *err)
{
    char *json;
    size_t n;
    if (!file_text(path, THEME_FILE_MAX, &json, &n, err)) {
        if (err != NULL)
            err->kind = ERR_USAGE;
        return false;
    }
    const bool fine = theme_parse(t, json, n, name, err);
    free(json);
    return fine;
}

/* Returns the i-th folder with themes; false: none. */
static bool
folder(int i, const char *data_dir, char *out, size_t size)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n = -1;
    if (i == 0 && config != NULL && config[0] == '/')
        n = snprintf(out, size, "%s/specscope/themes", config);
    else if (i == 0 && home != NULL && home[0] == '/')
        n = snprintf(out, size, "%s/.config/specscope/themes", home);
    else if (i == 1 && data_dir != NULL)
        n = snprintf(out, size, "%s/themes", data_dir);
    return n >= 0 && (size_t)n < size;
}

bool
theme_load(struct theme *t, const char *name, const char *data_dir, struct err *err)
{
    char path[4096], dir[4000];
    if (strchr(name, '/') != NULL) {
        const char *base = strrchr(name, '/') + 1;
        char stem[32];
        snprintf(stem, sizeof stem, "%.31s", base);
        char *dot = strstr(stem, ".json");
        if (dot != NULL)
            *dot = '\0';
        return load_file(t, name, stem, err);
    }
    for (int i = 0; i < 2; i++) {
        if (!folder(i, data_dir, dir, sizeof dir))
            continue;
        const int n = snprintf(path, sizeof path, "%s/%.64s.json", dir, name);
        struct err why = {0};
        if (n <= 0 || (size_t)n >= sizeof path || !file_exists(path))
            continue;
        if (load_file(t, path, name, &why))
            return true;
        if (i == 1 && why.kind == ERR_USAGE && strcmp(name, THEME_DEFAULT) == 0)
            break; /* the program has the same one in it */
        return err_copy(err, &why);
    }
    if (strcmp(name, THEME_DEFAULT) == 0) {
        struct theme own; /* *t is unchanged on failure */
        const bool fine = theme_builtin(&own, err);
        *t = fine ? own : *t;
        return fine;
    }
    if (strcmp(name, "mono") == 0) {
        theme_mono(t);
        return true;
    }
    return err_set(err, ERR_USAGE, "there is no theme \"%.40s\"; `t` lists those that there are", name);
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int
add_name(char (*names)[32], int n, int max, const char *name, size_t length)
{
    if (n >= max || length == 0 || length > 31)
        return n;
    for (int i = 0; i < n; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return n;
    memcpy(names[n], name, length);
    names[n][length] = '\0';
    return n + 1;
}

/* Returns the length of NAME.json without its ending; 0: not such a name. */
static size_t
stem_of(const char *name)
{
    const size_t length = strlen(name);
    return length > 5 && strcmp(name + length - 5, ".json") == 0 && name[0] != '.' ? length - 5 : 0;
}

static int
add_embedded(char (*names)[32], int n, int max, const char *data_dir)
{
    char dir[4000];
    const char *path;
    const size_t length = folder(1, data_dir, dir, sizeof dir) ? strlen(dir) : 0;
    for (size_t i = 0; length > 0 && (path = embedded_name(i)) != NULL; i++)
        if (strncmp(path, dir, length) == 0 && path[length] == '/')
            n = add_name(names, n, max, path + length + 1, stem_of(path + length + 1));
    return n;
}

int
theme_list(char (*names)[32], int max, const char *data_dir)
{
    int n = add_name(names, 0, max, THEME_DEFAULT, strlen(THEME_DEFAULT));
    n = add_name(names, n, max, "mono", 4);
    n = add_embedded(names, n, max, data_dir);
    for (int i = 0; i < 2; i++) {
        char dir[4000];
        DIR *open_dir = folder(i, data_dir, dir, sizeof dir) ? opendir(dir) : NULL;
        if (open_dir == NULL)
            continue;
        for (const struct dirent *entry; (entry = readdir(open_dir)) != NULL;)
            n = add_name(names, n, max, entry->d_name, stem_of(entry->d_name));
        closedir(open_dir);
    }
    qsort(names, (size_t)n, sizeof names[0], by_name);
    return n;
}

/* ---- cells ---- */

/* Returns the attribute whose line would cover the glyph. */
static unsigned
covering(const char *glyph)
{
    static const struct {
        const char *glyph;
        unsigned attribute;
    } covered[] = {{"_", THEME_UNDERLINE}, {"␣", THEME_UNDERLINE}, {"-", THEME_STRIKE},
                   {"–", THEME_STRIKE},    {"—", THEME_STRIKE},    {"−", THEME_STRIKE}};
    for (size_t i = 0; i < sizeof covered / sizeof *covered; i++)
        if (strcmp(glyph, covered[i].glyph) == 0)
            return covered[i].attribute;
    return 0;
}

struct cell_style
cell_style(const struct theme *theme, const struct grid_cell *c)
{
    struct cell_style s = {
        .heat = GRID_NO_HEAT, .upper = GRID_NO_HEAT, .role = c->role < ROLES ? (enum role)c->role : ROLE_TEXT};
    s.attributes = theme->role[s.role].attributes;
    s.ink = (c->marks & MARK_INK) != 0;
    s.text = s.role == ROLE_EXITED && (c->marks & MARK_BOLD) ? ROLE_TEXT : s.role;
    if (c->heat >= 0 && theme->stops > 0)
        s.heat = (uint8_t)c->heat;
    else if (c->heat >= 0) /* a scale of three attributes, beside the level's glyph */
        s.attributes |= c->heat < GRID_HEATS / 3 ? THEME_DIM : c->heat >= GRID_HEATS * 2 / 3 ? THEME_BOLD : 0;
    s.grey = c->upper == GRID_GREY;
    if (c->upper > 0 && c->upper <= GRID_HEATS && theme->stops > 0)
        s.upper = c->upper - 1;
    if (c->marks & MARK_CURSOR) {
        s.upper = GRID_NO_HEAT;
        s.grey = false;
        s.heat = GRID_NO_HEAT;
        s.role = s.text = ROLE_CURSOR;
        s.attributes = (s.attributes & ~(unsigned)THEME_DIM) | theme->role[ROLE_CURSOR].attributes;
    }
    if ((c->marks & MARK_FADED) && !(c->marks & MARK_CURSOR))
        s.attributes |= THEME_DIM;
    s.attributes |= (c->marks & MARK_BOLD ? THEME_BOLD : 0U) | (c->marks & MARK_STRUCK ? THEME_STRIKE : 0U) |
                    (c->marks & MARK_UNDERLINED ? THEME_UNDERLINE : 0U);
    s.attributes &= ~covering(c->text);
    return s;
}
