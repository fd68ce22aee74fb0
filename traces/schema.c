/* The columns. Shorthands: MAYBE is a column that may be empty, ADDED one that may also be missing, RANGED one whose
 * numbers a reader checks against a limit, NAME a char array. */
#include "traces/schema.h"

#define FIELD(name, kind, from, size, limit, optional, added)                                                          \
    {                                                                                                                  \
        name, COLUMN_##kind, offsetof(struct event, from), size, LIMIT_##limit, optional, added                        \
    }
#define COLUMN(name, kind, from)              FIELD(name, kind, from, 0, NONE, false, false)
#define MAYBE(name, kind, from)               FIELD(name, kind, from, 0, NONE, true, false)
#define ADDED(name, kind, from)               FIELD(name, kind, from, 0, NONE, true, true)
#define RANGED(name, kind, from, limit)       FIELD(name, kind, from, 0, limit, false, false)
#define MAYBE_RANGED(name, kind, from, limit) FIELD(name, kind, from, 0, limit, true, false)
#define NAME(name, from, limit, optional)                                                                              \
    FIELD(name, NAME, from, sizeof((struct event *)0)->from, limit, optional, false)

/* Every line starts with these: a number that orders lines across files, microseconds since the run's start. */
#define COMMON_NO_ROUND                                                                                                \
    COLUMN("event", U64, number), COLUMN("t_us", U64, t_us), COLUMN("run", U32, run), RANGED("seq", U32, seq, COUNT)
#define COMMON COMMON_NO_ROUND, COLUMN("round", U32, round)

static const struct column tokens[] = {
    COMMON,
    RANGED("pos", U32, token.pos, POSITION),
    MAYBE_RANGED("parent", I32, token.parent, NODE),
    MAYBE_RANGED("candidate", I32, token.candidate, NODE),
    RANGED("token_id", I32, token.token, TOKEN),
    COLUMN("source", SOURCE, token.source),
    MAYBE_RANGED("exit_layer", I32, token.exit_layer, DEPTH),
    MAYBE("confidence", REAL, token.confidence),
    MAYBE("annealed", REAL, token.annealed),
    MAYBE_RANGED("head", I32, token.head, COUNT),
    MAYBE("accepted", FLAG, token.accepted),
    MAYBE("committed", FLAG, token.committed),
};

static const struct column layers[] = {
    COMMON,
    RANGED("pos", U32, layer.pos, POSITION),
    ADDED("model", MODEL, layer.model),
    RANGED("layer", I32, layer.layer, LAYER),
    MAYBE_RANGED("token_id", I32, layer.token, TOKEN),
    MAYBE("confidence", REAL, layer.confidence),
    MAYBE("annealed", REAL, layer.annealed),
    MAYBE("entropy", REAL, layer.entropy),
    MAYBE("kl_final", REAL, layer.kl_final),
    MAYBE_RANGED("rank_final", I32, layer.rank_final, TOKEN),
    MAYBE("final_agrees", FLAG, layer.final_agrees),
    MAYBE("top", TOP, layer.top),
    MAYBE_RANGED("head", I32, layer.head, COUNT),
    COLUMN("probed_by", PROBED, layer.probed_by),
};

static const struct column series[] = {
    COMMON,
    NAME("key", series.key, NONE, false),
    RANGED("index", I32, series.index, INDEX),
    MAYBE("value", REAL, series.value),
};

static const struct column controls[] = {
    COMMON,
    NAME("name", control.name, NONE, false),
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
    NAME("policy", round_end.policy, POLICY, false),
    COLUMN("draft_us", U32, round_end.draft_us),
    COLUMN("verify_us", U32, round_end.verify_us),
    COLUMN("probe_us", U32, round_end.probe_us),
    RANGED("drafted", U32, round_end.drafted, COUNT),
    RANGED("verified", U32, round_end.verified, COUNT),
    RANGED("accepted", U32, round_end.accepted, COUNT),
    RANGED("emitted", U32, round_end.emitted, COUNT),
    MAYBE_RANGED("exit_layer", I32, round_end.exit_layer, DEPTH),
    MAYBE("threshold", REAL, round_end.threshold),
    MAYBE_RANGED("d_max", I32, round_end.d_max, DEPTH),
    MAYBE_RANGED("w_max", I32, round_end.w_max, COUNT),
    MAYBE("layers_loaded", REAL, round_end.layers_loaded),
    MAYBE("heads_loaded", REAL, round_end.heads_loaded),
    NAME("stop_reason", round_end.stop_reason, NONE, true),
    ADDED("heads_us", REAL, round_end.heads_us),
    ADDED("wait_us", REAL, round_end.wait_us),
    ADDED("aside_us", REAL, round_end.aside_us),
};

#define TABLE(file, type, columns)                                                                                     \
    {                                                                                                                  \
        file, type, (columns), sizeof(columns) / sizeof *(columns)                                                     \
    }

const struct table trace_tables[TABLES] = {
    [TABLE_TOKENS] = TABLE("tokens.csv", EVENT_TOKEN, tokens),
    [TABLE_LAYERS] = TABLE("layers.csv", EVENT_LAYER, layers),
    [TABLE_SERIES] = TABLE("series.csv", EVENT_SERIES, series),
    [TABLE_CONTROLS] = TABLE("controls.csv", EVENT_CONTROL, controls),
    [TABLE_VOCAB] = TABLE("vocab.csv", EVENT_VOCAB, vocab),
    [TABLE_ROUNDS] = TABLE("rounds.csv", EVENT_ROUND, rounds),
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
    case EVENT_SERIES: return TABLE_SERIES;
    case EVENT_CONTROL: return TABLE_CONTROLS;
    case EVENT_VOCAB: return TABLE_VOCAB;
    case EVENT_ROUND: return TABLE_ROUNDS;
    default: return TABLES;
    }
}
