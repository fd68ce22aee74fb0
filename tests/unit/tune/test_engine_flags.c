/* Commands of other engines: golden texts for each policy and engine, quoting, acceptance rates, too little room. */
#include <math.h>

#include "engine/tune/engine_flags.h"
#include "policies/registry.h"
#include "tests/rigs/test.h"

#define LLAMA "llama-server -m target"
#define VLLM  "vllm serve target --generation-config vllm --override-generation-config '{\"temperature\": 0}'"
#define LOAD  "model = AutoModelForCausalLM.from_pretrained('target')\n"

static const struct engine_models models = {"target", "draft"};
static const struct preset ar = {.policy = "ar", .sampling = {"0", "0", "1", "7"}};
static const struct preset sd = {.policy = "sd", .set = {{"k", "5"}}, .n_set = 1, .sampling = {"0", "0", "1", "7"}};
static const struct preset ngram = {.policy = "ngram",
                                    .set = {{"n_max", "4"}, {"n_min", "2"}, {"k", "8"}, {"match", "recent"}},
                                    .n_set = 4,
                                    .sampling = {"0", "0", "1", "7"}};
static const struct preset suffix = {
    .policy = "suffix",
    .set = {{"depth", "24"}, {"spec_factor", "1.5"}, {"k", "16"}, {"min_prob", "0.1"}, {"nodes", "0"}},
    .n_set = 5,
    .sampling = {"0", "0", "1", "7"}};
static const struct preset layerskip = {
    .policy = "layerskip", .set = {{"exit_layer", "8"}, {"gamma", "5"}}, .n_set = 2, .sampling = {"0", "0", "1", "7"}};
static const struct preset fsm = {.policy = "fsm",
                                  .set = {{"exit_layer", "8"}, {"gamma", "5"}, {"gamma_max", "12"}},
                                  .n_set = 3,
                                  .sampling = {"0", "0", "1", "7"}};
static const struct preset dv = {.policy = "dv",
                                 .set = {{"exit_layer", "8"}, {"th", "0.8"}, {"w_max", "12"}},
                                 .n_set = 3,
                                 .sampling = {"0", "0", "1", "7"}};

static const struct preset dflash = {
    .policy = "dflash", .set = {{"k", "15"}, {"conf_min", "0"}}, .n_set = 2, .sampling = {"0.7", "0", "1", "7"}};
static const struct preset dspark = {
    .policy = "dspark", .set = {{"k", "7"}, {"conf_min", "0.5"}}, .n_set = 2, .sampling = {"0", "0", "1", "7"}};

static size_t
flags(enum other_engine engine, const struct preset *p, const struct engine_models *m, const double *rates, uint32_t n,
      char *out, size_t room)
{
    static const struct policy_ops unknown = {.name = "product"};
    const struct policy_ops *ops = policy_named(policy_registry, p->policy);
    return engine_flags(engine, ops != NULL ? ops : &unknown, p, m, rates, n, out, room);
}

static void
is(enum other_engine engine, const struct preset *p, const struct engine_models *m, const double *rates, uint32_t n,
   const char *expected)
{
    char out[1000];
    const size_t length = flags(engine, p, m, rates, n, out, sizeof out);
    assert_string_equal(out, expected);
    assert_int_equal(length, strlen(expected));
}

