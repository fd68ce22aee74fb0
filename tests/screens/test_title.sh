#!/bin/sh
# The title of a trace from a GPU: the device's name appears if there is room, is never cut within a word, and leaves
# room for the state and the policy in a narrow terminal.
BUILD=${BUILD:-build}
. tests/screens/lib.sh

cp -r tests/screens/traces/del "$WORK/gpu"
sed -e 's/"backend":[^,]*,/"backend": "cuda",/' \
    -e 's/"isa":[^,]*,/"isa": "NVIDIA RTX 6000 Ada Generation, Q5_K held as F16",/' \
    tests/screens/traces/del/run.json >"$WORK/gpu/run.json"
printf ':wait idle\n:save-screen screen.txt\n:quit\n' >"$WORK/title.script"

title_at() { # WxH: the first line of the screen
    terminal "$1" "$PROGRAM replay --script $WORK/title.script $WORK/gpu"
    ended
    head -n 1 "$WORK/run/screen.txt"
}

title_at 200x60 >"$WORK/wide"
check "a wide title names the GPU" grep -q 'NVIDIA RTX 6000 Ada Generation' "$WORK/wide"
check "a wide title does not tell how the GPU holds the model" sh -c "! grep -q 'held as' '$WORK/wide'"
for size in 120x36 100x30 80x24; do
    title_at $size >"$WORK/title"
    check "the title at $size has the policy and the state" grep -q 'policy del.*replay' "$WORK/title"
    check "a title of $size names the GPU whole or not at all" sh -c \
        "! grep -q NVIDIA '$WORK/title' || grep -q 'Ada Generation' '$WORK/title'"
done

group "the draft model's name, while the policy drafts with it"
printf ':wait round 2\n:save-screen without.txt\n:policy sd\n:step\n:wait idle\n:save-screen with.txt\n:policy layerskip\n:step\n:wait idle\n:save-screen again.txt\n:quit\n' >"$WORK/draft.script"
terminal 160x48 "$PROGRAM --trace trace --script $WORK/draft.script"
check "a script that goes from policy to policy ends well" exits 0
check "the title names the draft model under a policy that drafts with it" grep -q 'fables-14m + fables-draft-1m' "$WORK/run/with.txt"
check "the title names no draft model under a policy that does not draft with it" sh -c "! grep -q 'fables-14m +' '$WORK/run/without.txt' '$WORK/run/again.txt'"
check "the trace contains the policies that need the draft model" grep -q '"needs":.*\["draft"\]' "$WORK/run/trace/run.json"

group "whether speculation gains on the text"
printf ':wait end\n:wait idle\n:save-screen screen.txt\n:quit\n' >"$WORK/gain.script"
gain() { # size, line of the bundled prompts: the title at the text's end
    sed -n "$2p" models/prompts.jsonl >"$WORK/one.jsonl"
    terminal "$1" "$PROGRAM --script $WORK/gain.script -n 128 --prompts $WORK/one.jsonl"
    ended
    head -n 1 "$WORK/run/screen.txt" >"$WORK/title"
}
for prompt in 1 2 3; do
    gain 120x36 $prompt
    check "the title shows a gain on bundled prompt $prompt" grep -q '× fewer weights read' "$WORK/title"
done
gain 120x36 4
check "the title shows no gain on bundled prompt 4" grep -Eq '(no|no clear|small) gain' "$WORK/title"

group "why there is no gain"
printf ':wait end\n:wait idle\n:wait what-if\n:save-screen screen.txt\n:help gain\n:save-screen help.txt\n:quit\n' >"$WORK/why.script"
for size in 160x48 120x36 80x24; do
    terminal $size "$PROGRAM --probe all --policy layerskip --set exit_layer=1 --set gamma=20 --script $WORK/why.script -n 100 --ignore-eos -p hello"
    ended
    check "the screen at $size gives the reason, and what to do next" \
        grep -Eq 'no gain: .*(needed|of a round|layers here).*next: ' "$WORK/run/screen.txt"
    check "the title at $size names the reason" sh -c "head -n 1 '$WORK/run/screen.txt' | grep -Eq 'no gain: (wrong|costly) drafts'"
    check "the help at $size explains the reason" grep -q 'rows with "gain"' "$WORK/run/help.txt"
done
gain 40x10 1
check "the narrowest title has tokens/s and the policy" grep -q 'specbound.*[0-9] tok/s' "$WORK/title"
exit $STATUS
