/* A fake run with values that a file format could easily corrupt. */

#include "tests/rigs/test.h"
#include "tests/rigs/trace_events.h"

static const char *const modes[] = {"dynamic", "tpl", "length, \"quoted\""};

static void
ask_for_much(struct run_info *run)
{
    run->profile = (struct trained_info){.path = "a\\profile \"of\" three\xff", .hash = UINT64_MAX};
    run->exit_heads = (struct trained_info){.path = "heads \"of\" \\ layers", .hash = 3};
    run->vocab_counts = (struct trained_info){.path = "counts", .hash = 4};
    snprintf(run->vocab_last, sizeof run->vocab_last, "0-2,17");
    run->asked = (struct asked_info){.chat = true,
                                     .threads = 2,
                                     .ignore_eos = true,
                                     .system = strdup("Be\n\"brief\", \\ it\x1b\xff"),
                                     .chat_vars = "thinking=false\nwho=\"it's\"",
                                     .lora = "an adapter:0.5\nanother",
                                     .tools = "some tools.json",
                                     .chat_template = "tool_use",
                                     .chat_special = true,
                                     .chat_date = "2026-03-05 14:30",
                                     .isa = "avx2",
                                     .gpu = "0"};
    assert_non_null(run->asked.system);
}

static void
declare_policies(struct run_info *run)
{
    run->n_policies = 2;
    run->policies = calloc(2, sizeof *run->policies);
    run->start_values = calloc(2 * POLICY_KNOBS, sizeof *run->start_values);
    assert_non_null(run->policies);
    assert_non_null(run->start_values);
    struct policy p = {0};
    snprintf(p.info.name, sizeof p.info.name, "ar");
    run->policies[0] = p.info;
    run->policies[0].needs = NEEDS(AUX_DRAFT) | NEEDS_PROFILE;
    snprintf(p.info.name, sizeof p.info.name, "specbound");
    snprintf(p.info.title, sizeof p.info.title, "SpecBound");
    snprintf(p.info.paper, sizeof p.info.paper, "a paper, \"quoted\"");
    assert_true(policy_knob(&p, &(struct knob){"tau", "τ", "confidence threshold", KNOB_REAL, 0, 1, 0.05, 0.55, NULL}));
    assert_true(policy_knob(&p, &(struct knob){"d_max", "", "depth", KNOB_INTEGER, 1, 5, 1, 3, NULL}));
    assert_true(policy_knob(&p, &(struct knob){"mode", "", "", KNOB_CHOICE, 0, 2, 1, 1, modes}));
    assert_true(policy_series(&p, "tau", "threshold", SERIES_LINE, 1, 1));
    assert_true(policy_series(&p, "alpha", "acceptance", SERIES_BARS, 1, FAKE_LAYERS));
    assert_true(policy_series(&p, "sure", "p", SERIES_DRAFTS, 1, 8));
    run->policies[1] = p.info;
    run->start_values[POLICY_KNOBS] = 0.1 + 0.2; /* not 0.3 */
    run->start_values[POLICY_KNOBS + 1] = 4;
    run->start_values[POLICY_KNOBS + 2] = 2;
}

void
fake_run(struct run_info *run)
{
    memset(run, 0, sizeof *run);
    run->format = TRACE_FORMAT;
    snprintf(run->version, sizeof run->version, "0.1.0");
    snprintf(run->model_path, sizeof run->model_path, "/some where/back\\slash,\"quo\x1bte\xff.gguf");
    snprintf(run->model_name, sizeof run->model_name, "fables-13m");
    snprintf(run->arch, sizeof run->arch, "llama");
    snprintf(run->types, sizeof run->types, "Q8_0, F32");
    run->layers = FAKE_LAYERS;
    run->width = 64;
    run->heads = 4;
    run->kv_heads = 2;
    run->ffn = 128;
    run->experts = FAKE_EXPERTS;
    run->experts_used = FAKE_USED;
    run->vocab = FAKE_VOCAB;
    run->ctx = FAKE_CTX;
    run->parameters = 9007199254740993u; /* 2^53 + 1: no double holds it */
    run->model_hash = 0xfedcba9876543210u;
    run->rho = 1.0 / 3;
    snprintf(run->backend, sizeof run->backend, "cpu");
    snprintf(run->isa, sizeof run->isa, "avx2 x2");
    snprintf(run->host, sizeof run->host, "bench-1");
    run->threads = 2;
    run->exact = true;
    run->prompt = strdup("Once\n\"upon\", a \\time\x1b[31m \xe2\x80\xae\xc3\xa4 \xff\x80");
    assert_non_null(run->prompt);
    run->prompt_len = strlen(run->prompt);
    run->sampling = (struct sampling){.temperature = 0.7f, .top_k = 40, .top_p = 0.95f};
    run->seed = UINT64_MAX;
    run->tokens = 128;
    run->sequences = 3;
    run->prompts = 17;
    run->aux[AUX_DRAFT] =
        (struct aux_info){.name = "small \"draft\"", .path = "a\\b\n", .hash = 77, .layers = FAKE_DRAFT};
    run->aux[AUX_BLOCK] = (struct aux_info){.name = "blocky", .layers = FAKE_BLOCK};
    ask_for_much(run);
    snprintf(run->policy, sizeof run->policy, "specbound");
    snprintf(run->started, sizeof run->started, "2024-02-29T12:34:56Z");
    declare_policies(run);
}
