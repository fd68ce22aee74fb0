#!/bin/sh
# An output file replaces an empty file or one of its own kind, and no other file.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

TRACES=tests/screens/traces
cp -r $TRACES/del "$TMP/trace"
cp "$TINY" "$TMP/my.gguf"
echo 'my notes' >"$TMP/notes"
keeps() { # sentence, file, arguments
    sentence=$1 file=$2
    shift 2
    cp "$file" "$TMP/before"
    refuses "$sentence is refused" 2 "$file" "$@"
    check "$sentence leaves the file as it was" cmp "$file" "$TMP/before"
}
RUN='-n 2 -p a' BENCH='-n 2 -p a --repeat 1 --policy ar' HEADS="--text README.md --tokens 64 --window 16"

group "an option without its value"
keeps "run --json before a model" "$TMP/my.gguf" run $RUN --json "$TMP/my.gguf"
check "run --json without a file is refused by the option's name" grep -q -e '--json needs a value' "$TMP/err"
keeps "bench --json before a model" "$TMP/my.gguf" bench $BENCH --json "$TMP/my.gguf"
keeps "bench --csv before a model" "$TMP/my.gguf" bench $BENCH --csv "$TMP/my.gguf"
keeps "--trace before a model" "$TMP/my.gguf" run $RUN --trace "$TMP/my.gguf"
keeps "plot -o before a model" "$TMP/my.gguf" plot $TRACES/del layers -o "$TMP/my.gguf"
keeps "-p before a model" "$TMP/my.gguf" run -n 2 -p "$TMP/my.gguf"
refuses "--json before a model's folder is refused" 2 'needs a value' run $RUN --json tests/golden/models/llama
refuses "--json before the name of the bundled model is refused" 2 'needs a value' run $RUN --json bundled
works "--draft accepts a model" run $RUN --policy sd --draft "$TMP/my.gguf" "$TINY"

group "a file of another kind"
keeps "run --json=MODEL" "$TMP/my.gguf" run $RUN --json="$TMP/my.gguf"
keeps "run --json into a trace's table" "$TMP/trace/tokens.csv" run $RUN --json "$TMP/trace/tokens.csv" "$TINY"
keeps "run --json into a trace's JSON" "$TMP/trace/run.json" run $RUN --json "$TMP/trace/run.json" "$TINY"
keeps "bench --json into a text" "$TMP/notes" bench $BENCH --json "$TMP/notes" "$TINY"
keeps "bench --csv into a trace" "$TMP/trace/rounds.csv" bench $BENCH --csv "$TMP/trace/rounds.csv" "$TINY"
keeps "bench --speed --json into a text" "$TMP/notes" bench --speed --json "$TMP/notes" "$TINY"
keeps "diff --json into a trace" "$TMP/trace/run.json" diff $TRACES/del $TRACES/swift --json "$TMP/trace/run.json"
keeps "train heads into a text" "$TMP/notes" train heads $HEADS --model "$TINY" --out "$TMP/notes"
keeps "train accept into a text" "$TMP/notes" train accept --text README.md --model "$TINY" --draft self:1 --out "$TMP/notes"
keeps "train profile into a text" "$TMP/notes" train profile --text README.md --model "$TINY" --draft self:1 --companion self:2 --out "$TMP/notes"
keeps "train heads into a model" "$TMP/my.gguf" train heads $HEADS --model "$TINY" --out="$TMP/my.gguf"

group "before the work: two outputs in one place, and outputs that cannot be written"
ln -s both "$TMP/other_name"
for command in "run $RUN" "bench $BENCH" 'tune --time 1m'; do
    refuses "$command refuses one file for --json and --csv" 2 'both would be written there' $command --json "$TMP/both" --csv "$TMP/./both" "$TINY"
    refuses "$command refuses one file for --json and --csv by a link's name" 2 'both would be written there' $command --json "$TMP/both" --csv "$TMP/other_name" "$TINY"
    refuses "$command refuses --json - --csv -" 2 'both would be written there' $command --json - --csv - "$TINY"
