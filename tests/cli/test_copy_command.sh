#!/bin/sh
# A run as a command line: the command that :copy-command gives repeats the run, however the first one was started.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

if ! command -v script >/dev/null 2>&1; then
    skip "a copied command begins the same run" "there is no script(1)"
    finish
fi
printf ':goto 9999\n:wait idle\n:copy-command\n:quit\n' >"$TMP/copy.script"
aux_of_tiny
CHAT=$TMP/chat.gguf
"$BUILD/tests/tinymodel" "$CHAT" --chat-template "{% for m in messages %}<|im_start|>{{ m.role }}{% endfor %}" >/dev/null
printf '{"turns": ["a b c"]}\n{"turns": ["It'\''s d"]}\n{"turns": ["e f"]}\n' >"$TMP/a list.jsonl"
mkdir "$TMP/state of it"

# Prints run.json without its date, and the results of the rounds without times.
told() { # trace folder: all but times, and numbers of events, as the events of progress depend on time
    grep -v '"started"\|"closed_event"' "$1/run.json"
    cut -d , -f 3-7,9-13 "$1/tokens.csv"
}

runs=0
same() { # what it is, arguments
    what=$1
    shift
    runs=$((runs + 1))
    works "$what works" run "$@" --trace "$TMP/first$runs"
    rm -f "$XDG_STATE_HOME/specscope/command"
    in_terminal "'$PROGRAM' replay --script '$TMP/copy.script' '$TMP/first$runs'"
    sed "s#^$PROGRAM run#'$PROGRAM' run --trace '$TMP/second$runs'#" "$XDG_STATE_HOME/specscope/command" >"$TMP/command"
    sh "$TMP/command" >"$TMP/out" 2>"$TMP/err" </dev/null
    check "the copied command of $what works" [ $? -eq 0 ]
    told "$TMP/first$runs" >"$TMP/a"
    told "$TMP/second$runs" >"$TMP/b"
    check "the copied command of $what repeats the run" sh -c "test -s '$TMP/a' && diff '$TMP/a' '$TMP/b'"
}

same "a plain run" -n 12 -p hello "$TINY"
same "a chat" --system "Be
kind, it's \"me\"" -p hello -n 8 --backend cpu "$CHAT"
same "a sampled run" --temp 0.7 --top-k 40 --top-p 0.95 --seed 18446744073709551615 -n 12 --policy layerskip --set gamma=3 "$TINY"
same "a run on other kernels" --isa reference -t 1 --exact --ignore-eos -c 160 -n 12 "$TINY"
same "a run with quantised weights" --quantize q8_0 --heads none --head lens -n 12 "$TINY"
cp -r tests/golden/lora/llama-half "$TMP/an adapter"
far=tests/golden/lora/../lora/../lora/../lora/../lora/../lora/../lora/llama-half:0.01
adapters=$(i=0; while [ $i -lt 32 ]; do echo "--lora $far"; i=$((i + 1)); done)
# shellcheck disable=SC2086 # words
refuses "more adapters than a trace can name are refused" 2 "names of 32 adapters, 2623 bytes in all, are more than the 2047" \
    run -n 1 $adapters tests/golden/models/llama
same "a run with adapters" --lora "$TMP/an adapter:0.5" --lora tests/golden/lora/llama.gguf -n 12 tests/golden/models/llama
same "a run with auxiliary models" $AUX --policy sv -n 12 "$TINY"
same "a run with an acceptance head" $AUX --policy specdecpp --set h=0.9 --seed 7 -n 12 "$TINY"
same "a batch of a list" --batch 2 --prompts "$TMP/a list.jsonl" -n 6 --policy sd --draft self:1 "$TINY"
same "a batch of one prompt" --batch 3 -p "a b" -n 6 --temp 1 "$TINY"
same "a batch of one sequence" --batch 1 -p "a b" -n 6 "$TINY"
same "a run of synthetic weights" --synth tiny,2,0.75 -n 8
finish
