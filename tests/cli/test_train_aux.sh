#!/bin/sh
# specscope train accept and train profile: usage, short trainings, interruption.
. tests/cli/checks.sh
text=$TMP/text
head_file=$TMP/accept.safetensors
profile=$TMP/profile.json
cat docs/methods.md docs/forecasts.md | head -c 20000 >"$text"
"$BUILD/tests/tinymodel" "$TMP/draft.gguf" --layers 2 --calm-after 1 --calm 0.1 >/dev/null || exit 1
"$BUILD/tests/tinymodel" "$TMP/other.gguf" --layers 2 --nasty >/dev/null || exit 1

refuses "train accept without a draft model is refused" 2 "--draft MODEL is missing" train accept --model "$TINY" --text "$text" --out "$head_file"
refuses "train accept with blocks that are no number is refused" 2 "--blocks 1,x" train accept --blocks 1,x
refuses "more than 8 blocks are refused" 2 "from 0 to 8" train accept --blocks 9
refuses "train profile without a companion is refused" 2 "--companion MODEL is missing" train profile --model "$TINY" --draft "$TMP/draft.gguf" --text "$text" --out "$profile"
refuses "train profile with an option of heads is refused" 2 "not known" train profile --kind affine
refuses "train accept with a draft model of another vocabulary is refused" 2 "token 259 " \
    train accept --model "$TINY" --draft "$TMP/other.gguf" --text "$text" --out "$head_file"
refuses "train accept with a text that is too short is refused" 1 "more text" \
    train accept --model "$TINY" --draft "$TMP/draft.gguf" --text README.md --prompt-tokens 60000 --out "$head_file" --response 4
check "a refused training writes nothing" [ ! -e "$head_file" ]

train_accept() {
    specscope train accept --model "$TINY" --draft "$TMP/draft.gguf" --text "$text" --tokens 600 --response 16 --prompt-tokens 12 "$@"
}
train_accept --out "$head_file" --blocks 0,2 --passes 2
check "a short training ends well" [ "$status" -eq 0 ]
check "a short training reports each number of blocks" [ "$(grep -cE '^ +[02]  ' "$TMP/out")" -eq 2 ]
check "the head's file names both models" grep -aq '"draft_hash".*"target_hash"' "$head_file"
check "the head's file holds a linear layer" grep -aq '"model\.[02]\.weight"' "$head_file"
cp "$head_file" "$TMP/first"
train_accept --out "$head_file" --blocks 0,2 --passes 2
check "the same training writes the same file" cmp "$head_file" "$TMP/first"
train_accept --out "$head_file" --blocks 0,2 --passes 2 --at-once 1
check "one answer at a time writes the same head" cmp "$head_file" "$TMP/first"
train_accept --out "$TMP/nowhere/h"
check "train accept into a folder that is not there exits with status 1" [ "$status" -eq 1 ]
train_accept --out "$head_file" --temp 0
check "train accept works with greedy labels" [ "$status" -eq 0 ]

train_accept --out "$TMP/many" --blocks 0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0 --passes 1
check "train accept accepts the same number of blocks many times" [ "$status" -eq 0 ]
check "train accept reports the same number of blocks each time" [ "$(grep -cE '^ +0  ' "$TMP/out")" -eq 32 ]

rm -f "$head_file"
"$PROGRAM" train accept --model "$TINY" --draft "$TMP/draft.gguf" --text "$text" --out "$head_file" --tokens 600 --response 16 \
    --prompt-tokens 12 --passes 10000 --rate 0.00001 >"$TMP/out" 2>"$TMP/err" &
pid=$!
wait_until test -s "$head_file"
kill -TERM $pid
wait $pid
check "a training of a head that a signal stops exits with that signal's status" [ $? -eq 143 ]
check "an interrupted training leaves a whole head" grep -aq '"draft_hash"' "$head_file"
check "an interrupted training reports that it keeps a head" grep -q 'interrupted; the best head so far is in the file$' "$TMP/err"
check "an interrupted training of a head writes no other file" [ "$(echo "$head_file"*)" = "$head_file" ]

