/* How the events of each kind of server become rounds: tokens, drafted and accepted ones, ends, and answers that are
 * refused. */
#include <cjson/cJSON.h>

#include "engine/remote/server_kind.h"
#include "tests/rigs/test.h"

struct heard {
    char rounds[512]; /* "tokens drafted/accepted" of each round, in brackets; ? if it is not counted */
    char words[256];  /* "id=bytes " */
    struct server_facts facts;
    struct server_answer answer;
};

static void
hear_word(void *user, token_t token, const char *bytes, size_t n)
{
    struct heard *h = user;
    const size_t have = strlen(h->words);
    snprintf(h->words + have, sizeof h->words - have, "%d=%.*s ", (int)token, (int)n, bytes);
}

static bool
knows_word(void *user, token_t token)
{
    (void)user;
    (void)token;
    return true;
}

static bool
hear_round(void *user, const struct server_round *r, const struct server_token *tokens)
{
    struct heard *h = user;
    size_t n = strlen(h->rounds);
    n += (size_t)snprintf(h->rounds + n, sizeof h->rounds - n, "[");
    for (size_t i = 0; i < r->n; i++)
        n += (size_t)snprintf(h->rounds + n, sizeof h->rounds - n, "%d ", (int)tokens[i].token);
    if (r->uncounted)
        snprintf(h->rounds + n, sizeof h->rounds - n, "?]");
    else
        snprintf(h->rounds + n, sizeof h->rounds - n, "%u/%u]", (unsigned)r->drafted, (unsigned)r->accepted);
    return true;
}

static void
begin(struct heard *h)
{
    *h = (struct heard){.facts = {.vocab = 1000, .drafts = 3}};
    h->answer = (struct server_answer){
        .facts = &h->facts, .word = hear_word, .known = knows_word, .round = hear_round, .user = h, .first = true};
}

/* Feeds an event; returns whether the answer continues. */
static bool
feed(struct heard *h, const struct server_kind *kind, const char *json)
{
    cJSON *event = cJSON_Parse(json);
    assert_non_null(event);
    const bool going = kind->event(&h->answer, event);
    cJSON_Delete(event);
    return going;
}

static void
end(struct heard *h)
{
    free(h->answer.tokens);
    free(h->answer.later);
    free(h->answer.steps);
}

/* ---- llama-server ---- */

/* A token with the numbers of drafted and accepted tokens so far; 0: not told. */
static bool
token(struct heard *h, int id, int drafted, int accepted)
{
    char json[256], counts[80] = "";
    if (drafted != 0)
        snprintf(counts, sizeof counts, "\"draft_n\":%d,\"draft_n_accepted\":%d", drafted, accepted);
    snprintf(json, sizeof json, "{\"tokens\":[%d],\"content\":\"w%d\",\"stop\":false,\"timings\":{%s}}", id, id,
             counts);
    return feed(h, &llama_server_kind, json);
}

TEST(llama_server_rounds_are_tokens_with_the_same_counts)
{
    struct heard h;
    begin(&h);
    token(&h, 1, 0, 0); /* of the prompt's forward pass */
    token(&h, 2, 5, 0);
    token(&h, 3, 10, 2);
    token(&h, 4, 10, 2);
    token(&h, 5, 10, 2);
    assert_string_equal(h.rounds, "[1 0/0][2 5/0][3 4 5 5/2]");
    assert_string_equal(h.words, "1=w1 2=w2 3=w3 4=w4 5=w5 ");
    end(&h);
}

TEST(llama_server_tokens_beyond_the_accepted_ones_are_rounds_without_drafts)
{
    struct heard h;
    begin(&h);
    token(&h, 9, 0, 0);
    token(&h, 1, 5, 1);
    token(&h, 2, 5, 1);
    token(&h, 3, 5, 1);
    token(&h, 4, 5, 1);
    assert_string_equal(h.rounds, "[9 0/0][1 2 5/1][3 0/0][4 0/0]");
    end(&h);
}

