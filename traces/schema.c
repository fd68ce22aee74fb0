/* The columns. Shorthands: MAYBE is a column that may be empty, ADDED one that may also be missing, RANGED one with a
 * limit that a reader checks, NAME a char array. docs/traces.md describes the columns; a test compares it with this
 * table. */
#include "traces/schema.h"

#define FIELD(name, kind, from, size, limit, optional, added)                                                          \
    {                                                                                                                  \
        name, NULL, COLUMN_##kind, offsetof(struct event, from), size, LIMIT_##limit, optional, added, false           \
    }
/* As ADDED, for mixtures of experts. */
#define MOE(name, kind, from)                                                                                          \
    {                                                                                                                  \
        name, NULL, COLUMN_##kind, offsetof(struct event, from), 0, LIMIT_NONE, true, true, true                       \
    }
#define COLUMN(name, kind, from)              FIELD(name, kind, from, 0, NONE, false, false)
#define MAYBE(name, kind, from)               FIELD(name, kind, from, 0, NONE, true, false)
#define ADDED(name, kind, from)               FIELD(name, kind, from, 0, NONE, true, true)
#define RANGED(name, kind, from, limit)       FIELD(name, kind, from, 0, limit, false, false)
#define ADDED_RANGED(name, kind, from, limit) FIELD(name, kind, from, 0, limit, true, true)
#define NAME(name, from, limit)               FIELD(name, NAME, from, sizeof((struct event *)0)->from, limit, false, false)
#define ADDED_NAME(name, from)                FIELD(name, NAME, from, sizeof((struct event *)0)->from, NONE, true, true)

/* The first columns of every line: a number that orders lines across files, and microseconds since the run's start. */
#define COMMON_NO_ROUND                                                                                                \
    COLUMN("event", U64, number), COLUMN("t_us", U64, t_us), COLUMN("run", U32, run), RANGED("seq", U32, seq, COUNT)
#define COMMON COMMON_NO_ROUND, COLUMN("round", U32, round)

static const struct column tokens[] = {
    COMMON,
    RANGED("pos", U32, token.pos, POSITION),
    ADDED_RANGED("parent", I32, token.parent, NODE),
    ADDED_RANGED("candidate", I32, token.candidate, NODE),
    RANGED("token_id", I32, token.token, TOKEN),
    COLUMN("source", SOURCE, token.source),
    ADDED_RANGED("exit_layer", I32, token.exit_layer, DEPTH),
    ADDED("confidence", REAL, token.confidence),
    ADDED("annealed", REAL, token.annealed),
    ADDED_RANGED("head", I32, token.head, COUNT),
    ADDED("accepted", FLAG, token.accepted),
    ADDED("committed", FLAG, token.committed),
};

static const struct column layers[] = {
    COMMON,
    RANGED("pos", U32, layer.pos, POSITION),
    ADDED("model", MODEL, layer.model),
    RANGED("layer", I32, layer.layer, LAYER),
    ADDED_RANGED("token_id", I32, layer.token, TOKEN),
    ADDED("confidence", REAL, layer.confidence),
    ADDED("annealed", REAL, layer.annealed),
    ADDED("entropy", REAL, layer.entropy),
    ADDED("kl_final", REAL, layer.kl_final),
    ADDED_RANGED("rank_final", I32, layer.rank_final, TOKEN),
    ADDED("final_agrees", FLAG, layer.final_agrees),
    ADDED("top", TOP, layer.top),
    ADDED_RANGED("head", I32, layer.head, COUNT),
    COLUMN("probed_by", PROBED, layer.probed_by),
    ADDED("acceptance", REAL, layer.acceptance),
    ADDED("temperature", REAL, layer.temperature),
    ADDED("draft_vocab", U32, layer.draft_vocab),
};

static const struct column experts[] = {
    COMMON,
    RANGED("pos", U32, experts.pos, POSITION),
    RANGED("layer", I32, experts.layer, OWN),
    COLUMN("experts", EXPERTS, experts),
};

