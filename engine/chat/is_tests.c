/* Tests: what may follow "is". */
#include <math.h>

#include "engine/chat/compare.h"
#include "engine/chat/evaluate.h"
#include "engine/chat/functions.h"
#include "engine/chat/parser.h"
#include "engine/chat/text_case.h"
#include "engine/chat/walk.h"
#include "engine/chat/write.h"

/* ---- of what kind ---- */

static bool
give(bool truth, struct value *out)
{
    *out = value_bool(truth);
    return true;
}

static bool
defined(struct call *c, struct value *out)
{
    return give(c->self.kind != VALUE_UNDEFINED, out);
}

static bool
is_undefined(struct call *c, struct value *out)
{
    return give(c->self.kind == VALUE_UNDEFINED, out);
}

static bool
none(struct call *c, struct value *out)
{
    return give(c->self.kind == VALUE_NONE, out);
}

static bool
boolean(struct call *c, struct value *out)
{
    return give(c->self.kind == VALUE_BOOL, out);
}

static bool
true_(struct call *c, struct value *out)
{
    return give(c->self.kind == VALUE_BOOL && c->self.truth, out);
}

static bool
false_(struct call *c, struct value *out)
{
    return give(c->self.kind == VALUE_BOOL && !c->self.truth, out);
}

static bool
integer(struct call *c, struct value *out)
{
    return give(c->self.kind == VALUE_INT, out);
}

static bool
float_(struct call *c, struct value *out)
{
    return give(c->self.kind == VALUE_FLOAT, out);
}

static bool
number(struct call *c, struct value *out)
{
    double real;
    return give(value_is_number(c->self, &real), out);
}

static bool
string(struct call *c, struct value *out)
{
    return give(c->self.kind == VALUE_TEXT, out);
}

static bool
mapping(struct call *c, struct value *out)
{
    return give(c->self.kind == VALUE_DICT, out);
}

/* What has a length and items by number; jinja2 counts a dict and an undefined value, too. */
static bool
sequence(struct call *c, struct value *out)
{
    const bool list = c->self.kind == VALUE_LIST && c->self.list->kind <= LIST_RANGE;
    return give(list || c->self.kind == VALUE_TEXT || c->self.kind == VALUE_DICT || c->self.kind == VALUE_UNDEFINED,
                out);
}

static bool
iterable(struct call *c, struct value *out)
{
    return give(value_iterable(c->self), out);
}

static bool
callable(struct call *c, struct value *out)
{
    return give(c->self.kind >= VALUE_MACRO || c->self.kind == VALUE_UNDEFINED, out);
}

static bool
escaped(struct call *c, struct value *out)
{
    return give(c->self.kind == VALUE_TEXT && c->self.markup, out);
}

static bool
cased(struct call *c, bool (*is)(struct slice), struct value *out)
{
    struct value text;
    return value_to_text(c->r, c->self, &text) && give(is(text.text), out);
}

static bool
lower(struct call *c, struct value *out)
{
    return cased(c, text_is_lower, out);
}

static bool
upper(struct call *c, struct value *out)
{
    return cased(c, text_is_upper, out);
}

static bool
filter(struct call *c, struct value *out)
{
    return give(c->self.kind == VALUE_TEXT && filter_known(c->self.text), out);
}

static bool
test(struct call *c, struct value *out)
{
    return give(c->self.kind == VALUE_TEXT && test_known(c->self.text), out);
}

const struct builtin kind_tests[] = {{"defined", defined, 0, {0}, false},   {"undefined", is_undefined, 0, {0}, false},
                                     {"none", none, 0, {0}, false},         {"boolean", boolean, 0, {0}, false},
                                     {"true", true_, 0, {0}, false},        {"false", false_, 0, {0}, false},
                                     {"integer", integer, 0, {0}, false},   {"float", float_, 0, {0}, false},
                                     {"number", number, 0, {0}, false},     {"string", string, 0, {0}, false},
                                     {"mapping", mapping, 0, {0}, false},   {"sequence", sequence, 0, {0}, false},
                                     {"iterable", iterable, 0, {0}, false}, {"callable", callable, 0, {0}, false},
                                     {"escaped", escaped, 0, {0}, false},   {"lower", lower, 0, {0}, false},
                                     {"upper", upper, 0, {0}, false},       {"filter", filter, 0, {0}, false},
                                     {"test", test, 0, {0}, false},         {0}};

/* ---- how it compares ---- */

