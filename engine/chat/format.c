#include "engine/chat/format.h"

#include <math.h>

#include "engine/chat/evaluate.h"
#include "engine/chat/text.h"
#include "engine/chat/write.h"

/* How one value is written: %-08.3f, or {:<8.3f}. */
struct layout {
    char fill[4];
    size_t n_fill;
    char align; /* '<', '>', '^', '=', or 0 */
    char sign;  /* '+', ' ', or 0 */
    bool alternate, comma;
    size_t width, precision; /* SIZE_MAX: none */
    char type;               /* 0: none */
};

static bool
add_padded(struct render *r, struct buffer *b, struct slice text, const struct layout *l, char usual, size_t prefix)
{
    const size_t n = text_length(text), missing = l->width == SIZE_MAX || l->width <= n ? 0 : l->width - n;
    const char align = l->align != 0 ? l->align : usual;
    const struct slice fill = {l->fill, l->n_fill}, head = {text.data, align == '=' ? prefix : 0};
    const size_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
    return buffer_add(r, b, head) && buffer_fill(r, b, fill, left) &&
           buffer_add(r, b, (struct slice){text.data + head.len, text.len - head.len}) &&
           buffer_fill(r, b, fill, missing - left);
}

static bool
add_text(struct render *r, struct buffer *b, struct slice text, const struct layout *l)
{
    if (l->precision != SIZE_MAX)
        text = text_part(text, 0, l->precision);
    return add_padded(r, b, text, l, l->type == '%' ? '>' : '<', 0);
}