TEST(a_llama_server_round_that_a_stop_cuts_keeps_the_counts_of_the_server)
{
    struct heard h;
    begin(&h);
    token(&h, 9, 0, 0);
    token(&h, 1, 5, 4);
    token(&h, 2, 5, 4);
    assert_false(feed(&h, &llama_server_kind, "{\"tokens\":[],\"stop\":true,\"stop_type\":\"eos\"}"));
    assert_string_equal(h.rounds, "[9 0/0][1 2 5/4]");
    assert_string_equal(h.answer.end, "eos");
    end(&h);
}

TEST(llama_server_probabilities_are_those_of_the_likeliest_tokens)
{
    struct heard h;
    begin(&h);
    h.answer.first = false;
    h.answer.round = NULL; /* the token is looked at before its round is complete */
    feed(&h, &llama_server_kind,
         "{\"tokens\":[7],\"content\":\"a\",\"stop\":false,\"timings\":{\"draft_n\":5,\"draft_n_accepted\":1},"
         "\"completion_probabilities\":[{\"id\":7,\"top_logprobs\":[{\"id\":7,\"bytes\":[97],\"logprob\":-0.5},"
         "{\"id\":9,\"bytes\":[255],\"logprob\":-1.5},{\"id\":5000,\"bytes\":[98],\"logprob\":-2}]}]}");
    const struct server_token *t = h.answer.tokens;
    assert_int_equal(t->n_top, 2); /* a token that the vocabulary lacks is none */
    assert_int_equal(t->top[1], 9);
    assert_near(t->top_p[0], 0.60653066, 1e-6);
    assert_string_equal(h.words, "7=a 9=\xff 7=a ");
    end(&h);
}

static cJSON *
tokens_of_a_character(void *user, const char *path, cJSON *json)
{
    (void)user;
    assert_string_equal(path, "/tokenize");
    assert_string_equal(server_text(json, "content"), "\xc3\xa9");
    cJSON_Delete(json);
    return cJSON_Parse(
        "{\"tokens\":[{\"id\":5,\"piece\":\" \"},{\"id\":6,\"piece\":[195]},{\"id\":7,\"piece\":[169]}]}");
}

TEST(llama_server_tokens_within_a_character_are_asked_for)
{
    struct heard h;
    begin(&h);
    h.answer.ask = tokens_of_a_character;
    feed(&h, &llama_server_kind, "{\"tokens\":[4],\"content\":\"a\",\"tokens_predicted\":1}");
    feed(&h, &llama_server_kind,
         "{\"tokens\":[7],\"content\":\"\xc3\xa9\",\"tokens_predicted\":3,\"timings\":{\"draft_n\":3,\"draft_n_"
         "accepted\":1}}");
    assert_string_equal(h.rounds, "[4 0/0][6 7 3/1]");
    assert_string_equal(h.words, "4=a 6=\xc3 7=\xa9 ");
    end(&h);
}

TEST(llama_server_tokens_within_a_character_that_stay_unknown_are_left_out)
{
    struct heard h;
    begin(&h);
    h.answer.ask = tokens_of_a_character;
    feed(&h, &llama_server_kind, "{\"tokens\":[4],\"content\":\"a\",\"tokens_predicted\":1}");
    feed(&h, &llama_server_kind, "{\"tokens\":[8],\"content\":\"\xc3\xa9\",\"tokens_predicted\":3}");
    assert_string_equal(h.rounds, "[4 0/0][8 0/0]");
    assert_string_equal(h.words, "4=a 8=\xc3\xa9 ");
    end(&h);
}

static void
refused(const char *json, const char *why)
{
    struct heard h;
    begin(&h);
    token(&h, 9, 0, 0);
    token(&h, 1, 10, 4);
    assert_false(feed(&h, &llama_server_kind, json));
    assert_contains(h.answer.err.text, why);
    end(&h);
}

TEST(llama_server_counts_that_fall_are_refused)
{
    refused("{\"tokens\":[2],\"timings\":{\"draft_n\":9,\"draft_n_accepted\":4}}", "counts fewer drafts than before");
}

