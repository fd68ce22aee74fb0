/* Tests, which follow `is`. */
#include "engine/chat/call.h"
#include "engine/chat/operators.h"

#define IS(kind) (1u << (kind))
#define NUMBERS  (IS(VALUE_BOOL) | IS(VALUE_INT) | IS(VALUE_FLOAT))
#define TEXTUAL  (IS(VALUE_TEXT) | IS(VALUE_DICT) | IS(VALUE_UNDEFINED)) /* jinja2 counts an undefined value, too */
#define CALLED   (IS(VALUE_MACRO) | IS(VALUE_METHOD) | IS(VALUE_FUNCTION) | IS(VALUE_LOOP) | IS(VALUE_UNDEFINED))

static const struct {
    const char *name;
    unsigned kinds; /* of values that pass; 0: by the sign */
    unsigned sign;  /* of a comparison */
} tests[] = {
    {"boolean", IS(VALUE_BOOL), 0},
    {"true", IS(VALUE_BOOL), 0},
    {"false", IS(VALUE_BOOL), 0},
    {"callable", CALLED, 0},
    {"defined", ~IS(VALUE_UNDEFINED), 0},
    {"undefined", IS(VALUE_UNDEFINED), 0},
    {"even", NUMBERS, 0},
    {"odd", NUMBERS, 0},
    {"number", NUMBERS, 0},
    {"float", IS(VALUE_FLOAT), 0},
    {"integer", IS(VALUE_INT), 0},
    {"iterable", TEXTUAL | IS(VALUE_LIST) | IS(VALUE_LOOP), 0},
    {"sequence", TEXTUAL | IS(VALUE_LIST), 0},
    {"mapping", IS(VALUE_DICT), 0},
    {"none", IS(VALUE_NONE), 0},
    {"string", IS(VALUE_TEXT), 0},
    {"in", 0, SIGN_IN},
    {"eq", 0, SIGN2('=', '=')},
    {"equalto", 0, SIGN2('=', '=')},
    {"==", 0, SIGN2('=', '=')},
    {"ne", 0, SIGN2('!', '=')},
    {"!=", 0, SIGN2('!', '=')},
    {"lt", 0, SIGN('<')},
    {"lessthan", 0, SIGN('<')},
    {"<", 0, SIGN('<')},
    {"le", 0, SIGN2('<', '=')},
    {"<=", 0, SIGN2('<', '=')},
    {"gt", 0, SIGN('>')},
    {"greaterthan", 0, SIGN('>')},
    {">", 0, SIGN('>')},
    {"ge", 0, SIGN2('>', '=')},
    {">=", 0, SIGN2('>', '=')},
};

/* Some tests want more than a kind: *is says whether the kind is one of theirs. */
static bool
holds(struct render *r, const char *test, struct value v, bool *is)
{
    const bool odd = test[0] == 'o', even = test[0] == 'e';
    struct value rest;
    if (odd || even) {
        if (!operate(r, SIGN('%'), v, value_int(2), &rest))
            return false;
        *is = values_equal(r, rest, value_int(odd));
    } else if (*is && v.kind == VALUE_BOOL && (test[0] == 't' || test[0] == 'f'))
        *is = v.truth == (test[0] == 't');
    else if (*is && v.kind == VALUE_LIST && test[0] == 's') /* it has items by number */
        *is = v.list->kind <= LIST_RANGE;
    return r->failed == NULL;
}

bool
test_call(struct render *r, struct slice name, struct value self, const struct arguments *given, bool *is)
{
    size_t i = 0;
    while (i < sizeof tests / sizeof *tests && !slice_is(name, tests[i].name))
        i++;
    if (i == sizeof tests / sizeof *tests)
        return render_fail(r, "the test '%.*s' is not supported", (int)name.len, name.data);
    const bool compares = tests[i].kinds == 0;
    if (given->n != compares || given->n_keywords > 0)
        return render_fail(r, "the test '%s' takes %s", tests[i].name, compares ? "one argument" : "no arguments");
    if (!render_step(r, 1))
        return false;
    if (compares)
        return values_compare(r, tests[i].sign, self, given->at[0], is);
    *is = (tests[i].kinds & IS(self.kind)) != 0;
    return holds(r, tests[i].name, self, is);
}