static const struct golden {
    enum other_engine engine;
    const struct preset *preset;
    const char *text;
} golden[] = {
    {ENGINE_LLAMA_CPP, &ar, LLAMA " --temp 0"},
    {ENGINE_VLLM, &ar, VLLM},
    {ENGINE_SGLANG, &ar, "python3 -m sglang.launch_server --model-path target"},
    {ENGINE_TRANSFORMERS, &ar, LOAD "model.generate(**inputs, do_sample=False)"},

    {ENGINE_LLAMA_CPP, &sd,
     LLAMA " --spec-type draft-simple --spec-draft-model draft --spec-draft-n-max 5 --spec-draft-n-min 0"
           " --spec-draft-p-min 0 --temp 0"},
    {ENGINE_VLLM, &sd,
     VLLM " --speculative-config '{\"method\": \"draft_model\", \"model\": \"draft\","
          " \"num_speculative_tokens\": 5}'"},
    {ENGINE_SGLANG, &sd,
     "python3 -m sglang.launch_server --model-path target --speculative-algorithm STANDALONE"
     " --speculative-draft-model-path draft --speculative-num-steps 5 --speculative-eagle-topk 1"
     " --speculative-num-draft-tokens 6"},
    {ENGINE_TRANSFORMERS, &sd,
     LOAD "draft = AutoModelForCausalLM.from_pretrained('draft')\n"
          "draft.generation_config.update(num_assistant_tokens=5, num_assistant_tokens_schedule='constant',"
          " assistant_confidence_threshold=0)\n"
          "model.generate(**inputs, assistant_model=draft, do_sample=False)"},

    {ENGINE_LLAMA_CPP, &ngram,
     LLAMA " --spec-type ngram-simple --spec-ngram-simple-size-n 2 --spec-ngram-simple-size-m 8 --temp 0"},
    {ENGINE_VLLM, &ngram,
     VLLM " --speculative-config '{\"method\": \"ngram\", \"num_speculative_tokens\": 8, \"prompt_lookup_max\": 4,"
          " \"prompt_lookup_min\": 2}'"},
    {ENGINE_SGLANG, &ngram,
     "python3 -m sglang.launch_server --model-path target --speculative-algorithm NGRAM"
     " --speculative-num-draft-tokens 9 --speculative-ngram-min-bfs-breadth 1 --speculative-ngram-max-bfs-breadth 1"
     " --speculative-ngram-match-type BFS --speculative-ngram-max-trie-depth 12"},
    {ENGINE_TRANSFORMERS, &ngram,
     LOAD "model.generate(**inputs, prompt_lookup_num_tokens=8, max_matching_ngram_size=4, do_sample=False)"},

    {ENGINE_VLLM, &suffix,
     VLLM " --speculative-config '{\"method\": \"suffix\", \"num_speculative_tokens\": 16,"
          " \"suffix_decoding_max_tree_depth\": 40, \"suffix_decoding_max_spec_factor\": 1.5,"
          " \"suffix_decoding_min_token_prob\": 0.1, \"suffix_decoding_max_cached_requests\": 0}'"},
    {ENGINE_LLAMA_CPP, &suffix,
     "no equivalent: its drafts from earlier text have neither spec_factor nor min_prob; see ngram"},

    {ENGINE_LLAMA_CPP, &dflash,
     LLAMA " --spec-type draft-dflash --spec-draft-model draft --spec-draft-n-max 15 --spec-draft-n-min 0"
           " --spec-draft-p-min 0 --temp 0.7 --top-k 0 --top-p 1 --min-p 0"},
    {ENGINE_VLLM, &dspark,
     VLLM " --speculative-config '{\"method\": \"dspark\", \"model\": \"draft\", \"num_speculative_tokens\": 7}'"},
    {ENGINE_SGLANG, &dflash,
     "python3 -m sglang.launch_server --model-path target --speculative-algorithm DFLASH"
     " --speculative-draft-model-path draft --speculative-num-draft-tokens 16"},
    {ENGINE_LLAMA_CPP, &dspark,
     LLAMA " --spec-type draft-dspark --spec-draft-model draft --spec-draft-n-max 7 --spec-draft-n-min 0"
           " --spec-draft-p-min 0.5 --temp 0"},
    {ENGINE_SGLANG, &dspark,
     "python3 -m sglang.launch_server --model-path target --speculative-algorithm DSPARK"
     " --speculative-draft-model-path draft --speculative-dspark-block-size 7"},
    {ENGINE_TRANSFORMERS, &dspark, "no equivalent: it has block drafters of its own architectures only"},

    {ENGINE_TRANSFORMERS, &layerskip,
     LOAD "model.generation_config.update(num_assistant_tokens=5, num_assistant_tokens_schedule='constant',"
          " assistant_confidence_threshold=0)\n"
          "model.generate(**inputs, assistant_early_exit=8, do_sample=False)"},
    {ENGINE_TRANSFORMERS, &fsm,
     LOAD "model.generation_config.update(num_assistant_tokens=5, num_assistant_tokens_schedule='heuristic',"
          " assistant_confidence_threshold=0)\n"
          "model.generate(**inputs, assistant_early_exit=8, do_sample=False)"},
    {ENGINE_TRANSFORMERS, &dv,
     LOAD "model.generation_config.update(num_assistant_tokens=12, num_assistant_tokens_schedule='constant',"
          " assistant_confidence_threshold=0.8)\n"
          "model.generate(**inputs, assistant_early_exit=8, do_sample=False)"},
    {ENGINE_LLAMA_CPP, &layerskip, "no equivalent: it cannot draft with the target's first layers"},
    {ENGINE_VLLM, &fsm, "no equivalent: it cannot draft with the target's first layers"},
    {ENGINE_SGLANG, &dv, "no equivalent: it cannot draft with the target's first layers"},
};

