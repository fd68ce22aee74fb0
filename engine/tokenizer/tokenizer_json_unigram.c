/* The vocabulary of a Unigram model in a tokenizer.json: [["<unk>", 0.0], ["▁the", -3.2], …]. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "engine/tokenizer/tokenizer_json.h"

static bool
bad_piece(const struct tokenizer_json *j, uint32_t id)
{
    return err_set(j->err, ERR_WORK, "%s: piece %" PRIu32 " of model.vocab is no text with a score", j->where, id);
}

bool
json_read_unigram(struct tokenizer_json *j)
{
    struct tokenizer *t = j->t;
    const bool byte_fallback = cJSON_IsTrue(json_get(j->model, "byte_fallback"));
    const cJSON *item, *unknown = json_get(j->model, "unk_id");
    uint32_t id = 0;
    t->unigram = true;
    t->score = calloc(t->n, sizeof *t->score);
    t->bonus = calloc(t->n, sizeof *t->bonus);
    if (t->score == NULL || t->bonus == NULL)
        return err_set(j->err, ERR_WORK, "%s: out of memory for the tokenizer", j->where);
    memset(t->kind, TOKEN_UNUSED, t->n);
    cJSON_ArrayForEach(item, j->vocab)
    {
        const cJSON *text = cJSON_IsArray(item) ? item->child : NULL, *score = text == NULL ? NULL : text->next;
        if (!cJSON_IsString(text) || !cJSON_IsNumber(score) || !isfinite(score->valuedouble))
            return bad_piece(j, id);
        if (!tokenizer_copy(t, text->valuestring, strlen(text->valuestring), &t->text[id]))
            return err_set(j->err, ERR_WORK, "%s: out of memory for the tokenizer", j->where);
        t->score[id] = score->valuedouble;
        t->kind[id] = byte_fallback && tokenizer_byte_value(t->text[id]) >= 0 ? TOKEN_BYTE : TOKEN_NORMAL;
        j->pieces[id++] = true;
    }
    if (unknown == NULL)
        return true;
    if (!cJSON_IsNumber(unknown) || !(unknown->valuedouble >= 0 && unknown->valuedouble < id))
        return err_set(j->err, ERR_WORK, "%s: the unknown token's id (model.unk_id) is not in the vocabulary",
                       j->where);
    t->unknown = (token_t)unknown->valuedouble;
    if (t->kind[t->unknown] == TOKEN_NORMAL)
        t->kind[t->unknown] = TOKEN_UNKNOWN;
    return true;
}
