#!/bin/sh
# Synthetic models: the tool that writes them and --synth, which needs no file, give the same model; refusals.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
SYNTH=$BUILD/tests/synth
SPEC=tiny:f16,2,0.75
ROOM=$TMP/room
mkdir "$ROOM"

synth() { # as specscope() does
    "$SYNTH" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
    status=$?
}
same() { cmp -s "$1" "$2"; }
empty() { [ -z "$(ls -A "$1")" ]; }

synth "$ROOM/tiny.gguf" tiny --type f16 --plant 2,0.75
check "synth writes a model" [ "$status" -eq 0 ]
works "info describes a synthetic model's file" info "$ROOM/tiny.gguf"
check "info prints the synthetic model's name" grep -q '^tiny synthetic 2, 0.75$' "$TMP/out"
works "info describes a synthetic model without a file" info --synth $SPEC
check "info calls a model without a file synthetic" grep -q '^synthetic  *tiny:f16,2,0.75' "$TMP/out"
specscope run -n 60 -p 'Once upon' --policy layerskip --set exit_layer=2 "$ROOM/tiny.gguf"
check "run of a synthetic model's file generates" [ "$status" -eq 0 ]
cp "$TMP/out" "$TMP/from-file"
specscope run -n 60 -p 'Once upon' --policy del --synth $SPEC
check "--synth generates the same text" same "$TMP/out" "$TMP/from-file"
specscope run -n 60 -p 'Once upon' --exact --synth tiny:f32,2,0.75
check "--synth runs with --exact" [ "$status" -eq 0 ]
"$SYNTH" "$ROOM/again.gguf" tiny --type f16 --plant 2,0.75 --seed 1
check "synth with the same seed writes the same bytes" same "$ROOM/tiny.gguf" "$ROOM/again.gguf"
"$SYNTH" "$ROOM/again.gguf" tiny --type f16 --plant 2,0.75 --seed 2
check "synth with another seed writes other bytes" sh -c "! cmp -s '$ROOM/tiny.gguf' '$ROOM/again.gguf'"
check "synth leaves no other file" [ "$(ls -A "$ROOM" | wc -l)" -eq 2 ]
rm "$ROOM"/*

works "bench --synth compares policies" bench --synth $SPEC -n 96 --repeat 1 -p hello --policy layerskip \
    --policy specbound --policy del --set exit_layer=2 --set d_min=2 --json "$TMP/bench.json"
check "bench --synth finds all policies lossless" sh -c "[ \$(grep -c ' yes\$' '$TMP/out') -eq 4 ]"
if [ -n "$HAVE_PYTHON" ]; then
    check "bench --synth measures the acceptance that was asked for" json_holds "$TMP/bench.json" \
        'abs([r for r in j["results"] if r["policy"] == "layerskip"][0]["per_token_acceptance"] - 0.75) < 0.15'
    check "bench --synth names the model" json_holds "$TMP/bench.json" 'j["results"][0]["model"] == "tiny synthetic 2, 0.75"'
fi

refuses "--synth with an unknown shape is refused" 2 'TinyLlama-1.1B' run --synth huge,2,0.75
refuses "--synth with an impossible exit layer is refused" 2 'from 1 to 7' run --synth tiny,8,0.75
refuses "--synth with an acceptance that cannot be made is refused" 2 '0.3 to 0.97' run --synth tiny,2,1
refuses "--synth with an unknown type is refused" 2 'q5_0' bench --synth tiny:q5_0,2,0.75
refuses "--synth with a type whose blocks do not fill a row is refused" 2 'Q4_K needs rows of a multiple of 256' bench --synth tiny:q4_k,2,0.75
refuses "run with a file and --synth is refused" 2 'leave' run --synth $SPEC "$TINY"
refuses "info with a file and --synth is refused" 2 'leave' info --synth $SPEC "$TINY"
mkdir -p "$XDG_CONFIG_HOME/specscope"
echo "{\"synth\": \"$SPEC\"}" >"$XDG_CONFIG_HOME/specscope/config.json"
works "a given model overrides the config file's synthetic one" run -n 8 "$TINY"
rm "$XDG_CONFIG_HOME/specscope/config.json"
refuses "--quantize of a synthetic model is refused" 2 'say tiny:q8_0' run --quantize q8_0 --synth $SPEC
refuses "--synth with a shape that does not fit in memory is refused" 1 'needs .* for its weights and .* for a context of 16777216, but .* available' \
    run -n 4 -c 16777216 --synth CodeLlama-34B:f32,8,0.75

for arguments in "" "$ROOM/x.gguf" "$ROOM/x.gguf tiny more" "$ROOM/x.gguf tiny --bogus"; do
    synth $arguments
    check "synth explains itself on bad usage ($(echo $arguments | sed "s|$ROOM/||"))" \
        sh -c "[ $status -eq 2 ] && grep -q '^usage: synth' '$TMP/err'"
done
for arguments in "huge" "tiny --type q4_k" "tiny --plant 9,0.5" "tiny --plant 2" "tiny --seed x"; do
    synth "$ROOM/x.gguf" $arguments
    check "synth refuses $arguments in a line" sh -c "[ $status -eq 2 ] && [ \$(wc -l <'$TMP/err') -eq 1 ]"
done
( # 512-byte blocks: a disk that fills up, as far as a program can tell
    ulimit -f 200
    synth "$ROOM/x.gguf" tiny
    [ "$status" -eq 1 ] && [ "$(wc -l <"$TMP/err")" -eq 1 ] && grep -q 'cannot be written' "$TMP/err"
)
check "synth reports a full disk in one line" [ $? -eq 0 ]
check "synth leaves no file on a full disk" empty "$ROOM"
synth "$TMP/nowhere/x.gguf" tiny
check "synth reports a missing folder in one line" sh -c "[ $status -eq 1 ] && grep -q 'cannot be created' '$TMP/err'"
finish