TEST(more_accepted_than_drafted_tokens_are_refused)
{
    struct heard h;
    begin(&h);
    token(&h, 9, 0, 0);
    token(&h, 1, 1, 1);
    token(&h, 2, 1, 1);
    token(&h, 3, 2, 3);
    token(&h, 4, 2, 3);
    token(&h, 5, 2, 3);
    assert_contains(h.answer.err.text, "counts of drafts that are not possible");
    end(&h);
}

TEST(a_token_that_the_vocabulary_lacks_is_refused)
{
    refused("{\"tokens\":[1000],\"timings\":{\"draft_n\":10,\"draft_n_accepted\":4}}", "a token that its vocabulary");
}

TEST(a_negative_token_is_refused)
{
    refused("{\"tokens\":[-1],\"timings\":{\"draft_n\":10,\"draft_n_accepted\":4}}", "a token that its vocabulary");
}

TEST(a_token_that_is_no_number_is_refused)
{
    refused("{\"tokens\":[\"a\"],\"timings\":{\"draft_n\":10,\"draft_n_accepted\":4}}", "a token that its vocabulary");
}

/* ---- vLLM ---- */

static void
event_of(struct heard *h, const char *ids, const char *more)
{
    char json[256];
    snprintf(json, sizeof json, "{\"choices\":[{\"index\":0,\"text\":\"x\",\"token_ids\":[%s]%s}]}", ids, more);
    assert_true(feed(h, &vllm_kind, json));
}

static void
steps_of(struct heard *h, const char *accepted, const char *drafted)
{
    char json[256];
    snprintf(json, sizeof json,
             "{\"choices\":[],\"metrics\":{\"speculative_decoding\":{\"num_spec_steps\":3,\"per_step_accepted\":[%s],"
             "\"per_step_drafted\":[%s]}}}",
             accepted, drafted);
    feed(h, &vllm_kind, json);
}

TEST(vllm_events_are_rounds_with_the_drafts_of_the_last_event)
{
    struct heard h;
    begin(&h);
    event_of(&h, "1", "");
    event_of(&h, "2,3,4", "");
    event_of(&h, "5", "");
    event_of(&h, "6,7", ",\"finish_reason\":\"length\"");
    assert_string_equal(h.rounds, "");
    steps_of(&h, "2,0,1", "5,4,5");
    assert_true(vllm_kind.finish(&h.answer));
    assert_string_equal(h.rounds, "[1 0/0][2 3 4 5/2][5 4/0][6 7 5/1]");
    assert_string_equal(h.answer.end, "tokens");
    end(&h);
}

TEST(vllm_steps_without_drafts_are_rounds_without_drafts)
{
    struct heard h;
    begin(&h);
    event_of(&h, "1", "");
    event_of(&h, "2", "");
    event_of(&h, "3,4", "");
    event_of(&h, "5", ",\"finish_reason\":\"stop\"");
    steps_of(&h, "1", "5");
    assert_true(vllm_kind.finish(&h.answer));
    assert_string_equal(h.rounds, "[1 0/0][2 0/0][3 4 5/1][5 0/0]");
    assert_string_equal(h.answer.end, "eos");
    end(&h);
}

TEST(a_vllm_event_of_a_late_client_contains_several_rounds)
{
    struct heard h;
    begin(&h);
    event_of(&h, "1,2,3,4", "");
    event_of(&h, "5,6", ",\"finish_reason\":\"length\"");
    steps_of(&h, "2,5", "5,5");
    assert_true(vllm_kind.finish(&h.answer));
    assert_string_equal(h.rounds, "[1 0/0][2 3 4 5/2][5 6 5/5]");
    end(&h);
}

TEST(a_vllm_round_that_the_limit_cuts_keeps_the_counts_of_the_server)
{
    struct heard h;
    begin(&h);
    event_of(&h, "1", "");
    event_of(&h, "2", ",\"finish_reason\":\"length\"");
    steps_of(&h, "4", "5");
    assert_true(vllm_kind.finish(&h.answer));
    assert_string_equal(h.rounds, "[1 0/0][2 5/4]");
    end(&h);
}

