#include "base/json_read.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array_grow.h"

/* Sets *end to the first parse error, or to the first byte after the value. */
static bool
parse(cJSON **out, const char *text, size_t n, const char **end)
{
    const int before = errno;
    errno = 0;
    *out = cJSON_ParseWithLengthOpts(text, n, end, false);
    const bool starved = *out == NULL && errno == ENOMEM;
    errno = before;
    return !starved;
}

bool
json_read(cJSON **out, const char *text, size_t n)
{
    const char *end;
    return parse(out, text, n, &end);
}

/* ---- what Python accepts ---- */

/* A text's numbers are counted in their order, which is also that of the parsed tree. */
struct python {
    char *text;  /* a copy in which cJSON can read every number */
    size_t *nan; /* (n_nan) the numbers that are NaN */
    size_t n_nan, nan_room, n_numbers;
    size_t seen, seen_nan; /* while the tree is walked */
};

static bool
add_nan(struct python *p)
{
    if (!array_grow(&p->nan, &p->nan_room, p->n_nan + 1, sizeof *p->nan))
        return false;
    p->nan[p->n_nan++] = p->n_numbers;
    return true;
}

static size_t
string_end(const char *text, size_t n, size_t at)
{
    for (at++; at < n && text[at] != '"'; at++)
        at += text[at] == '\\';
    return at + 1;
}

/* Moves *at past a number, and replaces what cJSON cannot read: Infinity by a number that overflows to it, NaN by 0. */
static bool
replace_number(struct python *p, size_t n, size_t *at)
{
    static const char infinity[] = "Infinity", larger[] = "1e999   ";
    char *text = p->text + *at;
    const size_t left = n - *at, sign = text[0] == '-', word = sizeof infinity - 1;
    if (left >= sign + word && memcmp(text + sign, infinity, word) == 0) {
        memcpy(text + sign, larger, word);
        *at += sign + word;
    } else if (left >= 3 && memcmp(text, "NaN", 3) == 0) {
        memcpy(text, "0  ", 3);
        *at += 3;
        if (!add_nan(p))
            return false;
    } else {
        const size_t digits = strspn(text, "+-.0123456789eE");
        *at += digits + (text[digits] == 'N' || text[digits] == 'I'); /* -NaN stays what it is */
    }
    p->n_numbers++;
    return true;
}

static bool
replace_numbers(struct python *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        const char c = p->text[at];
        if (c == '"')
            at = string_end(p->text, n, at);
        else if (c != '\0' && strchr("-0123456789NI", c) != NULL) {
            if (!replace_number(p, n, &at))
                return false;
        } else {
            at++;
        }
    }
    return true;
}

struct member {
    cJSON *item;
    size_t place;
};

static int
by_key(const void *a, const void *b)
{
    const struct member *p = a, *q = b;
    const int order = strcmp(p->item->string, q->item->string);
    return order != 0 ? order : (p->place > q->place) - (p->place < q->place);
}

/* Removes the members of an object that a later one with the same key replaces. */
static bool
keep_last(cJSON *object)
{
    const size_t n = (size_t)cJSON_GetArraySize(object);
    size_t i = 0;
    struct member *list = n < 2 ? NULL : malloc(n * sizeof *list);
    if (n < 2 || list == NULL)
        return n < 2;
    for (cJSON *item = object->child; item != NULL; item = item->next, i++)
        list[i] = (struct member){item, i};
    qsort(list, n, sizeof *list, by_key);
    for (i = 1; i < n; i++)
        if (strcmp(list[i - 1].item->string, list[i].item->string) == 0)
            cJSON_Delete(cJSON_DetachItemViaPointer(object, list[i - 1].item));
    free(list);
    return true;
}

/* cJSON limits the depth of a tree. */
static bool
finish_tree(struct python *p, cJSON *value)
{
    if (cJSON_IsNumber(value)) {
        if (p->seen_nan < p->n_nan && p->nan[p->seen_nan] == p->seen) {
            value->valuedouble = NAN;
            p->seen_nan++;
        }
        p->seen++;
    }
    for (cJSON *item = value == NULL ? NULL : value->child; item != NULL; item = item->next)
        if (!finish_tree(p, item))
            return false;
    return !cJSON_IsObject(value) || keep_last(value);
}

bool
json_read_python(cJSON **out, const char *text, size_t n)
{
    struct python p = {.text = malloc(n + 1)};
    *out = NULL;
    if (p.text == NULL)
        return false;
    if (n > 0)
        memcpy(p.text, text, n);
    p.text[n] = '\0';
    const bool ok = replace_numbers(&p, n) && json_read(out, p.text, n) && finish_tree(&p, *out);
    if (!ok) {
        cJSON_Delete(*out);
        *out = NULL;
    }
    free(p.text);
    free(p.nan);
    return ok;
}

bool
json_read_typed(cJSON **out, const char *text, size_t n, size_t *wrong)
{
    const char *end = NULL;
    *wrong = 0;
    if (!parse(out, text, n, &end))
        return false;
    end = end != NULL ? end : text;
    while (*out != NULL && end < text + n && *end != '\0' && strchr(" \t\r\n", *end) != NULL)
        end++;
    if (*out != NULL && end == text + n)
        return true;
    cJSON_Delete(*out);
    *out = NULL;
    *wrong = 1;
    for (const char *c = text; c < end && c < text + n; c++)
        *wrong += *c == '\n';
    return true;
}
