/* Converts one field of a line from an event to text and back. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <csv.h>

#include "base/utf8.h"
#include "traces/schema.h"

/* ---- numbers ---- */

size_t
number_write_whole(char out[NUMBER_ROOM], uint64_t value)
{
    char digits[NUMBER_ROOM];
    size_t n = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    for (size_t i = 0; i < n; i++)
        out[i] = digits[n - 1 - i];
    return n;
}

size_t
number_write_real(char out[NUMBER_ROOM], float value)
{
    double nine = fabs((double)value); /* becomes nine digits before the point */
    if (!(nine >= 1e-12 && nine < 1e9))
        return (size_t)snprintf(out, NUMBER_ROOM, "%.9g", (double)value);
    size_t decimals = 0, at = 0;
    for (; nine < 1e8; decimals++)
        nine *= 10;
    uint64_t number = (uint64_t)(nine + 0.5);
    for (; decimals > 0 && number % 10 == 0; decimals--)
        number /= 10;
    char digits[NUMBER_ROOM];
    const size_t n = number_write_whole(digits, number), whole = n > decimals ? n - decimals : 0;
    if (value < 0)
        out[at++] = '-';
    if (whole == 0)
        out[at++] = '0';
    memcpy(out + at, digits, whole);
    at += whole;
    if (decimals > 0) {
        out[at++] = '.';
        for (size_t i = n; i < decimals; i++)
            out[at++] = '0';
        memcpy(out + at, digits + whole, n - whole);
        at += n - whole;
    }
    return at;
}

/* ---- fields ---- */

/* Members are read and written through memcpy: one table of offsets serves all of them. */
#define LOAD(type, value) memcpy(&(value), (const char *)e + c->offset, sizeof(type))
#define SAVE(type, value) memcpy((char *)e + c->offset, &(type){value}, sizeof(type))

/* The columns that contain one of a list of names. */
static const struct {
    const char *const *names;
    unsigned n;
    const char *why; /* of the refusal of another text */
} named_columns[] = {
    [COLUMN_SOURCE] = {token_source_names, TOKEN_SOURCES, "is no source of tokens"},
    [COLUMN_PROBED] = {probed_by_names, PROBED_BY, "is not a reason of a probe"},
    [COLUMN_MODEL] = {layer_model_names, LAYER_MODELS, "is no model of a run"},
};

/* ---- writing ---- */

static const char *
text_of(const struct column *c, const struct event *e, size_t *n)
{
    const char *text;
    if (c->kind == COLUMN_CONTROL) {
        text = control_event_name(&e->control);
        *n = strlen(text);
        return text;
    }
    if (c->kind == COLUMN_NAME) {
        text = (const char *)e + c->offset;
        *n = strnlen(text, c->size);
        return text;
    }
    LOAD(const char *, text);
    if (text == NULL)
        text = "";
    *n = c->kind == COLUMN_BYTES ? e->vocab.n_bytes : strlen(text);
    return text;
}

static bool
is_text(const struct column *c)
{
    return c->kind == COLUMN_NAME || c->kind == COLUMN_CONTROL || c->kind == COLUMN_TEXT || c->kind == COLUMN_BYTES;
}

size_t
column_room(const struct column *c, const struct event *e)
{
    if (!is_text(c))
        return c->kind == COLUMN_EXPERTS ? EXPERTS_REPORTED * 24 : 192; /* PREDICTION_TOP pairs of an id and a real */
    size_t n;
    text_of(c, e, &n);
    return 2 * (ESCAPE_LONGEST * n + 1) + 2; /* every byte escaped, then every byte a doubled quote */
}

/* Appends " id:real", without the space at the beginning. */
static size_t
write_pair(char *out, size_t at, uint64_t id, float real)
{
    if (at > 0)
        out[at++] = ' ';
    at += number_write_whole(out + at, id);
    out[at++] = ':';
    return at + number_write_real(out + at, real);
}

static size_t
write_signed(char *out, int32_t value)
{
    const int64_t wide = value;
    const size_t at = value < 0;
    out[0] = '-';
    return at + number_write_whole(out + at, (uint64_t)(value < 0 ? -wide : wide));
}

