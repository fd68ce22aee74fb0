#include "tests/rigs/small_trace.h"

#include <math.h>

#include "tests/rigs/trace_checks.h"

static void
end_round(struct stream *s)
{
    stream_add(s, EVENT_ROUND)->round_end = (struct round_event){.policy = "specbound",
                                                                 .draft_us = 10,
                                                                 .verify_us = 20,
                                                                 .drafted = 1,
                                                                 .verified = 1,
                                                                 .accepted = 1,
                                                                 .emitted = 1,
                                                                 .cut = 3,
                                                                 .exit_layer = -1,
                                                                 .threshold = 0.5f,
                                                                 .d_max = 3,
                                                                 .w_max = 4,
                                                                 .layers_loaded = 6,
                                                                 .heads_loaded = 2,
                                                                 .stop_reason = "w_max",
                                                                 .heads_us = 2.5f,
                                                                 .wait_us = NAN,
                                                                 .learning_us = 1.5f,
                                                                 .verify_experts = 3.25f,
                                                                 .reject_rank = 2};
}

void
write_small_trace(const char *folder, char path[256])
{
    struct stream s;
    stream_begin(&s, 1);
    s.run = 1;
    stream_control(&s, "run", "start");
    s.round = 1;
    struct event *e = stream_add(&s, EVENT_VOCAB);
    e->vocab = (struct vocab_event){.token = 7, .bytes = "seven", .n_bytes = 5};
    e = stream_add(&s, EVENT_TOKEN);
    e->token = (struct token_event){.pos = 3,
                                    .parent = 0,
                                    .candidate = 1,
                                    .token = 7,
                                    .source = SOURCE_DRAFT,
                                    .exit_layer = 2,
                                    .confidence = 0.5f,
                                    .annealed = 0.25f,
                                    .accepted = -1,
                                    .committed = -1};
    e = stream_add(&s, EVENT_LAYER);
    e->layer = (struct layer_event){.pos = 3,
                                    .layer = 2,
                                    .token = 7,
                                    .confidence = 0.5f,
                                    .annealed = 0.25f,
                                    .temperature = 1.25f,
                                    .entropy = 1.5f,
                                    .kl_final = (float)NAN,
                                    .acceptance = (float)NAN,
                                    .rank_final = -1,
                                    .final_agrees = -1,
                                    .draft_vocab = 4100,
                                    .top = {7, 8, TOKEN_NONE, TOKEN_NONE, TOKEN_NONE},
                                    .top_p = {0.5f, 0.125f}};
    e = stream_add(&s, EVENT_SERIES);
    e->series = (struct series_event){.key = "tau", .index = 0, .value = 0.5f};
    e = stream_add(&s, EVENT_VERDICT);
    e->verdict = (struct verdict_event){1, 1, 1};
    e = stream_add(&s, EVENT_EXPERTS);
    e->experts =
        (struct experts_event){.pos = 3, .layer = 6, .n = 3, .expert = {39, 0, 7}, .weight = {0.5f, 0.375f, 0.1f}};
    end_round(&s);
    for (size_t i = 0; i < s.n; i++) /* numbers instead of random times */
        s.events[i].t_us = 1000 + i;
    write_trace(folder, &s, true, path);
    stream_free(&s);
}
