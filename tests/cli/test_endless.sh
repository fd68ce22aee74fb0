#!/bin/sh
# Endless files: pipes without a writer, devices, sockets, folders. Each is refused in one line before it is read.
# Prompts from standard input or from <(…) are accepted.
. tests/cli/checks.sh
STRANGE=$TMP/strange
mkdir "$STRANGE"
mkfifo "$STRANGE/pipe"
ln -s /dev/zero "$STRANGE/device"
mkdir "$STRANGE/folder"
[ -n "$HAVE_PYTHON" ] && (cd "$STRANGE" && python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")')
KINDS=$(cd "$STRANGE" && echo *)

refused_each() { # place, arguments: it is refused in a line that names the place, whatever stands there
    place=$1
    shift
    for kind in $KINDS; do
        rm -rf "$place"
        ln -s "$STRANGE/$kind" "$place"
        timeout 120 "$PROGRAM" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
        status=$?
        { [ $status -eq 1 ] || [ $status -eq 2 ]; } && [ "$(grep -c '^specscope: ' "$TMP/err")" -eq 1 ] &&
            tail -n 1 "$TMP/err" | grep -q -F "${place##*/}" ||
            { echo "a $kind in the place of $place: status $status"; cat "$TMP/err"; return 1; }
    done
}
in_place() { # what is meant, place, arguments
    what=$1
    shift
    check "an endless file in place of $what is refused in a line" refused_each "$@"
}

at=$TMP/at
in_place "a model" "$at" run "$at"
in_place "a model that is looked at" "$at" info "$at"
in_place "a vocabulary" "$at.json" tokenize "$at.json"
in_place "a prompt's file" "$at" run -f "$at" "$TINY"
in_place "a list of prompts" "$at" run --prompts "$at" "$TINY"
in_place "trained heads" "$at" run --heads "$at" "$TINY"
in_place "an acceptance head" "$at" run --policy specdecpp --draft self:1 --accept "$at" "$TINY"
in_place "a profile" "$at" run --policy sv --draft self:1 --companion self:2 --profile "$at" "$TINY"
in_place "a draft model" "$at" run --policy sd --draft "$at" "$TINY"
in_place "tools" "$at" run --chat --tools "$at" "$TINY"
in_place "a chat template" "$at.jinja" run --chat --chat-template "$at.jinja" "$TINY"
in_place "a text to train on" "$at" train heads --model "$TINY" --text "$at" --out "$TMP/heads"
in_place "a bench's results" "$at.csv" plot "$at.csv" grid -o "$TMP/x.svg"

group "files of folders"
mkdir "$TMP/model"
for file in config.json tokenizer.json model.safetensors; do
    rm -rf "$TMP/model"
    cp -rL tests/golden/models/llama3 "$TMP/model"
    in_place "a folder's $file" "$TMP/model/$file" run -n 1 "$TMP/model"
done
rm -f "$TMP/model/model.safetensors"
cp tests/golden/models/llama3/model.safetensors "$TMP/model/"
in_place "a folder's index" "$TMP/model/model.safetensors.index.json" info "$TMP/model"
rm -f "$TMP/model/model.safetensors.index.json" "$TMP/model/model.safetensors" # beside it the index would be stale
printf '{"weight_map": {"a": "part.safetensors"}}' >"$TMP/model/model.safetensors.index.json"
in_place "a shard" "$TMP/model/part.safetensors" info "$TMP/model"
for file in run.json tokens.csv rounds.csv layers.csv; do
    rm -rf "$TMP/trace"
    cp -r tests/screens/traces/sv "$TMP/trace"
    in_place "a trace's $file" "$TMP/trace/$file" plot "$TMP/trace" exits -o "$TMP/x.svg"
done

group "the user's own files"
mkdir -p "$XDG_CONFIG_HOME/specscope/presets" "$XDG_STATE_HOME/specscope"
in_place "a preset" "$XDG_CONFIG_HOME/specscope/presets/mine.json" run --preset mine "$TINY"
rm -rf "$XDG_CONFIG_HOME/specscope/presets"
in_place "the defaults" "$XDG_CONFIG_HOME/specscope/config.json" run "$TINY"
rm -rf "$XDG_CONFIG_HOME/specscope/config.json"
if command -v script >/dev/null 2>&1; then
    in_scope() { # status, place, what is said, options: in a terminal
        wanted=$1 place=$2 said=$3
        shift 3
        for kind in $KINDS; do
            rm -rf "$place"
            ln -s "$STRANGE/$kind" "$place"
            rm -f "$TMP/status" "$TMP/shot"
            in_terminal "timeout --foreground 300 '$PROGRAM' --once -n 2 $* '$TINY' 2>'$TMP/err'; echo \$? >'$TMP/status'"
            [ "$(cat "$TMP/status")" = "$wanted" ] && cat "$TMP/err" "$TMP/shot" 2>/dev/null | grep -q -e "$said" ||
                { cat "$TMP/status" "$TMP/err"; return 1; }
        done
    }
    printf ':messages\n:save-screen %s\n:prompt mice\n:quit\n' "$TMP/shot" >"$TMP/script"
    check "the scope reports a theme that never ends" in_scope 0 "$at.json" "at.json: \(is not a file\|cannot be read\)" --theme "$at.json" --script "$TMP/script"
    check "the scope refuses a script that never ends" in_scope 2 "$at" "at: \(is not a file\|cannot be read\)" --script "$at"
    check "the scope reports a history that never ends, and leaves it alone" in_scope 0 "$XDG_STATE_HOME/specscope/prompts" \
        "not added to the history" --script "$TMP/script"
fi

group "pipes that end"
echo "three mice" | "$PROGRAM" run -n 2 -f - "$TINY" >"$TMP/a" 2>"$TMP/err"
check "run -f - reads a prompt from standard input" [ $? -eq 0 ]
if command -v bash >/dev/null 2>&1; then
    bash -c "'$PROGRAM' run -n 2 -f <(sleep 0.1; echo three; sleep 0.1; echo mice) '$TINY'" >"$TMP/b" 2>"$TMP/err"
    check "run -f reads a prompt from a shell's pipe, however slowly" [ $? -eq 0 ]
    check "a shell's pipe without end is refused where it is too long" sh -c "! timeout 300 bash -c \"'$PROGRAM' run -f <(yes) '$TINY'\" 2>'$TMP/err' && grep -q 'larger than it can be' '$TMP/err'"
fi

group "an index with a million entries"
awk 'BEGIN { printf "{\"weight_map\": {"; for (i = 0; i < 200000; i++) printf "\"t%d\": \"%d.safetensors\", ", i, i % 2000; printf "\"x\": \"x.safetensors\"}}" }' \
    >"$TMP/model/model.safetensors.index.json"
rm -f "$TMP/model/part.safetensors"
cp tests/golden/models/llama3/model.safetensors "$TMP/model/0.safetensors"
i=0
printf '\2\0\0\0\0\0\0\0{}' >"$TMP/model/1.safetensors"
while [ $i -lt 1998 ]; do
    i=$((i + 1))
    echo "$TMP/model/$((i + 1)).safetensors"
done | xargs -n 500 sh -c 'for f; do ln -f "'"$TMP"'/model/1.safetensors" "$f"; done' sh
check "an index with very many entries is refused" sh -c "! timeout 300 '$PROGRAM' info '$TMP/model' 2>'$TMP/err'"
check "the refusal of an index with very many entries names the missing file" grep -q 'x.safetensors: is missing' "$TMP/err"

group "little memory"
# OpenBLAS hangs at its start if it gets no memory, so only training may load it. Not with sanitizers, which map more
# than any limit.
case $BUILD in */sanitize*) ;; *)
    check "a command starts with little memory" sh -c "ulimit -v 150000; timeout 300 '$PROGRAM' --version"
    check "a run that does not fit ends with a line" sh -c "ulimit -v 100000; ! timeout 300 '$PROGRAM' run -n 2 -p a 2>'$TMP/err' && grep -q 'memory' '$TMP/err'" ;;
esac
finish
