#!/bin/sh
# Bad input of every kind gives one line on stderr with the place, the reason and a remedy, and exit status 1 or 2.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

fits() { # the output has at most 50 lines of 100 columns
    awk '{ gsub(/[\200-\277]/, "") } length > 100 { bad = 1 } END { exit bad || NR > 50 }' "$TMP/out"
}
for command in run bench tune score replay connect diff info models doctor tokenize train 'train heads' 'train eagle' 'train accept' 'train profile' plot completions
do
    works "$command --help works" $command --help
    check "$command --help goes to stdout" grep -q '^usage: specscope ' "$TMP/out"
    check "$command --help fits 100 columns and 50 lines" fits
    refuses "$command refuses an unknown option" 2 'bogus' $command --bogus
done
works "--help works" --help
check "--help fits 100 columns and 50 lines" fits
check "--help lists options below headings" grep -q " --once " "$TMP/out"
for command in scope run bench tune "train heads" "train eagle"; do
    words=$(echo $command | grep -v scope)
    options=$(printf '%s\n' specscope $words -- | "$PROGRAM" completions words | sed -n 's/^\(--[a-z-]*\)\t.*/\1/p')
    "$PROGRAM" $words --help >"$TMP/out"
    missing=$(for option in $options; do grep -q -e "$option " "$TMP/out" || echo " $option"; done)
    check "the help of $command lists all its options" [ -n "$options" -a -z "$missing" ]
done
for command in "" run bench tune "train heads" "train eagle"; do "$PROGRAM" $command --help; done >"$TMP/out"
names=$(sed -n '/^} sections\[\]/,/^};/s/.*"\([a-z -]*\)"},*$/\1/p' cli/options/option_help.c)
missing=$(for name in $names; do grep -q -e "--$name " "$TMP/out" || echo " $name"; done)
check "every option under a heading of the help exists:$missing" [ "$(echo $names | wc -w)" -gt 50 -a -z "$missing" ]
refuses "the beginning of several options is refused" 2 'option --pro may be one of --prompt, --prompts, .*--probe' run --pro 1
works "the beginning of a single option is accepted as that option" run --tok 1 -p a "$TINY"
refuses "a switch with a value is refused" 2 'option --exact takes no value' run --exact=1
refuses "the beginning of a switch with a value is refused" 2 'option --exact takes no value' run --exa=1
refuses "an unknown command is refused" 2 "'rnu' is neither a command nor a model that is here; did you mean run." rnu
refuses "a mistyped option is refused with the option that is meant" 2 'option --polcy is not known; did you mean --policy.' run --polcy ar
refuses "an option that resembles no other is refused" 2 'option --xyzzy is not known; see --help' run --xyzzy
refuses "a mistyped policy is refused with the policy that is meant" 2 'policy specbond is not known; did you mean specbound.' run --policy specbond
refuses "a policy that resembles no other is refused" 2 'policy foo is not known; there are ar, layerskip, .*, mtp; --list-policies describes them$' run --policy foo
works "--list-policies works" run --list-policies
check "--list-policies prints the values that a choice accepts" grep -q '^    tree  *paper .* (off, paper, code)$' "$TMP/out"
refuses "run --once is refused" 2 "--once" run --once
works "--version works" --version
check "--version prints nothing else" [ "$(wc -l <"$TMP/out")" -eq 1 ]
works "--list-policies prints names and knobs" --list-policies
check "--list-policies prints the knobs' defaults" grep -Eq '^ +tau +0\.55 ' "$TMP/out"
refuses "the scope without a terminal is refused, and names run" 2 "\`$PROGRAM run\`"
suggests() { # sentence, command in the message, program as it is called
    "$3" train >"$TMP/out" 2>"$TMP/err" </dev/null
    status=$?
    check "$1" refused_as 2
    check "$1: the command has the program's name" grep -qF "train what? $2 train heads" "$TMP/err"
}
mkdir "$TMP/my tools" "$TMP/mine's"
ln -s "$PROGRAM" "$TMP/my tools/specscope" && ln -s "$PROGRAM" "$TMP/mine's/specscope" && ln -s "$PROGRAM" "$TMP/other"
suggests "a message suggests a command with the path of the call" "$TMP/other" "$TMP/other"
suggests "a path with a blank is quoted" "'$TMP/my tools/specscope'" "$TMP/my tools/specscope"
suggests "a message names specscope alone if the path has a quote" specscope "$TMP/mine's/specscope"
ln -s "$PROGRAM" "$TMP/found"
env PATH="$TMP:$PATH" found train >"$TMP/out" 2>"$TMP/err" </dev/null
check "a program that was found by its name suggests specscope" grep -qF 'train what? specscope train heads' "$TMP/err"
refuses "bench with two measurements at once is refused" 2 'give one of them' bench --speed --steps
refuses "bench --steps of a policy is refused" 2 '--policy beside --steps' bench --steps --policy sd "$TINY"
refuses "bench --steps with --repeat is refused" 2 '--repeat beside --steps' bench --steps --repeat 2 "$TINY"
refuses "bench --speed with --grid is refused" 2 '--grid beside --speed' bench --grid tau=0.3:0.5:0.1 --speed "$TINY"
refuses "bench --speed with a prompt is refused" 2 '--prompt beside --speed' bench --speed -p hello "$TINY"
refuses "two different prompts are refused" 2 '--file beside --prompt' run -p a -f README.md "$TINY"
refuses "a prompt together with a list of prompts is refused" 2 '--prompts beside --prompt' run -p a --prompts "$TMP/none" "$TINY"
refuses "a prompt together with a batch's list is refused" 2 'leave the other prompt out' run --batch "$TMP/none" -p a "$TINY"
refuses "tokenize --decode with an option for text is refused" 2 '--pieces beside --decode' tokenize --decode --pieces "$TINY"
refuses "prompts from two files are refused" 2 '--prompts beside --text' train profile --text a --prompts b
works "train heads --help works" train heads --help
refuses "a replay without a folder is refused" 2 'specscope replay FOLDER' replay

