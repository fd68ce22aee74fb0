/* Filters that make numbers, or take them. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "engine/chat/compare.h"
#include "engine/chat/evaluate.h"
#include "engine/chat/functions.h"
#include "engine/chat/text.h"
#include "engine/chat/walk.h"

/* ---- Python's int() and float() of a text; false: it is none ---- */

/* Without white space and underscores between digits. */
static bool
tidy(struct slice s, char text[128])
{
    s = text_strip(s, (struct slice){0}, TEXT_BOTH);
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.data[i];
        if (c == '\0' || n == 127 || isspace((unsigned char)c))
            return false;
        if (c == '_' && (i == 0 || i + 1 == s.len || !isalnum((unsigned char)s.data[i - 1]) ||
                         !isalnum((unsigned char)s.data[i + 1])))
            return false;
        if (c != '_')
            text[n++] = c;
    }
    text[n] = '\0';
    return n > 0;
}

static bool
read_whole(struct render *r, struct slice s, int64_t base, int64_t *whole, bool *is)
{
    char text[128], *end = NULL;
    *is = false;
    if (!tidy(s, text))
        return true;
    const size_t sign = text[0] == '-' || text[0] == '+';
    if (base == 10 && !isdigit((unsigned char)text[sign]))
        return true;
    if ((base == 0 || base == 8 || base == 2) && text[sign] == '0' && text[sign + 1] != '\0')
        return render_fail(r, "the filter 'int' with this base is not supported for '%s'", text);
    errno = 0;
    const long long number = strtoll(text, &end, (int)base);
    if (*end != '\0' || !isalnum((unsigned char)text[sign]))
        return true;
    *whole = number;
    *is = true;
    return errno == 0 || render_fail(r, "a number is too large");
}

static bool
read_real(struct slice s, double *real)
{
    char text[128], *end = NULL;
    if (!tidy(s, text))
        return false;
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    const bool word =
        strcasecmp(digits, "inf") == 0 || strcasecmp(digits, "infinity") == 0 || strcasecmp(digits, "nan") == 0;
    if (!word && (!(isdigit((unsigned char)*digits) || *digits == '.') || strpbrk(digits, "xXpP") != NULL))
        return false;
    *real = strtod(text, &end);
    return *end == '\0' && end > text;
}

static bool
truncate_real(struct render *r, double real, struct value *out)
{
    if (!(fabs(real) < 9.2e18))
        return render_fail(r, "a number is too large");
    *out = value_int((int64_t)real);
    return true;
}

static bool
to_int(struct call *c, struct value *out)
{
    int64_t whole, base = 10;
    double real;
    bool is = false;
    const struct value v = c->self, otherwise = c->a[0].kind != VALUE_MISSING ? c->a[0] : value_int(0);
    if (!call_whole(c, 1, &base))
        return false;
    if (base < 0 || base == 1 || base > 36)
        return render_fail(c->r, "the filter 'int' knows no base %lld", (long long)base);
    if (v.kind == VALUE_UNDEFINED)
        return call_undefined(c, v);
    *out = otherwise;
    if (value_is_whole(v, &whole)) {
        *out = value_int(whole);
        return true;
    }
    if (v.kind == VALUE_FLOAT)
        return isnan(v.real) || truncate_real(c->r, v.real, out);
    if (v.kind != VALUE_TEXT)
        return true;
    if (!read_whole(c->r, v.text, base, &whole, &is))
        return false;
    if (is) {
        *out = value_int(whole);
        return true;
    }
    return !read_real(v.text, &real) || isnan(real) || isinf(real) || truncate_real(c->r, real, out);
}

static bool
to_float(struct call *c, struct value *out)
{
    double real;
    if (c->self.kind == VALUE_UNDEFINED)
        return call_undefined(c, c->self);
    if (value_is_number(c->self, &real) || (c->self.kind == VALUE_TEXT && read_real(c->self.text, &real)))
        *out = value_float(real);
    else
        *out = c->a[0].kind != VALUE_MISSING ? c->a[0] : value_float(0);
    return true;
}