size_t
column_write(const struct column *c, const struct event *e, char *out, char *scratch)
{
    size_t room = column_room(c, e), n;
    const char *text;
    uint64_t u64;
    uint32_t u32;
    int32_t i32;
    int8_t flag;
    float real;
    unsigned named;
    switch (c->kind) {
    case COLUMN_U64: LOAD(uint64_t, u64); return number_write_whole(out, u64);
    case COLUMN_U32: LOAD(uint32_t, u32); return number_write_whole(out, u32);
    case COLUMN_I32: LOAD(int32_t, i32); return c->optional && i32 == -1 ? 0 : write_signed(out, i32);
    case COLUMN_FLAG: LOAD(int8_t, flag); return flag < 0 ? 0 : number_write_whole(out, flag != 0);
    case COLUMN_REAL: LOAD(float, real); return isnan(real) ? 0 : number_write_real(out, real);
    case COLUMN_SOURCE:
    case COLUMN_PROBED:
    case COLUMN_MODEL:
        LOAD(unsigned, named);
        return (size_t)snprintf(out, room, "%s", named_columns[c->kind].names[named]);
    case COLUMN_TOP:
        n = 0;
        for (int i = 0; i < PREDICTION_TOP && e->layer.top[i] != TOKEN_NONE; i++)
            n = write_pair(out, n, (uint64_t)e->layer.top[i], e->layer.top_p[i]);
        return n;
    case COLUMN_EXPERTS:
        n = 0;
        for (uint32_t i = 0; i < e->experts.n && i < EXPERTS_REPORTED; i++)
            n = write_pair(out, n, e->experts.expert[i], e->experts.weight[i]);
        return n;
    case COLUMN_NAME:
    case COLUMN_CONTROL:
    case COLUMN_TEXT:
    case COLUMN_BYTES: break;
    }
    text = text_of(c, e, &n);
    if (n == 0 && c->optional)
        return 0;
    n = text_escape(scratch, text, n);
    return csv_write2(out, room, scratch, n, CSV_QUOTE);
}

/* ---- reading ---- */

static bool
fail(const char **why, const char *text)
{
    *why = text;
    return false;
}

/* Parses a whole number in decimal digits. */
static bool
read_number(const char *field, int64_t *out)
{
    if (field[strspn(field, "0123456789")] != '\0' || field[0] == '\0')
        return false;
    errno = 0;
    *out = strtoll(field, NULL, 10);
    return errno == 0;
}

static bool
read_real(const char *field, char **end, float *out)
{
    /* the output of %.9g; strtof would also accept hexadecimal, "nan" and leading spaces */
    size_t n =
        strcmp(field, "inf") == 0 || strcmp(field, "-inf") == 0 ? strlen(field) : strspn(field, "0123456789+-.e");
    *out = n > 0 ? strtof(field, end) : 0;
    return n > 0 && *end > field && *end <= field + n;
}

/* Is it a layer of the event's model? */
static bool
is_layer(const struct event *e, int64_t v, const struct run_info *run, const char **why)
{
    const uint32_t layers = run_info_layers(run, e->layer.model);
    return (v >= 1 && v <= (int64_t)layers) ||
           fail(why, layers > 0 ? "is no layer of the model that run.json gives"
                                : "is of a model whose layers run.json does not give");
}

static bool
in_range(const struct column *c, const struct event *e, int64_t v, const struct run_info *run, const char **why)
{
    switch (c->limit) {
    case LIMIT_TOKEN: return v < (int64_t)run->vocab || fail(why, "is beyond the vocabulary that run.json gives");
    case LIMIT_LAYER: return is_layer(e, v, run, why);
    case LIMIT_OWN:
        return (v >= 1 && v <= (int64_t)run->layers) || fail(why, "is no layer of the model that run.json gives");
    case LIMIT_DEPTH: return v <= (int64_t)run->layers || fail(why, "is beyond the layers that run.json gives");
    case LIMIT_POSITION: return v <= (int64_t)run->ctx || fail(why, "is beyond the context that run.json gives");
    case LIMIT_NODE: return v < VERIFY_NODES || fail(why, "is beyond the candidates that a round can have");
    case LIMIT_COUNT: return v <= 65535 || fail(why, "is too large");
    case LIMIT_INDEX: return v < 1 << 20 || fail(why, "is too large");
    default: return true;
    }
}

/* Parses an id and a real, and moves *field to the text after them. */
static bool
read_pair(char **field, long long most, long long *id, float *value)
{
    char *end = *field;
    errno = 0;
    *id = **field >= '0' && **field <= '9' ? strtoll(*field, &end, 10) : -1;
    if (*id < 0 || *id > most || errno != 0 || *end != ':' || !read_real(end + 1, field, value) ||
        (**field != ' ' && **field != '\0'))
        return false;
    *field += **field == ' ';
    return true;
}

static bool
read_top(struct layer_event *l, char *field, const struct run_info *run, const char **why)
{
    for (int i = 0; i < PREDICTION_TOP; i++) {
        l->top[i] = TOKEN_NONE;
        l->top_p[i] = 0;
    }
    for (int i = 0; *field != '\0'; i++) {
        long long id;
        if (i == PREDICTION_TOP)
            return fail(why, "lists more tokens than a guess has");
        if (!read_pair(&field, INT32_MAX, &id, &l->top_p[i]))
            return fail(why, "is not a list of id:probability");
        if (id >= (long long)run->vocab)
            return fail(why, "names a token beyond the vocabulary that run.json gives");
        l->top[i] = (token_t)id;
    }
    return true;
}