/* The digits of a whole number, three by three where commas are wanted. */
static void
write_whole(char text[80], int64_t whole, const struct layout *l, char type)
{
    char digits[70];
    size_t n = 0, out = 0;
    uint64_t rest = whole < 0 ? 0 - (uint64_t)whole : (uint64_t)whole;
    const unsigned base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
    do
        digits[n++] = (type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[rest % base];
    while ((rest /= base) > 0);
    if (whole < 0 || l->sign != 0)
        text[out++] = whole < 0 ? '-' : l->sign;
    if (l->alternate && base != 10) {
        text[out++] = '0';
        text[out++] = type;
    }
    for (; n > 0 && out < 78; n--) {
        text[out++] = digits[n - 1];
        if (l->comma && n > 1 && (n - 1) % 3 == 0)
            text[out++] = ',';
    }
    text[out] = '\0';
}

static bool
write_real(struct render *r, struct slice *text, double x, const struct layout *l)
{
    const char type = l->type == '%' ? 'f' : l->type;
    const int precision = l->precision == SIZE_MAX ? 6 : (int)l->precision;
    const char *sign = l->sign == '+' ? "+" : l->sign == ' ' ? " " : "";
    char format[16];
    if (precision > 100 || l->comma || l->alternate)
        return render_fail(r, "this format of a number is not supported");
    snprintf(format, sizeof format, "%%%s.*%c", sign, type);
    char *at = render_memory(r, 512);
    if (at == NULL)
        return false;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    const int n = snprintf(at, 512, format, precision, x);
#pragma GCC diagnostic pop
    *text = (struct slice){at, n > 0 && n < 512 ? (size_t)n : 0};
    return true;
}

static bool
add_number(struct render *r, struct buffer *b, struct value v, const struct layout *l)
{
    char text[80];
    struct slice shown;
    int64_t whole;
    double real;
    if (strchr("eEfFgG", l->type) != NULL) {
        if (!value_is_number(v, &real))
            return render_fail(r, "a %s can't be written as a number", value_type(v));
        if (!write_real(r, &shown, real, l))
            return false;
    } else {
        if (v.kind == VALUE_FLOAT && isfinite(v.real) && fabs(v.real) < 9e18 && (l->type == 'i' || l->type == 'd'))
            v = value_int((int64_t)v.real);
        if (!value_is_whole(v, &whole))
            return render_fail(r, "a %s can't be written as a whole number", value_type(v));
        if (l->precision != SIZE_MAX)
            return render_fail(r, "this format of a number is not supported");
        write_whole(text, whole, l, l->type);
        shown = slice_of(text);
    }
    const size_t prefix = shown.len > 0 && strchr("+- ", shown.data[0]) != NULL;
    return add_padded(r, b, shown, l, '>', prefix);
}

static bool
read_digits(struct slice s, size_t *at, size_t *number)
{
    const size_t begin = *at;
    size_t n = 0;
    for (; *at < s.len && s.data[*at] >= '0' && s.data[*at] <= '9' && n < 100000; ++*at)
        n = n * 10 + (size_t)(s.data[*at] - '0');
    if (*at > begin)
        *number = n;
    return *at > begin;
}

/* ---- % ---- */

struct percent {
    struct render *r;
    struct buffer out;
    struct value values;
    size_t taken; /* of a tuple */
    bool named, markup;
};

static bool
next_value(struct percent *p, struct value *v)
{
    if (p->values.kind != VALUE_LIST || p->values.list->kind != LIST_TUPLE) {
        *v = p->values;
        return p->taken++ == 0 || render_fail(p->r, "there are fewer values than the format has places");
    }
    if (p->taken >= p->values.list->n)
        return render_fail(p->r, "there are fewer values than the format has places");
    *v = p->values.list->at[p->taken++];
    return true;
}

/* %(name)s */
static bool
named_value(struct percent *p, struct slice f, size_t *at, struct value *v)
{
    const size_t end = text_find(f, slice_of(")"), *at);
    if (end == SIZE_MAX || p->values.kind != VALUE_DICT)
        return render_fail(p->r, "a format with %%(names) needs a dict");
    const struct value *there = dict_find_name(p->r, p->values.dict, (struct slice){f.data + *at + 1, end - *at - 1});
    if (there == NULL)
        return render_fail(p->r, "the format names what the dict doesn't have");
    *v = *there;
    p->named = true;
    *at = end + 1;
    return true;
}

static bool
add_percent(struct percent *p, struct slice f, size_t *at)
{
    struct layout l = {.fill = " ", .n_fill = 1, .width = SIZE_MAX, .precision = SIZE_MAX};
    struct value v = {0};
    bool zero = false;
    if (*at < f.len && f.data[*at] == '(' && !named_value(p, f, at, &v))
        return false;
    for (; *at < f.len && f.data[*at] != '\0' && strchr("-+ 0#", f.data[*at]) != NULL; ++*at) {
        const char c = f.data[*at];
        l.align = c == '-' ? '<' : l.align;
        l.sign = c == '+' || (c == ' ' && l.sign == 0) ? c : l.sign;
        zero = zero || c == '0';
        l.alternate = l.alternate || c == '#';
    }
    read_digits(f, at, &l.width);
    if (*at < f.len && f.data[*at] == '.') {
        ++*at;
        if (!read_digits(f, at, &l.precision))
            l.precision = 0;
    }
    if (!render_step(p->r, 1))
        return false;
    const char type = *at < f.len ? f.data[(*at)++] : '\0';
    if (type == '%')
        return buffer_add_words(p->r, &p->out, "%");
    if (type == '\0' || strchr("srdixXofFeEgG", type) == NULL)
        return render_fail(p->r, "this format is not supported: only %%s, %%r, %%d, %%x, %%o, %%e, %%f, %%g are");
    if (v.kind == VALUE_MISSING && !next_value(p, &v))
        return false;
    if (type != 's' && type != 'r') {
        l.type = type == 'i' ? 'd' : type;
        if (zero && l.align == 0) {
            l.fill[0] = '0';
            l.align = '=';
        }
        return add_number(p->r, &p->out, v, &l);
    }
    struct buffer b = {0};
    if (type == 'r' ? !value_write_repr(p->r, &b, v) : !value_write(p->r, &b, v))
        return false;
    struct value text = value_text_like(v, buffer_text(&b));
    text.markup = text.markup && type == 's';
    if (p->markup && !value_escape(p->r, text, &text))
        return false;
    l.type = '%';
    return add_text(p->r, &p->out, text.text, &l);
}

bool
format_percent(struct render *r, struct value format, struct value values, struct value *out)
{
    const struct slice f = format.text;
    struct percent p = {.r = r, .values = values, .markup = format.markup};
    if (!render_read(r, f))
        return false;
    for (size_t at = 0; at < f.len;) {
        size_t next = text_find(f, slice_of("%"), at);
        next = next == SIZE_MAX ? f.len : next;
        if (!buffer_add(r, &p.out, (struct slice){f.data + at, next - at}))
            return false;
        at = next + 1;
        if (next < f.len && !add_percent(&p, f, &at))
            return false;
    }
    const bool tuple = value_is_list(values, LIST_TUPLE);
    if ((tuple && p.taken < values.list->n) ||
        (!tuple && p.taken == 0 && values.kind != VALUE_DICT && values.kind != VALUE_UNDEFINED &&
         (values.kind != VALUE_LIST || values.list->kind > LIST_RANGE)))
        return render_fail(r, "there are more values than the format has places");
    *out = value_text_like(format, buffer_text(&p.out));
    return true;
}

/* ---- {} ---- */

struct braces {
    struct render *r;
    struct buffer out;
    const struct arguments *given;
    size_t taken;
    bool numbered; /* by the format itself; else one after another */
    bool markup;
};

/* 0, name, or nothing, and .attributes and [items] behind it. */
static bool
find_value(struct braces *b, struct slice field, struct value *v)
{
    size_t at = 0, number = 0;
    while (at < field.len && field.data[at] != '.' && field.data[at] != '[')
        at++;
    const struct slice name = {field.data, at};
    size_t digits = 0;
    const bool is_number = read_digits(name, &digits, &number) && digits == name.len;
    if (name.len == 0 || is_number) {
        if (b->taken > 0 && b->numbered != is_number)
            return render_fail(b->r, "a format has {} and {0}");
        b->numbered = is_number;
        number = is_number ? number : b->taken;
        b->taken++;
        if (number >= b->given->n)
            return render_fail(b->r, "there are fewer values than the format has places");
        *v = b->given->at[number];
    } else {
        size_t k = 0;
        while (k < b->given->n_keywords && slice_compare(b->given->keywords[k].name, name) != 0)
            k++;
        if (k == b->given->n_keywords)
            return render_fail(b->r, "the format names '%.*s', which is not given", (int)name.len, name.data);
        *v = b->given->keywords[k].value;
    }
    return at == field.len || render_fail(b->r, "a format with attributes or items is not supported");
}

static bool
read_layout(struct braces *b, struct slice s, struct layout *l)
{
    *l = (struct layout){.fill = " ", .n_fill = 1, .width = SIZE_MAX, .precision = SIZE_MAX};
    size_t at = 0;
    const size_t first = s.len > 0 ? text_character(s, NULL) : 0;
    if (first > 0 && first < s.len && memchr("<>^=", s.data[first], 4) != NULL) {
        memcpy(l->fill, s.data, first);
        l->n_fill = first;
        at = first;
    }
    if (at < s.len && memchr("<>^=", s.data[at], 4) != NULL)
        l->align = s.data[at++];
    if (at < s.len && memchr("+- ", s.data[at], 3) != NULL) {
        l->sign = s.data[at] == '-' ? '\0' : s.data[at];
        at++;
    }
    if (at < s.len && s.data[at] == '#') {
        l->alternate = true;
        at++;
    }
    if (at < s.len && s.data[at] == '0') {
        if (l->align == 0) {
            l->fill[0] = '0';
            l->n_fill = 1;
            l->align = '=';
        }
        at++;
    }
    read_digits(s, &at, &l->width);
    if (at < s.len && s.data[at] == ',') {
        l->comma = true;
        at++;
    }
    if (at + 1 < s.len && s.data[at] == '.') {
        at++;
        if (!read_digits(s, &at, &l->precision))
            return render_fail(b->r, "a format's precision is missing");
    }
    if (at < s.len)
        l->type = s.data[at++];
    return (at == s.len && (l->type == 0 || strchr("sdxXobeEfFgG", l->type) != NULL)) ||
           render_fail(b->r, "this format is not supported: {:%.*s}", (int)(s.len < 40 ? s.len : 40), s.data);
}

static bool
add_field(struct braces *b, struct slice inside)
{
    struct layout l;
    struct value v;
    const size_t colon = text_find(inside, slice_of(":"), 0), turn = text_find(inside, slice_of("!"), 0);
    const size_t end = colon < inside.len ? colon : inside.len;
    const size_t name_end = turn < end ? turn : end;
    const struct slice spec = {inside.data + (end < inside.len ? end + 1 : end), inside.len - end - (end < inside.len)};
    if (!find_value(b, (struct slice){inside.data, name_end}, &v) || !read_layout(b, spec, &l))
        return false;
    struct buffer text = {0};
    const char how = name_end + 1 < end ? inside.data[name_end + 1] : '\0';
    if (name_end < end && (name_end + 2 != end || (how != 's' && how != 'r')))
        return render_fail(b->r, "only !r and !s are supported in a format");
    const bool number = name_end == end && (v.kind == VALUE_INT || v.kind == VALUE_FLOAT || v.kind == VALUE_BOOL);
    if (number && (l.type != 0 || (v.kind == VALUE_INT && l.type == 0))) {
        l.type = l.type == 0 ? 'd' : l.type;
        return l.type == 's' || (v.kind == VALUE_FLOAT && strchr("dxXob", l.type) != NULL)
                   ? render_fail(b->r, "a %s can't be written so", value_type(v))
                   : add_number(b->r, &b->out, v, &l);
    }
    if (v.kind != VALUE_TEXT && name_end == end && spec.len > 0)
        return render_fail(b->r, "a %s can't be written with a format", value_type(v));
    if (l.type != 0 && l.type != 's')
        return render_fail(b->r, "a text can't be written as a number");
    if (how == 'r' ? !value_write_repr(b->r, &text, v) : !value_write(b->r, &text, v))
        return false;
    struct value shown = value_text_like(v, buffer_text(&text));
    if (b->markup && !value_escape(b->r, shown, &shown))
        return false;
    l.type = 0;
    return add_text(b->r, &b->out, shown.text, &l);
}

bool
format_braces(struct render *r, struct value format, const struct arguments *given, struct value *out)
{
    const struct slice f = format.text;
    struct braces b = {.r = r, .given = given, .markup = format.markup};
    for (size_t at = 0; at < f.len;) {
        const char c = f.data[at];
        const bool twice = at + 1 < f.len && f.data[at + 1] == c;
        if ((c != '{' && c != '}') || twice) {
            if (!buffer_add(r, &b.out, (struct slice){&f.data[at], 1}))
                return false;
            at += c == '{' || c == '}' ? 2 : 1;
            continue;
        }
        const size_t end = c == '{' ? text_find(f, slice_of("}"), at) : SIZE_MAX;
        if (end == SIZE_MAX)
            return render_fail(r, "a format has a single '%c'", c);
        const struct slice inside = {f.data + at + 1, end - at - 1};
        if (text_find(inside, slice_of("{"), 0) != SIZE_MAX)
            return render_fail(r, "a format within a format is not supported");
        if (!add_field(&b, inside))
            return false;
        at = end + 1;
    }
    *out = value_text_like(format, buffer_text(&b.out));
    return true;
}
