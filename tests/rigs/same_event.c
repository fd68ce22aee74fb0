

#include <math.h>

#include "tests/rigs/test.h"
#include "tests/rigs/trace_events.h"

static void
assert_same_real(float expected, float got)
{
    uint32_t a, b;
    memcpy(&a, &expected, sizeof a);
    memcpy(&b, &got, sizeof b);
    if (isnan(expected))
        assert_true(isnan(got));
    else
        assert_int_equal(a, b);
}

static void
assert_same_layer(const struct layer_event *a, const struct layer_event *b)
{
    assert_int_equal(a->pos, b->pos);
    assert_int_equal(a->model, b->model);
    assert_int_equal(a->layer, b->layer);
    assert_int_equal(a->head, b->head);
    assert_int_equal(a->token, b->token);
    assert_same_real(a->confidence, b->confidence);
    assert_same_real(a->annealed, b->annealed);
    assert_same_real(a->temperature, b->temperature);
    assert_same_real(a->entropy, b->entropy);
    assert_same_real(a->kl_final, b->kl_final);
    assert_same_real(a->acceptance, b->acceptance);
    assert_int_equal(a->rank_final, b->rank_final);
    assert_int_equal(a->final_agrees, b->final_agrees);
    assert_int_equal(a->probed_by, b->probed_by);
    assert_int_equal(a->draft_vocab, b->draft_vocab);
    for (int i = 0; i < PREDICTION_TOP; i++) {
        assert_int_equal(a->top[i], b->top[i]);
        assert_same_real(a->top_p[i], b->top_p[i]);
    }
}

static void
assert_same_token(const struct token_event *a, const struct token_event *b)
{
    assert_int_equal(a->pos, b->pos);
    assert_int_equal(a->parent, b->parent);
    assert_int_equal(a->candidate, b->candidate);
    assert_int_equal(a->token, b->token);
    assert_int_equal(a->source, b->source);
    assert_int_equal(a->exit_layer, b->exit_layer);
    assert_same_real(a->confidence, b->confidence);
    assert_same_real(a->annealed, b->annealed);
    assert_int_equal(a->head, b->head);
    assert_int_equal(a->accepted, b->accepted);
    assert_int_equal(a->committed, b->committed);
}

static void
assert_same_round(const struct round_event *a, const struct round_event *b)
{
    assert_string_equal(a->policy, b->policy);
    assert_int_equal(a->draft_us, b->draft_us);
    assert_int_equal(a->verify_us, b->verify_us);
    assert_int_equal(a->probe_us, b->probe_us);
    assert_int_equal(a->drafted, b->drafted);
    assert_int_equal(a->verified, b->verified);
    assert_int_equal(a->accepted, b->accepted);
    assert_int_equal(a->emitted, b->emitted);
    assert_int_equal(a->exit_layer, b->exit_layer);
    assert_same_real(a->threshold, b->threshold);
    assert_int_equal(a->d_max, b->d_max);
    assert_int_equal(a->w_max, b->w_max);
    assert_same_real(a->layers_loaded, b->layers_loaded);
    assert_same_real(a->heads_loaded, b->heads_loaded);
    assert_string_equal(a->stop_reason, b->stop_reason);
    assert_same_real(a->heads_us, b->heads_us);
    assert_same_real(a->wait_us, b->wait_us);
    assert_same_real(a->learning_us, b->learning_us);
    assert_same_real(a->verify_experts, b->verify_experts);
    assert_int_equal(a->reject_rank, b->reject_rank);
    assert_int_equal(a->cut, b->cut);
}

void
assert_same_event(const struct event *a, const struct event *b)
{
    if (a->type != b->type || a->number != b->number)
        print_error("event %llu of type %d was expected, got event %llu of type %d\n", (unsigned long long)a->number,
                    (int)a->type, (unsigned long long)b->number, (int)b->type);
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->number, b->number);
    if (a->type != EVENT_VERDICT)
        assert_int_equal(a->t_us, b->t_us);
    assert_int_equal(a->run, b->run);
    assert_int_equal(a->seq, b->seq);
    if (a->type != EVENT_VOCAB)
        assert_int_equal(a->round, b->round);
    switch (a->type) {
    case EVENT_VOCAB:
        assert_int_equal(a->vocab.token, b->vocab.token);
        assert_int_equal(a->vocab.n_bytes, b->vocab.n_bytes);
        assert_memory_equal(a->vocab.bytes, b->vocab.bytes, a->vocab.n_bytes + 1);
        break;
    case EVENT_TOKEN: assert_same_token(&a->token, &b->token); break;
    case EVENT_VERDICT:
        assert_int_equal(a->verdict.candidate, b->verdict.candidate);
        assert_int_equal(a->verdict.accepted, b->verdict.accepted);
        assert_int_equal(a->verdict.committed, b->verdict.committed);
        break;
    case EVENT_LAYER: assert_same_layer(&a->layer, &b->layer); break;
    case EVENT_EXPERTS:
        assert_int_equal(a->experts.pos, b->experts.pos);
        assert_int_equal(a->experts.layer, b->experts.layer);
        assert_int_equal(a->experts.n, b->experts.n);
        for (uint32_t i = 0; i < a->experts.n; i++) {
            assert_int_equal(a->experts.expert[i], b->experts.expert[i]);
            assert_same_real(a->experts.weight[i], b->experts.weight[i]);
        }
        break;
    case EVENT_SERIES:
        assert_string_equal(a->series.key, b->series.key);
        assert_int_equal(a->series.index, b->series.index);
        assert_same_real(a->series.value, b->series.value);
        break;
    case EVENT_CONTROL:
        assert_string_equal(control_event_name(&a->control), control_event_name(&b->control));
        assert_string_equal(a->control.old_text, b->control.old_text);
        assert_string_equal(a->control.new_text, b->control.new_text);
        assert_int_equal(a->control.applied_round, b->control.applied_round);
        break;
    case EVENT_ROUND: assert_same_round(&a->round_end, &b->round_end); break;
    case EVENT_PROGRESS:
        assert_string_equal(a->progress.what, b->progress.what);
        assert_same_real(a->progress.done, b->progress.done);
        break;
    default: fail();
    }
}
