#!/bin/sh
# A trace is a public format: docs/traces.md, the Python writer and the program agree on it, and foreign traces replay.
BUILD=${BUILD:-build}
. tests/screens/lib.sh

cd "$WORK" || exit 1
"$PROGRAM" run -n 8 -p 'the hen' --probe all --trace "$WORK/ours" "$ROOT/tests/golden/families/mixtral.gguf" >/dev/null 2>&1
for table in tokens rounds layers experts vocab series controls; do
    columns=$(head -n 1 "ours/$table.csv")
    # the table below the heading, its first cells
    awk -v name="$table.csv" '/^##/ { on = $2 ~ "^" name } on' "$ROOT/docs/traces.md" | grep '^| `' | cut -d'|' -f2 | tr -d '` ' | tr ',\n' '\n\n' |
        sort >"$table.docs"
    echo "$columns" | tr ',' '\n' | sort >"$table.ours"
    check "docs/traces.md has the columns of $table.csv" diff "$table.docs" "$table.ours"
done
# members of run.json and of its objects, without knobs and series
members='"[a-z_]*":'
sed '/"policies"/,/^\t\]/d' ours/run.json | grep -o "$members" | tr -d '":' | sort -u |
    while read -r name; do grep -q "\`$name\`" "$ROOT/docs/traces.md" || echo "$name"; done >missing
check "docs/traces.md has the members of run.json" sh -c '! grep . missing'

"$PROGRAM" run -n 4 -p 'the hen' --trace "$WORK/hybrid" "$ROOT/tests/golden/families/qwen3_5.gguf" >/dev/null 2>&1
check "a hybrid model's trace has a letter for each layer" grep -q '"layer_kinds":[[:space:]]*"rrra"' hybrid/run.json
check "a trace of layers of one kind has no letters" sh -c '! grep -q layer_kinds ours/run.json'

# The page's smallest useful trace can be read.
mkdir smallest
block() { # the first block of code after the line that says what file it is
    awk -v name="\`$1\`" '$0 == name { on = 1; next } on && /^```/ { if (inside) exit; inside = 1; next } inside' "$ROOT/docs/traces.md"
}
for file in run.json tokens.csv rounds.csv; do block $file >"smallest/$file"; done
terminal 80x24 "$PROGRAM replay $WORK/smallest"
check "the smallest trace replays" wait_for 'policy early.*at its end'
check "the smallest trace shows ids without a vocabulary" wait_for '3332'
tm send-keys q
check "the replay of the smallest trace ends well" exits 0

if command -v python3 >/dev/null; then
    cd "$ROOT" || exit 1
    check "the Python writer and reader pass their tests" python3 -m unittest discover -s python/tests
    PYTHONPATH=python python3 -c '
from specscope_trace.tables import COLUMNS
for table, columns in COLUMNS.items(): print(table, ",".join(columns))' | while read -r table columns; do
        [ "$columns" = "$(head -n 1 "$WORK/ours/$table.csv")" ] || echo "$table"
    done >"$WORK/differ"
    check "the Python writer's columns are the program's" sh -c "! grep . '$WORK/differ'"
    # One process writes, slowly; the scope follows, begun before it and after.
    cat >"$WORK/writes.py" <<'END'
import os, sys, time
sys.path.insert(0, "python")
from specscope_trace import Draft, Model, Trace
folder, go = sys.argv[1:]
def wait(name):
    while not os.path.exists(os.path.join(go, name)): time.sleep(0.02)
t = Trace(folder, model=Model("elsewhere", layers=6, vocab=100), policy="foreign", context=400, device="a far machine",
          decode=lambda i: " w%d" % i)
t.begin([1, 2, 3])
for n in range(1, 41):
    if n in (4, 31): wait("go%d" % n)
    if n == 33: open(os.path.join(go, "more"), "w").close()
    for layer in range(1, 4): t.layer(t.position, layer, 40 + layer, 0.2 * layer)
    t.round([Draft(40 + n, exit_layer=3, confidence=0.6), Draft(7, exit_layer=3, confidence=0.5)], 1, n, draft_seconds=0.01,
            verify_seconds=0.02, layers_loaded=12)
wait("close")
t.close()
END
    python3 "$WORK/writes.py" "$WORK/foreign" "$WORK" &
    terminal 120x36 "$PROGRAM replay --follow $WORK/foreign"
    check "--follow shows the rounds that are written" wait_for 'following.*round 3'
    check "--follow shows the model and machine of a trace by another engine" wait_for 'elsewhere · 6 layers · a far machine.*policy foreign'
    touch "$WORK/go4"
    check "--follow shows rounds as they are written" wait_for 'round 30$\|round 30 '
    check "--follow shows the text of a trace by another engine" wait_for 'w70'
    tm send-keys Space
    check "--follow pauses on command" wait_for 'following, paused'
    touch "$WORK/go31"
    until_true test -e "$WORK/more" >/dev/null
    drawn_again
    check "--follow stays paused when more is written" shows 'round 30$\|round 30 '
    tm send-keys Space
    check "--follow catches up after a pause" wait_for 'round 40'
    touch "$WORK/close"
    check "a followed trace that is closed is a replay like any other" wait_for 'replay, at its end'
    tm send-keys q
    check "--follow ends with status 0 after the writer ended" exits 0
    wait
    "$PROGRAM" diff "$WORK/foreign" "$WORK/foreign" >"$WORK/diff" 2>&1
    check "two traces by another engine are compared" grep -q 'tokens/s .*66.7' "$WORK/diff"
    "$PROGRAM" plot "$WORK/foreign" exits -o "$WORK/exits.svg" >"$WORK/plot" 2>&1
    check "a trace by another engine is drawn" grep -q '<svg' "$WORK/exits.svg"
    terminal 80x24 "$PROGRAM replay --follow $WORK/later"
    check "--follow waits for a trace that is not there yet" until_true grep -q 'waiting for .*later/run.json' "$WORK/run/err"
    cp -r "$WORK/foreign" "$WORK/later.part" && mv "$WORK/later.part" "$WORK/later"
    check "--follow shows a trace that began later" wait_for 'round 40'
    rm "$WORK/later/rounds.csv"
    tm send-keys q
    exits 0 >/dev/null
else
    echo "ok 1 - the Python writer # SKIP there is no python3"
fi
exit $STATUS