static bool
read_experts(struct experts_event *x, char *field, const struct run_info *run, const char **why)
{
    if (run->experts == 0)
        return fail(why, "is of a model whose experts run.json does not give");
    for (x->n = 0; *field != '\0'; x->n++) {
        long long id;
        if (x->n == EXPERTS_REPORTED)
            return fail(why, "lists more than 16 experts");
        if (!read_pair(&field, INT32_MAX, &id, &x->weight[x->n]))
            return fail(why, "is not a list of expert:weight");
        if (id >= (long long)run->experts)
            return fail(why, "names an expert beyond those that run.json gives");
        x->expert[x->n] = (uint16_t)id;
    }
    return true;
}

static bool
read_text(const struct column *c, struct event *e, char *field, size_t n, const struct run_info *run, const char **why)
{
    if (!text_unescape(field, &n, field, n))
        return fail(why, "has a backslash that escapes nothing");
    if (c->kind == COLUMN_BYTES) {
        e->vocab.bytes = field;
        e->vocab.n_bytes = (uint32_t)n;
        return n <= UINT32_MAX || fail(why, "is too long");
    }
    if (memchr(field, '\0', n) != NULL)
        return fail(why, "holds a NUL byte");
    if (c->kind == COLUMN_TEXT) {
        SAVE(const char *, field);
        return true;
    }
    if (n >= (c->kind == COLUMN_CONTROL ? sizeof e->control.knob : c->size))
        return fail(why, "is too long");
    make_printable(field, n);
    if (c->kind == COLUMN_CONTROL) {
        control_event_set_name(&e->control, field);
        return true;
    }
    if (c->limit == LIMIT_POLICY && run_info_policy(run, field) == NULL)
        return fail(why, "is no policy that run.json declares");
    memset((char *)e + c->offset, 0, c->size);
    memcpy((char *)e + c->offset, field, n);
    return true;
}

/* Reads an empty field: stores the value for "not applicable". */
static bool
read_nothing(const struct column *c, struct event *e, const struct run_info *run, const char **why)
{
    switch (c->kind) {
    case COLUMN_I32: SAVE(int32_t, -1); return true;
    case COLUMN_FLAG: SAVE(int8_t, -1); return true;
    case COLUMN_REAL: SAVE(float, NAN); return true;
    case COLUMN_TOP: return read_top(&e->layer, (char[]){""}, run, why);
    case COLUMN_MODEL: SAVE(unsigned, MODEL_TARGET); return true;
    default: return true;
    }
}

static bool
read_whole(const struct column *c, struct event *e, const char *field, const struct run_info *run, const char **why)
{
    static const int64_t most[] = {
        [COLUMN_U64] = (int64_t)1 << 53, [COLUMN_U32] = UINT32_MAX, [COLUMN_I32] = INT32_MAX, [COLUMN_FLAG] = 1};
    int64_t number;
    if (!read_number(field, &number))
        return fail(why, "is not a whole number");
    if (!in_range(c, e, number, run, why))
        return false;
    if (number > most[c->kind])
        return fail(why, c->kind == COLUMN_FLAG ? "is neither 0 nor 1" : "is too large");
    switch (c->kind) {
    case COLUMN_U64: SAVE(uint64_t, (uint64_t)number); break;
    case COLUMN_U32: SAVE(uint32_t, (uint32_t)number); break;
    case COLUMN_I32: SAVE(int32_t, (int32_t)number); break;
    default: SAVE(int8_t, (int8_t)number); break;
    }
    return true;
}

bool
column_read(const struct column *c, struct event *e, char *field, size_t n, const struct run_info *run,
            const char **why)
{
    float real;
    char *end;
    if (n == 0 && !c->optional)
        return fail(why, "is empty");
    if (is_text(c))
        return read_text(c, e, field, n, run, why);
    if (strlen(field) != n)
        return fail(why, "holds a NUL byte");
    if (n == 0)
        return read_nothing(c, e, run, why);
    switch (c->kind) {
    case COLUMN_REAL:
        if (!read_real(field, &end, &real) || *end != '\0')
            return fail(why, "is not a number");
        SAVE(float, real);
        return true;
    case COLUMN_TOP: return read_top(&e->layer, field, run, why);
    case COLUMN_EXPERTS: return read_experts(&e->experts, field, run, why);
    case COLUMN_SOURCE:
    case COLUMN_PROBED:
    case COLUMN_MODEL:
        for (unsigned i = 0; i < named_columns[c->kind].n; i++)
            if (strcmp(named_columns[c->kind].names[i], field) == 0) {
                SAVE(unsigned, i);
                return true;
            }
        return fail(why, named_columns[c->kind].why);
    default: return read_whole(c, e, field, run, why);
    }
}