static bool
divisible(struct call *c, struct value by, int64_t rest, struct value *out)
{
    struct value left;
    return operate(c->r, SIGN('%'), c->self, by, &left) && give(values_equal(c->r, left, value_int(rest)), out);
}

static bool
odd(struct call *c, struct value *out)
{
    return divisible(c, value_int(2), 1, out);
}

static bool
even(struct call *c, struct value *out)
{
    return divisible(c, value_int(2), 0, out);
}

static bool
divisibleby(struct call *c, struct value *out)
{
    return divisible(c, c->a[0], 0, out);
}

static bool
equal(struct call *c, struct value *out)
{
    return give(values_equal(c->r, c->self, c->a[0]), out);
}

static bool
unequal(struct call *c, struct value *out)
{
    return give(!values_equal(c->r, c->self, c->a[0]), out);
}

static bool
ordered(struct call *c, const char *sign, struct value *out)
{
    int order;
    if (!values_order(c->r, c->self, c->a[0], sign, &order))
        return false;
    return give((sign[0] == '<' && order == -1) || (sign[0] == '>' && order == 1) || (sign[1] == '=' && order == 0),
                out);
}

static bool
less(struct call *c, struct value *out)
{
    return ordered(c, "<", out);
}

static bool
at_most(struct call *c, struct value *out)
{
    return ordered(c, "<=", out);
}

static bool
greater(struct call *c, struct value *out)
{
    return ordered(c, ">", out);
}

static bool
at_least(struct call *c, struct value *out)
{
    return ordered(c, ">=", out);
}

static bool
in(struct call *c, struct value *out)
{
    *out = value_bool(false);
    return value_contains(c->r, c->a[0], c->self, &out->truth);
}

/* Of small things and constants; of others nobody can tell whether Python has them once or twice. */
static bool
sameas(struct call *c, struct value *out)
{
    const struct value a = c->self, b = c->a[0];
    if (a.kind == b.kind && (a.kind == VALUE_TEXT || a.kind == VALUE_INT || a.kind == VALUE_FLOAT))
        return render_fail(c->r, "the test 'sameas' is not supported for a %s", value_type(a));
    if (a.kind != b.kind)
        return give(false, out);
    if (a.kind == VALUE_LIST || a.kind == VALUE_DICT)
        return give(a.kind == VALUE_LIST ? a.list == b.list : a.dict == b.dict, out);
    return give(a.kind != VALUE_UNDEFINED && values_equal(c->r, a, b), out);
}

#define WITH_ANOTHER(name, function)                                                                                   \
    {                                                                                                                  \
        name, function, 1, {"other"}, false                                                                            \
    }
const struct builtin value_tests[] = {{"odd", odd, 0, {0}, false},
                                      {"even", even, 0, {0}, false},
                                      {"divisibleby", divisibleby, 1, {"num"}, false},
                                      {"in", in, 1, {"seq"}, false},
                                      WITH_ANOTHER("sameas", sameas),
                                      WITH_ANOTHER("eq", equal),
                                      WITH_ANOTHER("equalto", equal),
                                      WITH_ANOTHER("==", equal),
                                      WITH_ANOTHER("ne", unequal),
                                      WITH_ANOTHER("!=", unequal),
                                      WITH_ANOTHER("lt", less),
                                      WITH_ANOTHER("lessthan", less),
                                      WITH_ANOTHER("<", less),
                                      WITH_ANOTHER("le", at_most),
                                      WITH_ANOTHER("<=", at_most),
                                      WITH_ANOTHER("gt", greater),
                                      WITH_ANOTHER("greaterthan", greater),
                                      WITH_ANOTHER(">", greater),
                                      WITH_ANOTHER("ge", at_least),
                                      WITH_ANOTHER(">=", at_least),
                                      {0}};

static const struct builtin *
find_test(struct slice name)
{
    const struct builtin *b = builtin_find(kind_tests, name);
    return b != NULL ? b : builtin_find(value_tests, name);
}

bool
test_known(struct slice name)
{
    return find_test(name) != NULL;
}

bool
test_call(struct render *r, struct slice name, struct value self, const struct arguments *given, bool *out)
{
    const struct builtin *b = find_test(name);
    struct value v;
    if (b == NULL)
        return render_fail(r, "the test '%.*s' is not supported", (int)name.len, name.data);
    if (!builtin_call(r, b, "the test", self, given, &v))
        return false;
    *out = v.truth;
    return true;
}