TEST(vllm_rounds_without_counts_are_not_counted)
{
    struct heard h;
    begin(&h);
    event_of(&h, "1", "");
    event_of(&h, "2,3", ",\"finish_reason\":\"length\"");
    assert_true(vllm_kind.finish(&h.answer));
    assert_string_equal(h.rounds, "[1 0/0][2 3 ?]");
    end(&h);
}

TEST(vllm_events_that_are_watched_are_rounds_at_once)
{
    struct heard h;
    begin(&h);
    h.answer.watched = true;
    event_of(&h, "1", "");
    event_of(&h, "2,3,4", ",\"finish_reason\":\"length\"");
    assert_string_equal(h.rounds, "[1 ?][2 3 4 ?]");
    steps_of(&h, "2", "5");
    assert_true(vllm_kind.finish(&h.answer));
    assert_string_equal(h.rounds, "[1 ?][2 3 4 ?]");
    end(&h);
}

TEST(vllm_counts_that_its_tokens_do_not_have_are_refused)
{
    struct heard h;
    begin(&h);
    event_of(&h, "1", "");
    event_of(&h, "2", ",\"finish_reason\":\"length\"");
    steps_of(&h, "0,4,1", "5,5,5");
    assert_false(vllm_kind.finish(&h.answer));
    assert_contains(h.answer.err.text, "counts drafts that its tokens do not have");
    end(&h);
}

TEST(vllm_steps_with_more_accepted_than_drafted_tokens_are_refused)
{
    struct heard h;
    begin(&h);
    event_of(&h, "1,2", "");
    steps_of(&h, "6", "5");
    assert_contains(h.answer.err.text, "counts of drafts that are not possible");
    end(&h);
}

/* ---- SGLang ---- */

TEST(sglang_events_are_rounds_with_the_drafts_of_the_server)
{
    struct heard h;
    begin(&h);
    assert_true(feed(&h, &sglang_kind,
                     "{\"text\":\"a\",\"output_ids\":[1],\"meta_info\":{\"completion_tokens\":1,"
                     "\"finish_reason\":null,\"output_token_logprobs\":[[-0.1,1,\"a\"]],"
                     "\"output_top_logprobs\":[[[-0.1,1,\"a\"],[-2.5,8,\"b\"]]]}}"));
    assert_true(feed(&h, &sglang_kind,
                     "{\"output_ids\":[1,2,3,4],\"meta_info\":{\"completion_tokens\":4,\"finish_reason\":null}}"));
    assert_false(feed(&h, &sglang_kind,
                      "{\"output_ids\":[1,2,3,4,5],\"meta_info\":{\"completion_tokens\":5,\"spec_verify_ct\":2,"
                      "\"spec_accept_token_num\":2,\"spec_draft_token_num\":6,\"spec_accept_length\":2.5,"
                      "\"finish_reason\":{\"type\":\"length\",\"length\":5}}}"));
    assert_string_equal(h.rounds, "[1 0/0][2 3 4 3/2][5 3/0]");
    assert_string_equal(h.answer.end, "tokens");
    assert_int_equal(h.answer.err.kind, ERR_NONE);
    assert_string_equal(h.words, "1=a 1=a 8=b ");
    end(&h);
}

TEST(sglang_events_with_new_tokens_alone_are_the_same_rounds)
{
    struct heard h;
    begin(&h);
    feed(&h, &sglang_kind, "{\"output_ids\":[1],\"meta_info\":{\"completion_tokens\":1}}");
    feed(&h, &sglang_kind, "{\"output_ids\":[2,3],\"meta_info\":{\"completion_tokens\":3}}");
    assert_string_equal(h.rounds, "[1 0/0][2 3 3/1]");
    end(&h);
}