static const struct column series[] = {
    COMMON,
    NAME("key", series.key, NONE),
    RANGED("index", I32, series.index, INDEX),
    MAYBE("value", REAL, series.value),
};

static const struct column controls[] = {
    COMMON,
    COLUMN("name", CONTROL, control),
    MAYBE("old", TEXT, control.old_text),
    MAYBE("new", TEXT, control.new_text),
    COLUMN("applied_round", U32, control.applied_round),
};

static const struct column vocab[] = {
    COMMON_NO_ROUND,
    RANGED("token_id", I32, vocab.token, TOKEN),
    MAYBE("text", BYTES, vocab.bytes),
};

static const struct column rounds[] = {
    COMMON,
    NAME("policy", round_end.policy, POLICY),
    COLUMN("draft_us", U32, round_end.draft_us),
    COLUMN("verify_us", U32, round_end.verify_us),
    ADDED("probe_us", U32, round_end.probe_us),
    RANGED("drafted", U32, round_end.drafted, COUNT),
    RANGED("verified", U32, round_end.verified, COUNT),
    RANGED("accepted", U32, round_end.accepted, COUNT),
    RANGED("emitted", U32, round_end.emitted, COUNT),
    ADDED_RANGED("exit_layer", I32, round_end.exit_layer, DEPTH),
    ADDED("threshold", REAL, round_end.threshold),
    ADDED_RANGED("d_max", I32, round_end.d_max, DEPTH),
    ADDED_RANGED("w_max", I32, round_end.w_max, COUNT),
    ADDED("layers_loaded", REAL, round_end.layers_loaded),
    ADDED("heads_loaded", REAL, round_end.heads_loaded),
    ADDED_NAME("stop_reason", round_end.stop_reason),
    ADDED("heads_us", REAL, round_end.heads_us),
    ADDED("wait_us", REAL, round_end.wait_us),
    {"learning_us", "aside_us", COLUMN_REAL, offsetof(struct event, round_end.learning_us), 0, LIMIT_NONE, true, true,
     false},
    MOE("verify_experts", REAL, round_end.verify_experts),
    ADDED_RANGED("reject_rank", I32, round_end.reject_rank, INDEX),
    ADDED_RANGED("cut", U32, round_end.cut, COUNT),
};

#define TABLE(file, required, moe, type, columns)                                                                      \
    {                                                                                                                  \
        file, required, moe, type, (columns), sizeof(columns) / sizeof *(columns)                                      \
    }

const struct table trace_tables[TABLES] = {
    [TABLE_TOKENS] = TABLE("tokens.csv", true, false, EVENT_TOKEN, tokens),
    [TABLE_LAYERS] = TABLE("layers.csv", false, false, EVENT_LAYER, layers),
    [TABLE_EXPERTS] = TABLE("experts.csv", false, true, EVENT_EXPERTS, experts),
    [TABLE_SERIES] = TABLE("series.csv", false, false, EVENT_SERIES, series),
    [TABLE_CONTROLS] = TABLE("controls.csv", false, false, EVENT_CONTROL, controls),
    [TABLE_VOCAB] = TABLE("vocab.csv", false, false, EVENT_VOCAB, vocab),
    [TABLE_ROUNDS] = TABLE("rounds.csv", true, false, EVENT_ROUND, rounds),
};

_Static_assert(sizeof tokens / sizeof *tokens <= TABLE_COLUMNS && sizeof layers / sizeof *layers <= TABLE_COLUMNS &&
                   sizeof rounds / sizeof *rounds <= TABLE_COLUMNS,
               "TABLE_COLUMNS is too small");

enum table_id
table_of(enum event_type type)
{
    switch (type) {
    case EVENT_TOKEN: return TABLE_TOKENS;
    case EVENT_LAYER: return TABLE_LAYERS;
    case EVENT_EXPERTS: return TABLE_EXPERTS;
    case EVENT_SERIES: return TABLE_SERIES;
    case EVENT_CONTROL: return TABLE_CONTROLS;
    case EVENT_VOCAB: return TABLE_VOCAB;
    case EVENT_ROUND: return TABLE_ROUNDS;
    default: return TABLES;
    }
}
