#!/bin/sh
# The block of the bundled block drafter on the screen: live and in a replay, at several sizes.
BUILD=${BUILD:-build}
. tests/screens/lib.sh
VALLEY="Everybody in the valley knew Willa and Lorgar."
SCOPE="$PROGRAM --pace 0 --once --ignore-eos -n 60 -p '$VALLEY'"
block() { grep -E '[│┃] *\+[0-9]|▲ block' "$1" | sed 's/^.*[│┃]\( *+[0-9]\)/\1/; s/^.*▲/▲/'; } # a saved screen: the strip's rows

group "a block, live and replayed"
printf ':step 4\n:wait idle\n:panel layers\n:save-screen live.txt\n:quit\n' >"$WORK/live.script"
printf ':goto 99999\n:wait idle\n:panel layers\n:save-screen replay.txt\n:quit\n' >"$WORK/replay.script"
for size in 120x36 160x48; do
    terminal $size "$SCOPE --policy dspark --probe policy --trace trace --script $WORK/live.script && $PROGRAM replay --script $WORK/replay.script trace"
    check "a live run and its replay end well at $size" exits 0
    block "$WORK/run/live.txt" >"$WORK/live"
    block "$WORK/run/replay.txt" >"$WORK/replay"
    check "the block has rows and its drafter's name at $size" grep -q '▲ block fables.* round [0-9]*: [0-9]* of [0-9]* accepted' "$WORK/live"
    check "a row has its fate, probabilities and the confidence head at $size" grep -q '+1 [✓✗] .* \.[0-9][0-9] .*c \.[0-9][0-9]' "$WORK/live"
    check "a replay shows the same block at $size" cmp "$WORK/live" "$WORK/replay"
done
check "the trace has both heads, and forecasts of the confidence head" \
    awk -F, '$7 == "block" && $17 == 0 { a++ } $7 == "block" && $17 == 1 && $19 > 0 { b++ } END { exit !(a > 0 && b > 0) }' "$WORK/run/trace/layers.csv"

group "the cursor in a block"
terminal 160x48 "$SCOPE --policy dspark"
check "the text ends" wait_for "■ ended"
check "reliability counts forecasts" shows "ECE .* forecasts"
tm send-keys 2 h h h h h h h h K
check "the cursor reaches the first draft" wait_for "round [0-9]* +1 '"
tm send-keys Enter
check "Enter shows the choices with and without the bias" wait_for "with bias .*without"
tm send-keys Escape d
check "d hides the block" until_true hides "▲ block"
tm send-keys d z
check "z shows the whole block" wait_for " +7 [✓✗·]"
tm send-keys q q
check "q leaves" exits 0

group "without the Markov head, and small"
terminal 160x48 "$SCOPE --policy dflash"
check "the text ends" wait_for "■ ended"
check "a block without the bias has no mark of it" sh -c "tmux -S '$SOCKET' capture-pane -p | grep '▲ block' | grep -v '≠'"
tm send-keys q q
terminal 80x24 "$SCOPE --policy dspark"
check "80×24 ends" wait_for "■ ended"
tm send-keys 2 z
check "the block fits 80×24" wait_for " +1 [✓✗·]"
tm send-keys q q
terminal 40x10 "$SCOPE --policy dspark"
check "the text fits 40×10" wait_for "■ ended"
tm send-keys q q
exit $STATUS
