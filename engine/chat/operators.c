/* Python's + - * / // %. */
#include "engine/chat/operators.h"

#include "engine/chat/call.h"
#include "engine/chat/write.h"

static bool
too_large(struct render *r)
{
    return render_fail(r, "a number gets too large");
}

static bool
unfit(struct render *r, const char *sign, struct value a, struct value b)
{
    if (a.kind == VALUE_UNDEFINED || b.kind == VALUE_UNDEFINED)
        return render_fail_undefined(r, a.kind == VALUE_UNDEFINED ? a : b);
    return render_fail(r, "a %s %s a %s makes no sense", value_type(a), sign, value_type(b));
}

/* Python's // and %, which round down. */
static int64_t
floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static bool
whole_result(struct render *r, unsigned sign, int64_t a, int64_t b, struct value *out)
{
    int64_t result = 0;
    bool over = false;
    switch (sign) {
    case SIGN('+'): over = __builtin_add_overflow(a, b, &result); break;
    case SIGN('-'): over = __builtin_sub_overflow(a, b, &result); break;
    case SIGN('*'): over = __builtin_mul_overflow(a, b, &result); break;
    default:
        if (b == 0)
            return render_fail(r, "a division by zero");
        over = b == -1 && a == INT64_MIN;
        if (sign == SIGN('/')) {
            *out = value_float((double)((long double)a / (long double)b));
            return true;
        }
        if (!over)
            result = sign == SIGN('%') ? a - floor_divide(a, b) * b : floor_divide(a, b);
    }
    *out = value_int(result);
    return !over || too_large(r);
}

static bool
real_result(struct render *r, unsigned sign, double a, double b, struct value *out)
{
    double result = 0;
    switch (sign) {
    case SIGN('+'): result = a + b; break;
    case SIGN('-'): result = a - b; break;
    case SIGN('*'): result = a * b; break;
    case SIGN('/'):
        if (b == 0) /* NOLINT */
            return render_fail(r, "a division by zero");
        result = a / b;
        break;
    default: return render_fail(r, "'//' and '%%' of a float are not supported");
    }
    *out = value_float(result);
    return true;
}

static bool
repeat(struct render *r, struct value v, int64_t times, struct value *out)
{
    struct buffer b = {0};
    if (v.kind != VALUE_TEXT)
        return render_fail(r, "repeating a %s by '*' is not supported", value_type(v));
    if (!buffer_fill(r, &b, v.text, times > 0 ? (size_t)times : 0))
        return false;
    *out = value_text_like(v, buffer_text(&b));
    return true;
}

/* Joins two texts or two lists. A text that is joined with Markup gets HTML escapes. */
static bool
join(struct render *r, struct value a, struct value b, struct value *out)
{
    if (a.kind == VALUE_TEXT) {
        struct buffer both = {0};
        const bool markup = a.markup || b.markup;
        if ((markup && (!value_escape(r, a, &a) || !value_escape(r, b, &b))) || !buffer_add(r, &both, a.text) ||
            !buffer_add(r, &both, b.text))
            return false;
        *out = value_text_like(a, buffer_text(&both));
        return true;
    }
    struct list *list = render_list(r, a.list->kind, a.list->n + b.list->n);
    if (list == NULL || !render_step(r, list->n))
        return false;
    if (a.list->n > 0)
        memcpy(list->at, a.list->at, a.list->n * sizeof *list->at);
    if (b.list->n > 0)
        memcpy(list->at + a.list->n, b.list->at, b.list->n * sizeof *list->at);
    *out = value_list(list);
    return true;
}

static bool
repeats(struct value v)
{
    return v.kind == VALUE_TEXT || (v.kind == VALUE_LIST && v.list->kind <= LIST_TUPLE);
}

bool
operate(struct render *r, unsigned sign, struct value a, struct value b, struct value *out)
{
    const char name[3] = {(char)(sign > 0xff ? sign >> 8 : sign), (char)(sign > 0xff ? sign & 0xff : 0)};
    int64_t whole, other;
    double x, y;
    if (value_is_whole(a, &whole) && value_is_whole(b, &other))
        return whole_result(r, sign, whole, other, out);
    if (value_is_number(a, &x) && value_is_number(b, &y))
        return real_result(r, sign, x, y, out);
    if (sign == SIGN('%') && a.kind == VALUE_TEXT)
        return render_fail(r, "formatting a text by '%%' is not supported");
    if (sign == SIGN('*') && repeats(a) && value_is_whole(b, &other))
        return repeat(r, a, other, out);
    if (sign == SIGN('*') && repeats(b) && value_is_whole(a, &whole))
        return repeat(r, b, whole, out);
    if (sign == SIGN('+') && repeats(a) && a.kind == b.kind && repeats(b) &&
        (a.kind == VALUE_TEXT || a.list->kind == b.list->kind))
        return join(r, a, b, out);
    return unfit(r, name, a, b);
}

bool
negate(struct render *r, struct value v, struct value *out)
{
    int64_t whole;
    if (value_is_whole(v, &whole)) {
        *out = value_int(whole == INT64_MIN ? whole : -whole);
        return whole != INT64_MIN || too_large(r);
    }
    if (v.kind == VALUE_FLOAT) {
        *out = value_float(-v.real);
        return true;
    }
    return v.kind == VALUE_UNDEFINED ? render_fail_undefined(r, v) : render_fail(r, "a %s has no sign", value_type(v));
}