/* Added to a command with a target, the options are the whole command; those of sampling are left out. */
TEST(options_alone_follow_the_target)
{
    static const char *const begins[] = {"llama-server -m target", "vllm serve target",
                                         "python3 -m sglang.launch_server --model-path target"};
    const struct engine_models added = {"", "draft"};
    uint32_t with_options = 0;
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        const enum other_engine engine = golden[i].engine;
        struct preset p = *golden[i].preset;
        char options[1000], sampled[1000], whole[1000], expected[1100];
        const struct policy_ops *ops = policy_named(policy_registry, p.policy);
        if (engine == ENGINE_TRANSFORMERS || ops == NULL || ops->command[engine] == NULL)
            continue;
        flags(engine, &p, &added, NULL, 0, sampled, sizeof sampled);
        memset(p.sampling, 0, sizeof p.sampling);
        flags(engine, &p, &added, NULL, 0, options, sizeof options);
        flags(engine, &p, &models, NULL, 0, whole, sizeof whole);
        snprintf(expected, sizeof expected, "%s%s", begins[engine], options);
        assert_string_equal(whole, expected);
        assert_lacks(sampled, "temp");
        with_options += options[0] == ' ';
    }
    assert_at_least(with_options, 6);
}

TEST(each_policy_with_an_equivalent_in_another_engine_has_its_command)
{
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++)
        is(golden[i].engine, golden[i].preset, &models, NULL, 0, golden[i].text);
}

TEST(each_policy_without_an_equivalent_in_another_engine_has_a_reason)
{
    static const struct {
        const char *policy, *reason;
    } table[] = {{"del", "it cannot choose an exit layer in each round"},
                 {"specbound", "it cannot choose an exit layer for each token"},
                 {"swift", "it cannot skip sublayers in drafts"},
                 {"specdecpp", "it has no acceptance head for a draft model"},
                 {"sv", "it has no companion model"},
                 {"product", "its form of this policy is not known"}};
    for (enum other_engine engine = 0; engine < ENGINES; engine++)
        for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
            struct preset p = {.n_set = 0};
            char expected[100];
            snprintf(p.policy, sizeof p.policy, "%s", table[i].policy);
            snprintf(expected, sizeof expected, "no equivalent: %s", table[i].reason);
            is(engine, &p, &models, NULL, 0, expected);
        }
}

TEST(engines_have_names_and_versions)
{
    for (enum other_engine engine = 0; engine < ENGINES; engine++) {
        assert_non_null(policy_named(policy_registry, "sd")->command[engine]);
        assert_non_null(policy_named(policy_registry, "ngram")->command[engine]);
        assert_non_null(engine_names[engine]);
        assert_non_null(engine_versions[engine]);
    }
}

