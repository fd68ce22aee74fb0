/* "function.name", as filters name what they want of each value. */
#include "engine/chat/evaluate.h"
#include "engine/chat/functions.h"
#include "engine/chat/text.h"

static bool
is_number(struct slice part, int64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < part.len; i++) {
        if (part.data[i] < '0' || part.data[i] > '9' || i > 17)
            return false;
        *number = *number * 10 + part.data[i] - '0';
    }
    return part.len > 0;
}

bool
attribute_path(struct render *r, struct value item, struct value path, const struct value *otherwise, struct value *out)
{
    *out = item;
    if (path.kind == VALUE_NONE || path.kind == VALUE_MISSING)
        return true;
    if (path.kind != VALUE_TEXT)
        return item_of(r, item, path, out);
    if (!render_read(r, path.text))
        return false;
    struct slice rest = path.text;
    for (bool more = true; more;) {
        const size_t dot = text_find(rest, slice_of("."), 0);
        more = dot != SIZE_MAX;
        const struct slice part = {rest.data, more ? dot : rest.len};
        int64_t number;
        const struct value index = is_number(part, &number) ? value_int(number) : value_text(part);
        if (!item_of(r, *out, index, out))
            return false;
        if (out->kind == VALUE_UNDEFINED && otherwise != NULL && otherwise->kind != VALUE_NONE &&
            otherwise->kind != VALUE_MISSING)
            *out = *otherwise;
        rest = (struct slice){rest.data + part.len + more, rest.len - part.len - more};
    }
    return true;
}