done
PROFILE='--text README.md --draft self:1 --companion self:2'
for kind in heads accept profile; do
    case $kind in heads) args=$HEADS ;; accept) args='--text README.md --draft self:1' ;; *) args=$PROFILE ;; esac
    refuses "train $kind checks its --out before the model" 1 'nowhere/out: cannot be created' train $kind $args --model "$TMP/no-model" --out "$TMP/nowhere/out"
done
refuses "tune checks its --trace before the race" 1 'cannot be created: Not a directory' tune --time 1m --trace "$TMP/notes/trace" "$TINY"
refuses "tune checks its --save before the model" 2 'a/b' tune --time 1m --save a/b "$TMP/no-model"
echo config >"$TMP/file"
check "a configuration folder that cannot be made is named with the reason" sh -c "! XDG_CONFIG_HOME='$TMP/file/config' '$PROGRAM' tune --save x 2>'$TMP/err' && grep -q 'file/config: cannot be created: Not a directory' '$TMP/err'"

group "a disk that is full: the old file stays"
works "run --json writes results" run $RUN --json "$TMP/good.json" "$TINY"
works "run --csv writes a table" run $RUN --csv "$TMP/good.csv" "$TINY"
for output in json csv; do
    cp "$TMP/good.$output" "$TMP/before"
    (ulimit -f 0 && "$PROGRAM" run $RUN --$output "$TMP/good.$output" "$TINY") >/dev/null 2>"$TMP/err"
    check "--$output on a full disk is an error" test $? = 1
    check "--$output on a full disk leaves the old results" cmp "$TMP/good.$output" "$TMP/before"
    check "--$output on a full disk leaves nothing else" sh -c "! ls '$TMP' | grep -q part"
done
ln -s later "$TMP/link"
works "results are written through a link to a file that is not there yet" run $RUN --json "$TMP/link" "$TINY"
check "results that are written through a link leave the link" test -L "$TMP/link"
check "results that are written through a link are in its file" test -s "$TMP/later"
check "results to /dev/stdout replace the text there" sh -c "'$PROGRAM' run $RUN --json /dev/stdout '$TINY' >'$TMP/stdout.json' && head -c 1 '$TMP/stdout.json' | grep -q '{'"

group "a file of its own kind, an empty file, and a device"
: >"$TMP/empty"
works "run --json writes into an empty file" run $RUN --json "$TMP/empty" "$TINY"
works "bench --json replaces results of run" bench $BENCH --json "$TMP/empty" "$TINY"
works "diff --json replaces results of bench" diff $TRACES/del $TRACES/swift --json "$TMP/empty"
if [ -n "$HAVE_PYTHON" ]; then
    check "results name the version that made them" json_holds "$TMP/empty" 'list(j)[0] == "specscope" and j["specscope"] in open("CHANGELOG.md").read() + open("Makefile").read()'
    python3 -c 'import json, sys; json.dump(json.load(open(sys.argv[1])), open(sys.argv[2], "w"))' "$TMP/empty" "$TMP/compact"
    works "run --json replaces results without white space" run $RUN --json "$TMP/compact" "$TINY"
fi
works "bench --csv writes a table" bench $BENCH --csv "$TMP/csv" "$TINY"
works "bench --csv replaces a table of results" bench $BENCH --csv "$TMP/csv" "$TINY"
works "run --json writes to a device" run $RUN --json /dev/null "$TINY"
works "heads are trained" train heads $HEADS --model "$TINY" --out "$TMP/heads"
works "train heads replaces trained heads" train heads $HEADS --model "$TINY" --out "$TMP/heads"
keeps "train accept into trained heads" "$TMP/heads" train accept --text README.md --model "$TINY" --draft self:1 --out "$TMP/heads"
if "$PROGRAM" plot $TRACES/del exits -o "$TMP/figure.svg" >/dev/null 2>&1; then
    for ending in svg pdf png; do
        cp "$TMP/notes" "$TMP/kept.$ending"
        keeps "plot into a text called .$ending" "$TMP/kept.$ending" plot $TRACES/del exits -o "$TMP/kept.$ending"
        works "a figure is drawn as .$ending" plot $TRACES/del exits -o "$TMP/figure.$ending"
        works "a figure is replaced by another as .$ending" plot $TRACES/del exits -o "$TMP/figure.$ending"
    done
else
    skip "figures are replaced by figures alone" "this program draws none"
fi
finish