TEST(sampling_has_each_engines_form)
{
    struct preset p = {.policy = "ar", .sampling = {"0.7", "40", "0.95", "7"}};
    is(ENGINE_LLAMA_CPP, &p, &models, NULL, 0, LLAMA " --temp 0.7 --top-k 40 --top-p 0.95 --min-p 0");
    is(ENGINE_VLLM, &p, &models, NULL, 0,
       "vllm serve target --generation-config vllm --override-generation-config"
       " '{\"temperature\": 0.7, \"top_k\": 40, \"top_p\": 0.95}'");
    is(ENGINE_SGLANG, &p, &models, NULL, 0, "python3 -m sglang.launch_server --model-path target");
    is(ENGINE_TRANSFORMERS, &p, &models, NULL, 0,
       LOAD "model.generate(**inputs, do_sample=True, temperature=0.7, top_k=40, top_p=0.95)");
    memcpy(p.sampling[SAMPLING_TOP_K], "0", 2);
    is(ENGINE_VLLM, &p, &models, NULL, 0,
       "vllm serve target --generation-config vllm --override-generation-config"
       " '{\"temperature\": 0.7, \"top_p\": 0.95}'");
    /* A preset that does not set the sampling. */
    memset(p.sampling, 0, sizeof p.sampling);
    is(ENGINE_LLAMA_CPP, &p, &models, NULL, 0, LLAMA);
    is(ENGINE_VLLM, &p, &models, NULL, 0, "vllm serve target");
    is(ENGINE_TRANSFORMERS, &p, &models, NULL, 0, LOAD "model.generate(**inputs)");
}

