#include "engine/tokenizer/vocabulary_match.h"

#include <inttypes.h>
#include <string.h>

#include "engine/base/printable.h"

static const char *const kinds[] = {[TOKEN_NORMAL] = "a piece of text",  [TOKEN_UNKNOWN] = "the unknown token",
                                    [TOKEN_CONTROL] = "a control token", [TOKEN_USER] = "an added token",
                                    [TOKEN_UNUSED] = "unused",           [TOKEN_BYTE] = "a byte"};

bool
vocabularies_match(const struct tokenizer *target, const char *target_name, const struct tokenizer *other,
                   const char *other_name, struct err *err)
{
    const uint32_t n = tokenizer_size(target), m = tokenizer_size(other);
    for (uint32_t id = 0; id < n && id < m; id++) {
        const struct slice a = tokenizer_bytes(target, (token_t)id, true),
                           b = tokenizer_bytes(other, (token_t)id, true);
        const enum token_kind kind = tokenizer_kind(target, (token_t)id), its = tokenizer_kind(other, (token_t)id);
        char one[40], two[40];
        if (a.len != b.len || (a.len > 0 && memcmp(a.data, b.data, a.len) != 0))
            return err_set(err, ERR_USAGE,
                           "%.48s and %.48s have different vocabularies: token %" PRIu32 " is '%s' in one and '%s' in "
                           "the other; give a model of the same family",
                           target_name, other_name, id, printable_line(one, sizeof one, a.data, a.len),
                           printable_line(two, sizeof two, b.data, b.len));
        if (kind != its)
            return err_set(err, ERR_USAGE,
                           "%.48s and %.48s have different vocabularies: token %" PRIu32 " '%s' is %s in one and %s in "
                           "the other; give a model of the same family",
                           target_name, other_name, id, printable_line(one, sizeof one, a.data, a.len), kinds[kind],
                           kinds[its]);
    }
    return true;
}
