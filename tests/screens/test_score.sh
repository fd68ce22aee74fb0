#!/bin/sh
# :score in the scope: texts are scored live, a setting is taken, scoring is stopped; a report is shown in a replay.
# Which drafter is the fastest depends on the machine.
BUILD=${BUILD:-build}
. tests/screens/lib.sh

TEXTS=$WORK/texts.jsonl
for name in Ada Ben Ruby Tom; do
    printf '{"prompt": "A baker sent %s", "completion": " to market with a red apple. In the park %s met a fox, and the fox said, \\"Bring me an oven for it.\\" So %s came home with the red apple."}\n' $name $name $name
done >"$TEXTS"

printf '%s\n' ':wait round 3' ":score $TEXTS" ':save-screen begins.txt' ':wait idle' ':save-screen over.txt' ':key Down Enter' \
    ':wait idle' ':save-screen taken.txt' ':undo' ':wait idle' ':save-screen undone.txt' ':quit' >"$WORK/score.script"
terminal 160x48 "$PROGRAM -n 12 --script $WORK/score.script"
check "scoring ends well" exits 0
check "the panel appears when scoring begins" grep -q '[0-9] score ━.* 0 conversations' "$WORK/run/begins.txt"
check "the screen says that Esc stops scoring" grep -q 'Esc stops' "$WORK/run/begins.txt"
check "the panel has the tokens per round and the speed of each drafter" grep -Eq '▸[a-z].* ±\.[0-9]* +[0-9]\.[0-9][0-9]' "$WORK/run/over.txt"
second=$(sed -n 's/^[┃|]▸\([a-z+]*\) .*/\1/p' "$WORK/run/taken.txt")
check "Enter takes the setting of the drafter at the cursor" grep -q "policy ${second:-none} " "$WORK/run/taken.txt"

policy_in() { sed -n '1s/.* policy \([a-z+]*\) .*/\1/p' "$WORK/run/$1"; }
check "one undo takes the whole setting back" test "$(policy_in undone.txt)" = "$(policy_in begins.txt)"
check "while texts are scored the key bar offers no key that is refused" \
    sh -c "! tail -n 1 '$WORK/run/begins.txt' | grep -Eq 'Space|Enter|baseline|policy|prompt'"

printf '%s\n' ':wait round 3' ":score $TEXTS" ':set temperature 1' >"$WORK/refused.script"
terminal 160x48 "$PROGRAM -n 12 --script $WORK/refused.script"
check "a knob is refused while texts are scored" refused
check "the refusal says how to stop scoring" grep -q 'the run is paused while texts are scored; Esc stops scoring' "$WORK/run/err"

printf '%s\n' ':wait round 3' ":score $TEXTS" ':key Escape' ':wait idle' ':resume' ':wait end' ':quit' >"$WORK/stop.script"
terminal 120x36 "$PROGRAM -n 12 --script $WORK/stop.script"
check "Esc stops scoring, and the run goes on" exits 0

"$PROGRAM" score --texts "$TEXTS" --json "$WORK/report.json" >/dev/null 2>&1
printf '%s\n' ':goto 3' ':wait idle' ":score $WORK/report.json" ':save-screen report.txt' ":score $TEXTS" >"$WORK/replay.script"
terminal 120x36 "$PROGRAM replay --script $WORK/replay.script $ROOT/tests/screens/traces/specbound"
check "a replay refuses texts" exits 2
check "a replay shows a report" grep -q ' score ━.* 4 conversations' "$WORK/run/report.txt"
exit $STATUS
