#!/bin/sh
# Bad input of every kind gives one line on stderr with the place, the reason and a remedy, and exit status 1 or 2.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

fits() { # the output has at most 50 lines of 100 columns
    awk '{ gsub(/[\200-\277]/, "") } length > 100 { bad = 1 } END { exit bad || NR > 50 }' "$TMP/out"
}
for command in run bench tune replay diff info models doctor tokenize train 'train heads' 'train accept' 'train profile' plot completions
do
    works "$command --help explains" $command --help
    check "$command --help goes to stdout" grep -q '^usage: specscope ' "$TMP/out"
    check "$command --help fits 100 columns and 50 lines" fits
    refuses "$command refuses an unknown option" 2 'bogus' $command --bogus
done
works "--help explains the scope" --help
check "--help fits 100 columns and 50 lines" fits
check "--help lists options below headings" grep -q " --once " "$TMP/out"
for command in scope run bench tune; do
    words=$(echo $command | grep -v scope)
    options=$(printf '%s\n' specscope $words -- | "$PROGRAM" completions words | sed -n 's/^\(--[a-z-]*\)\t.*/\1/p')
    "$PROGRAM" $words --help >"$TMP/out"
    missing=$(for option in $options; do grep -q -e "$option " "$TMP/out" || echo " $option"; done)
    check "the help of $command lists all its options" [ -n "$options" -a -z "$missing" ]
done
for command in "" run bench tune; do "$PROGRAM" $command --help; done >"$TMP/out"
names=$(sed -n '/^} sections\[\]/,/^};/s/.*"\([a-z -]*\)"},*$/\1/p' cli/options/option_help.c)
missing=$(for name in $names; do grep -q -e "--$name " "$TMP/out" || echo " $name"; done)
check "every option under a heading of the help exists:$missing" [ "$(echo $names | wc -w)" -gt 50 -a -z "$missing" ]
refuses "a beginning that several options have" 2 'option --pro may be one of --prompt, --prompts, .*--probe' run --pro 1
works "the beginning of a single option is that option" run --tok 1 -p a "$TINY"
refuses "a switch with a value" 2 'option --exact takes no value' run --exact=1
refuses "the beginning of a switch takes no value" 2 'option --exact takes no value' run --exa=1
refuses "a command that there isn't" 2 "'rnu' is neither a command nor a model that is here; did you mean run." rnu
refuses "a mistyped option" 2 'option --polcy is not known; did you mean --policy.' run --polcy ar
refuses "an option that is like none" 2 'option --xyzzy is not known; see --help' run --xyzzy
refuses "a mistyped policy" 2 'policy specbond is not known; did you mean specbound.' run --policy specbond
refuses "a policy that is like none" 2 'policy foo is not known; there are ar, layerskip, .*, mtp; --list-policies describes them$' run --policy foo
works "--list-policies lists policies" run --list-policies
check "--list-policies prints the values that a choice accepts" grep -q '^    tree  *paper .* (off, paper, code)$' "$TMP/out"
refuses "run, which ends with its text, knows no --once" 2 "--once" run --once
works "--version prints the version" --version
check "--version prints nothing else" [ "$(wc -l <"$TMP/out")" -eq 1 ]
works "--list-policies lists names and knobs" --list-policies
check "--list-policies prints the knobs' defaults" grep -Eq '^ +tau +0\.55 ' "$TMP/out"
refuses "the scope without a terminal points to run" 2 "\`$PROGRAM run\`"
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
refuses "two measurements at once" 2 'give one of them' bench --speed --steps
refuses "steps of a policy" 2 '--policy beside --steps' bench --steps --policy sd "$TINY"
refuses "steps and how often" 2 '--repeat beside --steps' bench --steps --repeat 2 "$TINY"
refuses "speed on a grid" 2 '--grid beside --speed' bench --grid tau=0.3:0.5:0.1 --speed "$TINY"
refuses "speed of a prompt" 2 '--prompt beside --speed' bench --speed -p hello "$TINY"
refuses "two prompts, of which one would be passed over" 2 '--file beside --prompt' run -p a -f README.md "$TINY"
refuses "a prompt together with a list" 2 '--prompts beside --prompt' run -p a --prompts "$TMP/none" "$TINY"
refuses "a prompt together with a batch's list" 2 'leave the other prompt out' run --batch "$TMP/none" -p a "$TINY"
refuses "ids with an option for text" 2 '--pieces beside --decode' tokenize --decode --pieces "$TINY"
refuses "prompts from two places" 2 '--prompts beside --text' train profile --text a --prompts b
works "train heads --help is train's" train heads --help
refuses "a replay without a folder is refused" 2 'specscope replay FOLDER' replay