refuses "an option without its value is refused" 2 '-n' run -n
refuses "letters for a number are refused" 2 '--tokens seven' run -n seven
refuses "a negative number of tokens is refused" 2 '--tokens -3' run -n -3
refuses "a number that is too large is refused" 2 '--ctx' run -c 99999999999999999999
refuses "a fraction of a token is refused" 2 '1.5' run -n 1.5
refuses "a temperature that is no number is refused" 2 '--temp nan' run --temp nan
refuses "a negative temperature is refused" 2 '--temp -1' run --temp -1
refuses "a top-p of zero is refused" 2 '--top-p' run --top-p 0
refuses "an unknown policy is refused" 2 'list-policies' run --policy magic
refuses "an unknown knob is refused" 2 "no knob 'magic'" run --set magic=1 "$TINY"
refuses "a knob's value out of bounds is refused" 2 'tau = 7' run --set tau=7 "$TINY"
refuses "a knob's value that is no number is refused" 2 'tau = high' run --set tau=high "$TINY"
refuses "--set without a value is refused" 2 'KNOB=VALUE' run --set tau
refuses "an empty --set is refused" 2 'KNOB=VALUE' run --set =
refuses "an unknown probe mode is refused" 2 'off, policy, N% and all' run --probe some
refuses "an unknown backend is refused" 2 'abacus' run --backend abacus "$TINY"
refuses "an unknown instruction set is refused" 2 'mmx' run --isa mmx "$TINY"
refuses "two models are refused" 2 'one model' run "$TINY" "$TINY"
refuses "a prompt longer than the context is refused" 2 'shorten it or raise --ctx' run -c 3 -p 'one two three four five' "$TINY"
refuses "a prompt as long as the context is refused" 2 'shorten it' run -c 1 -p '' "$TINY"
refuses "a value with control bytes is refused with the bytes escaped" 2 'not known' run --policy "$(printf 'a\033[2J\nb')"
refuses "a value with C1 control characters is refused with the characters escaped" 2 'not known' run --policy "$(printf 'a\302\2332J')"
check "the refusal of C1 control characters shows them as bytes" sh -c "! grep -q \"\$(printf '\\302\\233')\" '$TMP/err'"
printf 'a\000b' >"$TMP/nul"
refuses "a prompt file with NUL bytes is refused" 2 'NUL' run -f "$TMP/nul" "$TINY"
refuses "a prompt file that is not there is refused" 1 'No such file' run -f "$TMP/none" "$TINY"
refuses "a folder as prompt file is refused" 1 'directory' run -f "$TMP" "$TINY"
echo 'not json' >"$TMP/bad.jsonl"
refuses "a prompts file that is no JSON is refused" 2 'bad.jsonl:1' run --prompts "$TMP/bad.jsonl" "$TINY"
printf '{"turns": ["a"]}\n{"turns": []}\n' >"$TMP/bad.jsonl"
refuses "a prompts file with a line without turns is refused" 2 'bad.jsonl:2' run --prompts "$TMP/bad.jsonl" "$TINY"
: >"$TMP/empty.jsonl"
refuses "an empty prompts file is refused" 2 'no prompts' run --prompts "$TMP/empty.jsonl" "$TINY"
printf '{"turns": ["a"]}\n{"turns": ["b"]}\n' >"$TMP/two.jsonl"
refuses "a trace of several prompts is refused" 2 'single prompt' run --prompts "$TMP/two.jsonl" --trace "$TMP/t" "$TINY"
specscope bench -n 2 --repeat 1 --policy ar --json "$TMP/no/x" -p a "$TINY"
check "bench --json into a folder that is not there exits with status 1" [ "$status" -eq 1 ]
check "bench --json names the folder that is not there" grep -q '^specscope: .*/no/x: cannot be created: No such file' "$TMP/err"
check "bench --json into a folder that is not there prints no result" [ ! -s "$TMP/out" ]
refuses "bench --csv into a folder that is not there is refused" 1 'cannot be created: No such file' bench -n 2 --csv "$TMP/no/x" -p a "$TINY"
refuses "run --json in place of a folder is refused" 1 "$TMP: cannot be written: Is a directory" run -n 2 --json "$TMP" -p a "$TINY"
echo '{"specscope": "kept"}' >"$TMP/results"
refuses "run of a model that is not there with --json is refused" 1 'No such file' run --json "$TMP/results" "$TMP/none.gguf"
check "a run that cannot begin leaves old results unchanged" grep -q kept "$TMP/results"

