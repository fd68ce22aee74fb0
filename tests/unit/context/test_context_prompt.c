/* Rows of a prompt are of a class of their own where a context has prompt_rows: which rows are, that their bits are the same
 * whenever they are read, and that nothing else makes them. The symbolic backend's hashes tell the classes apart, and it
 * refuses a prompt that is cut elsewhere. */
#include "tests/rigs/context_fixture.h"
#include "tests/rigs/test.h"

#define CHUNK  8
#define PROMPT 21 /* two chunks and a piece */

static void
fill(token_t *tokens, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tokens[i] = (token_t)((3 + 7 * i) % VOCAB);
}

static void
open_small(struct fixture *f)
{
    open_with(f, (struct context_options){.ctx = 64, .ring = 16, .max_rows = 4, .prompt_rows = CHUNK});
}

/* The row at a position of a sequence saw these tokens, of which the first n_prompt are of the prompt's class. */
static void
assert_classes(struct fixture *f, slot_t s, const token_t *tokens, size_t n, size_t n_prompt)
{
    struct naive_token path[64];
    double expected[(L + 1) * SYMBOLIC_WIDTH];
    float got[SYMBOLIC_WIDTH];
    for (size_t i = 0; i < n; i++)
        path[i] = (struct naive_token){.token = tokens[i], .prompt = i < n_prompt};
    symbolic_hidden(path, n, L, expected);
    assert_true(context_read_hidden(f->c, s, L, got));
    for (int i = 0; i < SYMBOLIC_WIDTH; i++)
        assert_int_equal((int64_t)got[i], (int64_t)expected[L * SYMBOLIC_WIDTH + i]);
    assert_int_equal(context_is_prompt(f->c, s), n <= n_prompt);
}

static slot_t
generate(struct fixture *f, seq_t seq, token_t token)
{
    const slot_t s = context_append(f->c, seq, SLOT_NONE, token);
    assert_int_not_equal(s, SLOT_NONE);
    assert_true(context_advance(f->c, &s, 1, L, NULL));
    assert_true(context_keep(f->c, seq, &s, 1));
    return s;
}

TEST(prompt_rows_have_a_class_of_their_own_and_later_rows_do_not)
{
    struct fixture f;
    token_t tokens[PROMPT + 3];
    fill(tokens, PROMPT + 3);
    open_small(&f);
    assert_true(context_prompt(f.c, f.s, tokens, PROMPT, NULL, NULL));
    for (uint32_t at = PROMPT - CHUNK; at < PROMPT; at++)
        assert_classes(&f, context_at(f.c, f.s, at), tokens, at + 1, PROMPT);
    for (uint32_t at = PROMPT; at < PROMPT + 3; at++)
        assert_classes(&f, generate(&f, f.s, tokens[at]), tokens, at + 1, PROMPT);
    context_truncate(f.c, f.s, PROMPT); /* and rows that are restored behind it */
    assert_true(context_prefill(f.c, f.s, tokens + PROMPT, 3, NULL, NULL));
    assert_classes(&f, context_at(f.c, f.s, PROMPT + 2), tokens, PROMPT + 3, PROMPT);
    close_fixture(&f);
}

TEST(a_prompt_shorter_than_a_chunk_is_rows_like_others)
{
    struct fixture f;
    token_t tokens[CHUNK];
    fill(tokens, CHUNK);
    open_small(&f);
    assert_true(context_prompt(f.c, f.s, tokens, CHUNK - 1, NULL, NULL));
    assert_classes(&f, context_at(f.c, f.s, CHUNK - 2), tokens, CHUNK - 1, 0);
    assert_true(context_prompt(f.c, f.s, tokens, CHUNK, NULL, NULL)); /* in its place */
    assert_int_equal(context_length(f.c, f.s), CHUNK);
    assert_classes(&f, context_at(f.c, f.s, CHUNK - 1), tokens, CHUNK, CHUNK);
    close_fixture(&f);
}

TEST(without_prompt_rows_there_is_one_class)
{
    struct fixture f;
    token_t tokens[PROMPT];
    fill(tokens, PROMPT);
    open_with(&f, (struct context_options){.ctx = 64});
    assert_true(context_prompt(f.c, f.s, tokens, PROMPT, NULL, NULL));
    assert_classes(&f, context_at(f.c, f.s, PROMPT - 1), tokens, PROMPT, 0);
    assert_null(context_prompts(f.c));
    close_fixture(&f);
}

TEST(forks_and_truncation_keep_the_class)
{
    struct fixture f;
    token_t tokens[PROMPT];
    fill(tokens, PROMPT);
    open_small(&f);
    assert_true(context_prompt(f.c, f.s, tokens, PROMPT, NULL, NULL));
    const seq_t fork = context_fork(f.c, f.s, PROMPT - 2);
    assert_int_not_equal(fork, SEQ_NONE);
    assert_true(context_is_prompt(f.c, context_at(f.c, fork, PROMPT - 3)));
    /* What a fork runs is generated, even the prompt's own tokens: nobody may take it for the prompt's. */
    assert_classes(&f, generate(&f, fork, tokens[PROMPT - 2]), tokens, PROMPT - 1, PROMPT - 2);
    context_truncate(f.c, f.s, PROMPT - 5);
    assert_classes(&f, generate(&f, f.s, tokens[PROMPT - 5]), tokens, PROMPT - 4, PROMPT - 5);
    context_drop(f.c, fork);
    assert_true(context_prompt(f.c, f.s, tokens, PROMPT, NULL, NULL)); /* read again: the same bits */
    assert_classes(&f, context_at(f.c, f.s, PROMPT - 1), tokens, PROMPT, PROMPT);
    close_fixture(&f);
}

TEST(a_cancelled_prompt_is_read_again_from_its_beginning)
{
    token_t tokens[PROMPT];
    fill(tokens, PROMPT);
    for (int before = 0; before < 3 * L; before++) {
        struct fixture f;
        open_small(&f);
        symbolic_cancel_before(f.weights, before);
        assert_false(context_prompt(f.c, f.s, tokens, PROMPT, NULL, NULL));
        assert_error(f.c, ERR_CANCELLED, "cancelled");
        assert_int_equal(context_length(f.c, f.s), before / L * CHUNK); /* whole chunks */
        assert_true(context_prompt(f.c, f.s, tokens, PROMPT, NULL, NULL));
        assert_classes(&f, context_at(f.c, f.s, PROMPT - 1), tokens, PROMPT, PROMPT);
        close_fixture(&f);
    }
}

TEST(a_chunk_leaves_the_latest_rows_their_hidden_states)
{
    struct fixture f;
    token_t tokens[PROMPT];
    fill(tokens, PROMPT);
    open_small(&f);
    const seq_t other = context_sequence(f.c);
    for (token_t t = 0; t < 16; t++)
        generate(&f, other, t);
    assert_int_equal(context_limits(f.c)->ring, 16 + CHUNK);
    assert_true(context_prompt(f.c, f.s, tokens, CHUNK, NULL, NULL));
    for (uint32_t at = 0; at < 16; at++)
        assert_true(context_hidden_kept(f.c, context_at(f.c, other, at)));
    close_fixture(&f);
}