train_profile() {
    specscope train profile --model "$TINY" --draft "$TMP/draft.gguf" --companion "$TINY" --tokens 600 --response 16 --prompt-tokens 12 "$@"
}
train_profile --text "$text" --out "$profile"
check "train profile writes a profile" [ "$status" -eq 0 ]
check "train profile prints the remaining uncertainty" grep -q 'information gain' "$TMP/out"
check "a profile is JSON that names its models" python3 -c "
import json, sys
p = json.load(open('$profile'))
assert p['format'] == 'specscope verification profile 1' and all(p[m]['hash'] for m in ('target', 'draft', 'companion'))
assert len(p['count']) == len(p['s_edges']) + 1 and all(len(row) == len(p['a_edges']) + 1 for row in p['count'])
assert sum(map(sum, p['count'])) > 100"
cp "$profile" "$TMP/first"
train_profile --text "$text" --out "$profile"
check "the same training writes the same profile" cmp "$profile" "$TMP/first"
train_profile --text "$text" --out "$profile" --at-once 3
check "fewer answers at once write the same profile" cmp "$profile" "$TMP/first"
train_profile --text "$text" --out "$profile" --temp 0.7 --top-k 20 --top-p 0.9
check "train profile works with filtered distributions" [ "$status" -eq 0 ]
check "train profile reports filtered distributions" json_holds "$profile" "j['sampling']['top_k'] == 20 and abs(j['sampling']['top_p'] - 0.9) < 1e-6"
sv() {
    specscope run --policy sv --draft "$TMP/draft.gguf" --companion "$TINY" --profile "$profile" -n 8 -p a "$@" "$TINY"
}
sv --temp 0.7 --top-k 20 --top-p 0.9
check "sv prints no note about a profile of the same filtered distributions" sh -c "[ $status -eq 0 ] && ! grep -q 'the profile is of' '$TMP/err'"
sv --temp 0.7 --top-k 20
check "sv notes that its sampling is not the profile's" grep -q 'the profile is of temperature 0.7, top-k 20, top-p 0.9' "$TMP/err"
train_accept --out "$TMP/filtered" --top-k 5 --top-p 0.8
check "train accept works with filtered text" [ "$status" -eq 0 ]
refuses "a place that is no regular file is refused at once" 1 "not a regular file" train profile --text "$text" --out /dev/null
printf '{"turns": ["Three mice sat on a wall."]}\n{"turns": ["A baker"]}\n' >"$TMP/prompts.jsonl"
train_profile --prompts "$TMP/prompts.jsonl" --out "$profile"
check "train accept takes prompts from the lines of a file" [ "$status" -eq 0 ]
if command -v script >/dev/null 2>&1; then # the bar on a terminal shows how far collecting is
    interrupt_in_terminal() { # pattern on the screen, arguments: leaves the exit status in $status
        pattern=$1
        shift
        : >"$TMP/screen"
        in_terminal "echo \$\$ >'$TMP/pid'; exec '$PROGRAM' $*" &
        wait_until grep -q "$pattern" "$TMP/screen"
        kill -INT "$(cat "$TMP/pid")"
        wait $!
        status=$?
    }
    interrupt_in_terminal 'responses .* candidates' train accept --model "$TINY" --draft "$TMP/draft.gguf" --text "$text" \
        --out "$TMP/part.head" --tokens 1000000000 --response 16 --prompt-tokens 12
    check "an interruption while candidates are collected ends train accept with status 130" [ "$status" -eq 130 ]
    check "an interruption while candidates are collected is reported" grep -q 'interrupted before training began' "$TMP/screen"
    check "an interruption while candidates are collected leaves no head" [ ! -e "$TMP/part.head" ]
    interrupt_in_terminal 'decoding .* drafts judged' train profile --model "$TINY" --draft "$TMP/draft.gguf" --companion "$TINY" \
        --text "$text" --out "$TMP/part.json" --tokens 1000000000 --response 16 --prompt-tokens 12
    check "an interrupted profile ends with status 130" [ "$status" -eq 130 ]
    check "an interrupted profile reports what it keeps" grep -q 'interrupted; the file has the profile of what was seen' "$TMP/screen"
    check "an interrupted profile has the drafts until then" json_holds "$TMP/part.json" "sum(map(sum, j['count'])) > 0"
    check "an interrupted profile leaves no other file" [ "$(echo "$TMP"/part.json*)" = "$TMP/part.json" ]
else
    skip "an interruption while candidates are collected ends train accept with status 130" "no script(1)"
fi
finish
