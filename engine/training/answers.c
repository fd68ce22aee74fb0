#include "engine/training/answers.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "engine/model/tokenizer/tokenizer.h"

/* A sequence's answer, for the callback of its rows. */
struct reading {
    const struct answers_options *options;
    const struct answer *answer;
};

struct writer {
    struct answers *out;
    const struct answers_options *options;
    struct reader reader;
    size_t begun;                             /* prompts */
    struct answer *answer[READER_SEQUENCES];  /* of each sequence; NULL: it is free */
    struct reading reading[READER_SEQUENCES]; /* of each sequence */
    uint32_t sequence[READER_SEQUENCES];      /* of each round */
    struct verify_row row[READER_SEQUENCES];  /* (n) of each round */
    struct verify_round round[READER_SEQUENCES];
    struct verdict verdict[READER_SEQUENCES];
};

static bool
make_room(struct answers *a, const token_t *tokens, const size_t *begin, size_t n, uint32_t response, struct err *err)
{
    a->at = calloc(n + 1, sizeof *a->at);
    a->tokens = malloc((begin[n] - begin[0] + n * response + 1) * sizeof *a->tokens);
    if (a->at == NULL || a->tokens == NULL)
        return err_set(err, ERR_WORK, "out of memory for answers to %zu prompts", n);
    token_t *to = a->tokens;
    for (size_t i = 0; i < n; i++) {
        a->at[i] = (struct answer){.text = to, .prompt = (uint32_t)(begin[i + 1] - begin[i])};
        memcpy(to, tokens + begin[i], a->at[i].prompt * sizeof *to);
        to += a->at[i].prompt + response;
    }
    a->n = n;
    return true;
}

/* The longest prompt, and all its answer but the last token, which is not read. */
static uint32_t
context_needed(const struct answers *a, uint32_t response)
{
    uint32_t most = 1;
    for (size_t i = 0; i < a->n; i++)
        most = a->at[i].prompt > most ? a->at[i].prompt : most;
    return most + response;
}

static bool
read_row(void *user, struct reader *r, uint32_t at, slot_t slot)
{
    const struct reading *of = user;
    return of->options->row(of->options->user, r, of->answer, at, slot);
}

static reader_fn
each_row(const struct writer *w)
{
    return w->options->row != NULL ? read_row : NULL;
}

/* Gives the next prompts to free sequences, and reads them up to their last token, which is read with the others'. */
static bool
begin_answers(struct writer *w)
{
    struct reader_text texts[READER_SEQUENCES];
    size_t n = 0;
    for (uint32_t i = 0; i < w->options->sequences; i++) {
        const bool enough = w->options->tokens > 0 && w->out->written >= w->options->tokens;
        if (w->answer[i] != NULL || w->begun == w->out->n || enough)
            continue;
        struct answer *a = w->answer[i] = &w->out->at[w->begun++];
        a->n = a->prompt;
        w->reading[i] = (struct reading){w->options, a};
        reader_forget(&w->reader, i, 0);
        texts[n++] = (struct reader_text){.sequence = i, .tokens = a->text, .to = a->n - 1, .user = &w->reading[i]};
    }
    return reader_read(&w->reader, texts, n, each_row(w));
}

/* Adds the next token to every answer that has not ended. *left: there was one. */
static bool
write_tokens(struct writer *w, bool *left)
{
    struct reader_text texts[READER_SEQUENCES];
    struct reader *r = &w->reader;
    size_t n = 0;
    for (uint32_t i = 0; i < w->options->sequences; i++) {
        const struct answer *a = w->answer[i];
        if (a == NULL)
            continue;
        w->sequence[n] = i;
        texts[n++] = (struct reader_text){.sequence = i, .tokens = a->text, .to = a->n, .user = &w->reading[i]};
    }
    *left = n > 0;
    if (!reader_read(r, texts, n, each_row(w)))
        return false;
    for (size_t k = 0; k < n; k++) {
        const struct answer *a = w->answer[w->sequence[k]];
        const seq_t seq = r->seq[w->sequence[k]];
        w->row[k] = (struct verify_row){
            .parent = -1, .token = a->text[a->n - 1], .slot = context_at(r->context, seq, a->n - 1), .q = DIST_NONE};
        w->round[k] = (struct verify_round){
            .seq = seq,
            .rows = &w->row[k],
            .n = 1,
            .sampling = w->options->sampling,
            .seed = splitmix64_mix(w->options->seed + (uint64_t)(a - w->out->at) * SPLITMIX64_STEP),
            .out = &w->verdict[k]};
    }
    if (!context_verify_all(r->context, w->round, n))
        return false;
    for (size_t k = 0; k < n; k++) {
        struct answer *a = w->answer[w->sequence[k]];
        const token_t next = a->text[a->n++] = w->verdict[k].next;
        w->out->written++;
        if (a->n == a->prompt + w->options->response || tokenizer_is_end(r->model->tokenizer, next))
            w->answer[w->sequence[k]] = NULL;
    }
    return true;
}

static bool
write_all(struct writer *w)
{
    for (bool left = true; left;) {
        if (!begin_answers(w) || !write_tokens(w, &left))
            return false;
        if (left && w->options->progress != NULL)
            w->options->progress(w->options->user, w->out, w->begun);
    }
    return true;
}

bool
answers_write(struct answers *out, const struct engine *engine, const token_t *tokens, const size_t *begin, size_t n,
              const struct answers_options *options, const atomic_bool *cancel, struct err *err)
{
    *out = (struct answers){0};
    struct writer *w = calloc(1, sizeof *w);
    if (w == NULL)
        return err_set(err, ERR_WORK, "out of memory for answers");
    w->out = out;
    w->options = options;
    bool ok = make_room(out, tokens, begin, n, options->response, err) &&
              reader_open(&w->reader, engine, READS_TARGET, context_needed(out, options->response), options->sequences,
                          cancel, err);
    ok = ok && (write_all(w) || err_copy(err, context_error(w->reader.context)));
    reader_close(&w->reader);
    free(w);
    return ok;
}

void
answers_free(struct answers *a)
{
    free(a->at);
    free(a->tokens);
    *a = (struct answers){0};
}