refuses "an option without its value" 2 '-n' run -n
refuses "letters for a number" 2 '--tokens seven' run -n seven
refuses "a negative number" 2 '--tokens -3' run -n -3
refuses "a number too large" 2 '--ctx' run -c 99999999999999999999
refuses "a fraction of a token" 2 '1.5' run -n 1.5
refuses "a temperature that is none" 2 '--temp nan' run --temp nan
refuses "a negative temperature" 2 '--temp -1' run --temp -1
refuses "top-p of zero" 2 '--top-p' run --top-p 0
refuses "an unknown policy" 2 'list-policies' run --policy magic
refuses "an unknown knob" 2 "no knob 'magic'" run --set magic=1 "$TINY"
refuses "a knob's value out of bounds" 2 'tau = 7' run --set tau=7 "$TINY"
refuses "a knob's value that is no number" 2 'tau = high' run --set tau=high "$TINY"
refuses "a setting without a value" 2 'KNOB=VALUE' run --set tau
refuses "an empty setting" 2 'KNOB=VALUE' run --set =
refuses "an unknown probe mode" 2 'off, policy and all' run --probe some
refuses "an unknown backend" 2 'abacus' run --backend abacus "$TINY"
refuses "an unknown instruction set" 2 'mmx' run --isa mmx "$TINY"
refuses "two models" 2 'one model' run "$TINY" "$TINY"
refuses "a prompt longer than the context" 2 'shorten it or raise --ctx' run -c 3 -p 'one two three four five' "$TINY"
refuses "a prompt as long as the context" 2 'shorten it' run -c 1 -p '' "$TINY"
refuses "control bytes in a refused value are escaped" 2 'not known' run --policy "$(printf 'a\033[2J\nb')"
refuses "C1 control characters in a refused value are escaped" 2 'not known' run --policy "$(printf 'a\302\2332J')"
check "C1 control characters are shown as bytes" sh -c "! grep -q \"\$(printf '\\302\\233')\" '$TMP/err'"
printf 'a\000b' >"$TMP/nul"
refuses "a prompt file with NUL bytes" 2 'NUL' run -f "$TMP/nul" "$TINY"
refuses "a prompt file that is not there" 1 'No such file' run -f "$TMP/none" "$TINY"
refuses "a folder as prompt file" 1 'directory' run -f "$TMP" "$TINY"
echo 'not json' >"$TMP/bad.jsonl"
refuses "a prompts file that is no JSON" 2 'bad.jsonl:1' run --prompts "$TMP/bad.jsonl" "$TINY"
printf '{"turns": ["a"]}\n{"turns": []}\n' >"$TMP/bad.jsonl"
refuses "a line without turns is named" 2 'bad.jsonl:2' run --prompts "$TMP/bad.jsonl" "$TINY"
: >"$TMP/empty.jsonl"
refuses "an empty prompts file" 2 'no prompts' run --prompts "$TMP/empty.jsonl" "$TINY"
printf '{"turns": ["a"]}\n{"turns": ["b"]}\n' >"$TMP/two.jsonl"
refuses "a trace of several prompts" 2 'single prompt' run --prompts "$TMP/two.jsonl" --trace "$TMP/t" "$TINY"
specscope bench -n 2 --repeat 1 --policy ar --json "$TMP/no/x" -p a "$TINY"
check "results into a folder that is not there fail the work" [ "$status" -eq 1 ]
check "the folder that is not there is named" grep -q '^specscope: .*/no/x: cannot be created: No such file' "$TMP/err"
check "a folder that is not there fails the work before a result" [ ! -s "$TMP/out" ]
refuses "CSV into a folder that is not there fails the work" 1 'cannot be created: No such file' bench -n 2 --csv "$TMP/no/x" -p a "$TINY"
refuses "JSON in place of a folder fails the work" 1 "$TMP: cannot be written: Is a directory" run -n 2 --json "$TMP" -p a "$TINY"
echo '{"specscope": "kept"}' >"$TMP/results"
refuses "results stay if the work cannot begin" 1 'No such file' run --json "$TMP/results" "$TMP/none.gguf"
check "results that stay are unchanged" grep -q kept "$TMP/results"

refuses "a model that is not there" 1 'No such file' run "$TMP/none.gguf"
refuses "a folder as model" 1 "$TMP" run "$TMP"
: >"$TMP/empty.gguf"
refuses "an empty model file" 1 'empty.gguf' run "$TMP/empty.gguf"
printf 'just some text, longer than a header would be\n' >"$TMP/text.gguf"
refuses "a text file as model" 1 'GGUF' run "$TMP/text.gguf"
size=$(wc -c <"$TINY")
for part in 3 11 20 300 5000 $((size / 2)) $((size - 1)); do
    head -c "$part" "$TINY" >"$TMP/cut.gguf"
    for command in run info tokenize; do
        if [ $command = tokenize ] && [ "$part" -gt 20000 ]; then continue; fi # it needs no weights
        refuses "$command refuses a model cut after $part bytes" 1 'cut.gguf' $command "$TMP/cut.gguf"
    done
done
"$BUILD/tests/tinymodel" "$TMP/arch.gguf" --arch mamba >/dev/null
refuses "an architecture that is not known" 1 'mamba' run "$TMP/arch.gguf"
"$BUILD/tests/tinymodel" "$TMP/one.gguf" --layers 1 >/dev/null
refuses "a model of one layer cannot exit early" 1 '2 layers' run "$TMP/one.gguf"
refuses "a replay without a terminal" 2 'terminal' replay "$TMP/none"
finish