static bool
absolute(struct call *c, struct value *out)
{
    *out = c->self;
    if (c->self.kind == VALUE_FLOAT)
        out->real = fabs(c->self.real);
    else if (!value_is_whole(c->self, &out->whole))
        return c->self.kind == VALUE_UNDEFINED ? call_undefined(c, c->self)
                                               : render_fail(c->r, "a %s has no sign", value_type(c->self));
    else
        return out->whole >= 0 ? (*out = value_int(out->whole), true) : negate(c->r, c->self, out);
    return true;
}

/* Halves go to the even neighbour, as the decimal digits of the number say. */
static bool
round_common(struct call *c, double x, int64_t digits, struct value *out)
{
    char text[400];
    if (digits > 15 || digits < -15)
        return render_fail(c->r, "the filter 'round' rounds to 15 digits at most");
    if (digits >= 0) {
        snprintf(text, sizeof text, "%.*f", (int)digits, x);
        *out = value_float(strtod(text, NULL));
    } else {
        const double unit = pow(10, (double)-digits);
        *out = value_float(nearbyint(x / unit) * unit);
    }
    return true;
}

static bool
round_(struct call *c, struct value *out)
{
    int64_t digits = 0, whole;
    struct slice method = {"common", 6};
    double x;
    if (!call_whole(c, 0, &digits) || !call_text(c, 1, &method))
        return false;
    if (!value_is_number(c->self, &x))
        return c->self.kind == VALUE_UNDEFINED ? call_undefined(c, c->self)
                                               : render_fail(c->r, "a %s can't be rounded", value_type(c->self));
    if (slice_is(method, "common") && value_is_whole(c->self, &whole)) {
        *out = value_int(whole);
        return digits >= 0 || render_fail(c->r, "a whole number rounded to tens is not supported");
    }
    if (slice_is(method, "common"))
        return isfinite(x) ? round_common(c, x, digits, out) : render_fail(c->r, "this number can't be rounded");
    if (!slice_is(method, "ceil") && !slice_is(method, "floor"))
        return render_fail(c->r, "the filter 'round' knows 'common', 'ceil' and 'floor'");
    if (digits < -15 || digits > 15 || !isfinite(x))
        return render_fail(c->r, "the filter 'round' rounds to 15 digits at most");
    const double unit = pow(10, (double)digits);
    *out = value_float((method.data[0] == 'c' ? ceil(x * unit) : floor(x * unit)) / unit);
    return true;
}

static bool
sum(struct call *c, struct value *out)
{
    struct walk s;
    struct value item;
    *out = c->a[1].kind != VALUE_MISSING ? c->a[1] : value_int(0);
    if (!walk_begin(c->r, c->self, &s))
        return false;
    while (walk_next(c->r, &s, &item))
        if (!attribute_path(c->r, item, c->a[0], NULL, &item) || !operate(c->r, SIGN('+'), *out, item, out))
            return false;
    return c->r->failed == NULL && (out->kind != VALUE_TEXT || render_fail(c->r, "texts have no sum"));
}

static bool
length(struct call *c, struct value *out)
{
    size_t n;
    if (!value_length(c->self, &n))
        return render_fail(c->r, "a %s has no length", value_type(c->self));
    *out = value_int((int64_t)n);
    return true;
}

const struct builtin number_filters[] = {{"int", to_int, 0, {"default", "base"}, false},
                                         {"float", to_float, 0, {"default"}, false},
                                         {"abs", absolute, 0, {0}, false},
                                         {"round", round_, 0, {"precision", "method"}, false},
                                         {"sum", sum, 0, {"attribute", "start"}, false},
                                         {"length", length, 0, {0}, false},
                                         {"count", length, 0, {0}, false},
                                         {0}};