TEST(sglang_totals_that_are_not_those_of_the_rounds_are_refused)
{
    struct heard h;
    begin(&h);
    feed(&h, &sglang_kind, "{\"output_ids\":[1],\"meta_info\":{\"completion_tokens\":1}}");
    assert_false(feed(&h, &sglang_kind,
                      "{\"output_ids\":[1,2],\"meta_info\":{\"completion_tokens\":2,\"spec_draft_token_num\":9,"
                      "\"finish_reason\":{\"type\":\"stop\"}}}"));
    assert_contains(h.answer.err.text, "has other totals of drafts than its rounds");
    end(&h);
}

/* ---- all ---- */

TEST(pieces_of_a_byte_level_vocabulary_become_bytes)
{
    struct heard h;
    begin(&h);
    answer_piece(&h.answer, 1,
                 "\xc4\xa0"
                 "caf\xc3\x83\xc2\xa9\xc4\x8a",
                 strlen("\xc4\xa0"
                        "caf\xc3\x83\xc2\xa9\xc4\x8a"));
    assert_string_equal(h.words, "1= caf\xc3\xa9\n ");
    end(&h);
}

TEST(other_pieces_have_a_mark_for_a_space_and_names_for_bytes)
{
    struct heard h;
    begin(&h);
    h.facts.marks_spaces = true;
    answer_piece(&h.answer, 1,
                 "\xe2\x96\x81"
                 "d\xc3\xa9j\xc3\xa0",
                 strlen("\xe2\x96\x81"
                        "d\xc3\xa9j\xc3\xa0"));
    answer_piece(&h.answer, 2, "<0x41>", 6);
    assert_string_equal(h.words, "1= d\xc3\xa9j\xc3\xa0 2=A ");
    end(&h);
}

static void
messages(const struct server_prompt *p, const char *expected)
{
    cJSON *list = server_messages(p);
    char *text = cJSON_PrintUnformatted(list);
    assert_string_equal(text, expected);
    cJSON_free(text);
    cJSON_Delete(list);
}

TEST(a_prompt_follows_the_system_message_and_the_dialogue)
{
    messages(&(struct server_prompt){.text = "hi", .system = "short"},
             "[{\"role\":\"system\",\"content\":\"short\"},{\"role\":\"user\",\"content\":\"hi\"}]");
    messages(&(struct server_prompt){.text = "b", .before = "[{\"role\":\"user\",\"content\":\"a\"}]"},
             "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"user\",\"content\":\"b\"}]");
}

TEST(a_system_message_of_the_dialogue_replaces_the_option)
{
    messages(&(struct server_prompt){.text = "b",
                                     .before = "[{\"role\":\"system\",\"content\":\"own\"}]",
                                     .system = "short"},
             "[{\"role\":\"system\",\"content\":\"own\"},{\"role\":\"user\",\"content\":\"b\"}]");
}

TEST(counters_add_up_engines_and_have_positions)
{
    static const char text[] =
        "# HELP vllm:spec_decode_num_drafts_total Number of drafts.\n"
        "vllm:spec_decode_num_drafts_total{engine=\"0\"} 10.0\n"
        "vllm:spec_decode_num_drafts_total{engine=\"1\"} 2.0\n"
        "vllm:spec_decode_num_drafts_created{engine=\"0\"} 1.79e+09\n"
        "vllm:spec_decode_num_draft_tokens_total{engine=\"0\"} 48\n"
        "vllm:spec_decode_num_accepted_tokens_total{engine=\"0\"} -3\n"
        "vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",position=\"0\"} 9.0\n"
        "vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",position=\"1\"} 8.0\n"
        "vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",position=\"99999\"} 8.0\n"
        "vllm:num_requests_running{engine=\"0\"} 1.0\n";
    char *copy = strdup(text), *found;
    cJSON *counters = server_counters(&vllm_kind, copy);
    found = cJSON_PrintUnformatted(counters);
    assert_string_equal(found, "{\"drafts\":12,\"drafted\":48,\"at\":[9,8],\"running\":1}");
    cJSON_free(found);
    cJSON_Delete(counters);
    free(copy);
}