refuses "a model that is not there is refused" 1 'No such file' run "$TMP/none.gguf"
refuses "a folder without a model is refused" 1 "$TMP" run "$TMP"
: >"$TMP/empty.gguf"
refuses "an empty model file is refused" 1 'empty.gguf' run "$TMP/empty.gguf"
printf 'just some text, longer than a header would be\n' >"$TMP/text.gguf"
refuses "a text file as model is refused" 1 'GGUF' run "$TMP/text.gguf"
size=$(wc -c <"$TINY")
for part in 3 11 20 300 5000 $((size / 2)) $((size - 1)); do
    head -c "$part" "$TINY" >"$TMP/cut.gguf"
    for command in run info tokenize; do
        if [ $command = tokenize ] && [ "$part" -gt 20000 ]; then continue; fi # it needs no weights
        refuses "$command refuses a model cut after $part bytes" 1 'cut.gguf' $command "$TMP/cut.gguf"
    done
done
"$BUILD/tests/tinymodel" "$TMP/arch.gguf" --arch mamba >/dev/null
refuses "an unknown architecture is refused" 1 'mamba' run "$TMP/arch.gguf"
"$BUILD/tests/tinymodel" "$TMP/one.gguf" --layers 1 >/dev/null
refuses "an early exit of a model of one layer is refused" 1 '2 layers' run "$TMP/one.gguf"
refuses "a replay without a terminal is refused" 2 'terminal' replay "$TMP/none"
finish