/* According to its source, SGLang samples only the drafts of a head's chains. */
TEST(presets_that_sample_make_vllm_and_sglang_sample_their_drafts)
{
    struct preset p = {.policy = "eagle", .set = {{"k", "3"}, {"topk", "1"}, {"nodes", "3"}}, .n_set = 3};
    static const char sampled[] = "\"num_speculative_tokens\": 3, \"draft_sample_method\": \"probabilistic\"}'",
                      rejection[] = " --speculative-use-rejection-sampling";
    static const struct {
        const char *policy, *topk, *temperature;
        bool vllm, sglang;
    } cases[] = {{"eagle", "1", "0.7", true, true}, {"eagle", "4", "0.7", true, false}, {"mtp", "1", "0.7", true, true},
                 {"sd", "1", "0.7", true, false},   {"eagle", "1", "0", false, false},  {"mtp", "1", "", false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char vllm[1000], sglang[1000];
        snprintf(p.policy, sizeof p.policy, "%s", cases[i].policy);
        snprintf(p.set[1].text, sizeof p.set[1].text, "%s", cases[i].topk);
        snprintf(p.sampling[SAMPLING_TEMPERATURE], sizeof p.sampling[0], "%s", cases[i].temperature);
        flags(ENGINE_VLLM, &p, &models, NULL, 0, vllm, sizeof vllm);
        flags(ENGINE_SGLANG, &p, &models, NULL, 0, sglang, sizeof sglang);
        assert_int_equal(strstr(vllm, sampled) != NULL, cases[i].vllm);
        assert_int_equal(strstr(sglang, rejection) != NULL, cases[i].sglang);
    }
}

TEST(transformers_has_layers_for_multi_token_prediction)
{
    const struct preset p = {.policy = "mtp", .set = {{"k", "2"}}, .n_set = 1};
    is(ENGINE_TRANSFORMERS, &p, &models, NULL, 0, LOAD "model.generate(**inputs, use_mtp=True)");
}

TEST(paths_are_quoted_in_each_engines_form)
{
    static const struct engine_models odd = {"it's $HOME/a b", "d'\\\"\n"};
    const struct preset p = {.policy = "sd", .set = {{"k", "5"}}, .n_set = 1};
    is(ENGINE_LLAMA_CPP, &p, &odd, NULL, 0,
       "llama-server -m 'it'\\''s $HOME/a b' --spec-type draft-simple --spec-draft-model 'd'\\''\\\"\n'"
       " --spec-draft-n-max 5 --spec-draft-n-min 0 --spec-draft-p-min 0");
    is(ENGINE_VLLM, &p, &odd, NULL, 0,
       "vllm serve 'it'\\''s $HOME/a b' --speculative-config '{\"method\": \"draft_model\","
       " \"model\": \"d\\u0027\\u005c\\u0022\\u000a\", \"num_speculative_tokens\": 5}'");
    is(ENGINE_TRANSFORMERS, &p, &odd, NULL, 0,
       "model = AutoModelForCausalLM.from_pretrained('it\\x27s $HOME/a b')\n"
       "draft = AutoModelForCausalLM.from_pretrained('d\\x27\\x5c\"\\x0a')\n"
       "draft.generation_config.update(num_assistant_tokens=5, num_assistant_tokens_schedule='constant',"
       " assistant_confidence_threshold=0)\n"
       "model.generate(**inputs, assistant_model=draft)");
}

TEST(only_the_command_of_llama_cpp_has_the_gguf_files)
{
    static const struct engine_models gguf = {"a/target.GGUF", "d.gguf"}, ollama = {"a/blobs/sha256-0", NULL};
    const char *note = "HF_FOLDER, HF_DRAFT_FOLDER: the models' Hugging Face folders, in place of the GGUF files";
    const struct preset p = {.policy = "sd", .set = {{"k", "5"}}, .n_set = 1}, plain = {.policy = "ar"};
    char out[1000];
    is(ENGINE_LLAMA_CPP, &p, &gguf, NULL, 0,
       "llama-server -m a/target.GGUF --spec-type draft-simple --spec-draft-model d.gguf --spec-draft-n-max 5"
       " --spec-draft-n-min 0 --spec-draft-p-min 0");
    is(ENGINE_VLLM, &p, &gguf, NULL, 0,
       "vllm serve HF_FOLDER --speculative-config '{\"method\": \"draft_model\", \"model\": \"HF_DRAFT_FOLDER\","
       " \"num_speculative_tokens\": 5}'");
    is(ENGINE_SGLANG, &plain, &gguf, NULL, 0, "python3 -m sglang.launch_server --model-path HF_FOLDER");
    is(ENGINE_TRANSFORMERS, &plain, &ollama, NULL, 0,
       "model = AutoModelForCausalLM.from_pretrained('HF_FOLDER')\nmodel.generate(**inputs)");
    for (enum other_engine engine = 0; engine < ENGINES; engine++) {
        flags(engine, &plain, &gguf, NULL, 0, out, sizeof out);
        if (engine == ENGINE_LLAMA_CPP)
            assert_null(engine_folder_note(out));
        else
            assert_string_equal(engine_folder_note(out), note);
    }
}

/* docs/engines.md: size-n is n_min, which counts as at most n_max. */
TEST(n_min_counts_as_at_most_n_max)
{
    const struct preset p = {.policy = "ngram", .set = {{"n_max", "3"}, {"n_min", "4"}, {"k", "6"}}, .n_set = 3};
    is(ENGINE_LLAMA_CPP, &p, &models, NULL, 0,
       LLAMA " --spec-type ngram-simple --spec-ngram-simple-size-n 3 --spec-ngram-simple-size-m 6");
}

TEST(unknown_models_and_knobs_are_capitals)
{
    static const struct engine_models none = {NULL, NULL};
    const struct preset p = {.policy = "sd"}, half = {.policy = "ngram", .set = {{"k", "8"}}, .n_set = 1};
    is(ENGINE_SGLANG, &p, &none, NULL, 0,
       "python3 -m sglang.launch_server --model-path TARGET --speculative-algorithm STANDALONE"
       " --speculative-draft-model-path DRAFT --speculative-num-steps K --speculative-eagle-topk 1"
       " --speculative-num-draft-tokens K+1");
    is(ENGINE_VLLM, &half, &none, NULL, 0,
       "vllm serve TARGET --speculative-config '{\"method\": \"ngram\", \"num_speculative_tokens\": 8,"
       " \"prompt_lookup_max\": N_MAX, \"prompt_lookup_min\": N_MIN}'");
}

TEST(values_that_are_no_numbers_are_not_copied)
{
    const struct preset p = {
        .policy = "ngram", .set = {{"k", "$(id)"}}, .n_set = 1, .sampling = {"'; id; '", "1", "1", "1"}};
    is(ENGINE_LLAMA_CPP, &p, &models, NULL, 0,
       LLAMA " --spec-type ngram-simple --spec-ngram-simple-size-n N_MIN --spec-ngram-simple-size-m K");
}

TEST(rates_are_as_many_as_the_drafts_and_do_not_increase)
{
    static const double rates[] = {0.9, 0.625, 0.7, NAN, 0.5, 0.1, 0.1};
    const struct preset p = {.policy = "sd", .set = {{"k", "5"}}, .n_set = 1}, open = {.policy = "sd"};
    is(ENGINE_LLAMA_CPP, &p, &models, rates, 7,
       LLAMA " --spec-type draft-simple --spec-draft-model draft --spec-draft-n-max 5 --spec-draft-n-min 0"
             " --spec-draft-p-min 0 --spec-synth-rates 0.9,0.625,0.625,0,0");
    is(ENGINE_VLLM, &p, &models, rates, 2,
       "vllm serve target --speculative-config '{\"method\": \"draft_model\", \"model\": \"draft\","
       " \"num_speculative_tokens\": 5, \"rejection_sample_method\": \"synthetic\","
       " \"synthetic_acceptance_rates\": [0.9, 0.625, 0, 0, 0]}'");
    is(ENGINE_SGLANG, &p, &models, rates, 2,
       "SGLANG_SIMULATE_ACC_LEN=2.525 python3 -m sglang.launch_server --model-path target"
       " --speculative-algorithm STANDALONE --speculative-draft-model-path draft --speculative-num-steps 5"
       " --speculative-eagle-topk 1 --speculative-num-draft-tokens 6");
    is(ENGINE_TRANSFORMERS, &p, &models, rates, 2, "no equivalent: it cannot accept drafts at given rates");
    is(ENGINE_LLAMA_CPP, &ar, &models, rates, 2, "no equivalent: there are no drafts to accept");
    is(ENGINE_LLAMA_CPP, &open, &models, rates, 2,
       LLAMA " --spec-type draft-simple --spec-draft-model draft --spec-draft-n-max K --spec-draft-n-min 0"
             " --spec-draft-p-min 0 --spec-synth-rates 0.9,0.625");
}

/* llama-server refuses to start with fewer rates than the longest draft of all its drafters has tokens. */
TEST(two_drafters_have_rates_for_the_longer_drafts)
{
    static const double rates[] = {0.9, 0.5};
    struct preset p = {
        .policy = "ngram+sd", .set = {{"n_max", "4"}, {"n_min", "2"}, {"copied", "3"}, {"k", "5"}}, .n_set = 4};
    char out[1000];
    flags(ENGINE_LLAMA_CPP, &p, &models, rates, 2, out, sizeof out);
    assert_contains(out,
                    "--spec-draft-n-max 5 --spec-draft-n-min 0 --spec-draft-p-min 0 --spec-synth-rates 0.9,0.5,0,0,0");
    snprintf(p.set[2].text, sizeof p.set[2].text, "6");
    flags(ENGINE_LLAMA_CPP, &p, &models, rates, 2, out, sizeof out);
    assert_contains(out, "--spec-synth-rates 0.9,0.5,0,0,0,0");
    assert_lacks(out, "0,0,0,0,0");
}

TEST(a_room_too_small_is_empty)
{
    const char *text = LLAMA " --temp 0";
    char out[100];
    assert_int_equal(flags(ENGINE_LLAMA_CPP, &ar, &models, NULL, 0, NULL, 0), strlen(text));
    for (size_t room = 1; room <= strlen(text) + 1; room++) {
        memset(out, 'x', sizeof out);
        assert_int_equal(flags(ENGINE_LLAMA_CPP, &ar, &models, NULL, 0, out, room), strlen(text));
        assert_string_equal(out, room > strlen(text) ? text : "");
        assert_int_equal(out[room], 'x');
    }
}
