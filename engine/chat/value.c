#include "engine/chat/value.h"

bool
value_is_whole(struct value v, int64_t *whole)
{
    if (v.kind == VALUE_INT)
        *whole = v.whole;
    else if (v.kind == VALUE_BOOL)
        *whole = v.truth;
    else
        return false;
    return true;
}

bool
value_is_number(struct value v, double *real)
{
    int64_t whole;
    if (v.kind == VALUE_FLOAT)
        *real = v.real;
    else if (value_is_whole(v, &whole))
        *real = (double)whole;
    else
        return false;
    return true;
}

bool
value_truth(struct value v)
{
    switch (v.kind) {
    case VALUE_MISSING:
    case VALUE_UNDEFINED:
    case VALUE_NONE: return false;
    case VALUE_BOOL: return v.truth;
    case VALUE_INT: return v.whole != 0;
    case VALUE_FLOAT: return v.real < 0 || v.real > 0 || v.real != v.real;
    case VALUE_TEXT: return v.text.len > 0;
    case VALUE_LIST: return v.list->kind == LIST_GENERATOR || v.list->n > 0;
    case VALUE_DICT: return v.dict->n > 0;
    default: return true;
    }
}

const char *
value_type(struct value v)
{
    static const char *const lists[] = {
        [LIST_LIST] = "list",          [LIST_TUPLE] = "tuple",        [LIST_RANGE] = "range",
        [LIST_KEYS] = "dict_keys",     [LIST_VALUES] = "dict_values", [LIST_ITEMS] = "dict_items",
        [LIST_GENERATOR] = "generator"};
    static const char *const types[] = {[VALUE_MISSING] = "Undefined",
                                        [VALUE_UNDEFINED] = "Undefined",
                                        [VALUE_NONE] = "NoneType",
                                        [VALUE_BOOL] = "bool",
                                        [VALUE_INT] = "int",
                                        [VALUE_FLOAT] = "float",
                                        [VALUE_TEXT] = "str",
                                        [VALUE_DICT] = "dict",
                                        [VALUE_NAMESPACE] = "Namespace",
                                        [VALUE_MACRO] = "Macro",
                                        [VALUE_METHOD] = "function",
                                        [VALUE_FUNCTION] = "function",
                                        [VALUE_LOOP] = "LoopContext"};
    return v.kind == VALUE_LIST ? lists[v.list->kind] : v.kind == VALUE_TEXT && v.markup ? "Markup" : types[v.kind];
}
