#!/bin/sh
# The bundled models have what models/README.md promises: sizes, one vocabulary for all, prompts, heads.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

says() { # pattern: a line of `info`
    grep -Eq "$1" "$TMP/out"
}

works "info describes the bundled model" info
check "the bundled model has sixteen layers" says '^architecture +llama, 16 layers'
check "the bundled model's head is at most 0.65 of a layer" sh -c "sed -n 's/.*ρ = //p' '$TMP/out' | awk '{ exit !(\$1 <= 0.65) }'"
check "the bundled model's file is at most 32 MB" sh -c '[ "$(stat -c %s models/fables-q8_0.gguf)" -le 32000000 ]'
check "ten prompts are bundled" sh -c '[ "$(grep -c "\"turns\"" models/prompts.jsonl)" -eq 10 ]'
check "the bundled trained heads are found" sh -c "'$PROGRAM' bench -n 4 --repeat 1 -p a --policy specbound --head trained >/dev/null"

TEXT='Ruby’s list: three apples (1 + 2 = 3), "a red hen",	and 愛.'
for model in fables fables-companion fables-draft fables-hybrid; do
    echo "$TEXT" | "$PROGRAM" tokenize models/$model-q8_0.gguf >"$TMP/$model.ids"
done
for model in fables-companion fables-draft fables-hybrid; do
    works "$model generates" run -n 16 -p "Once upon a time" models/$model-q8_0.gguf
    check "$model's text is longer than 20 bytes" [ "$(wc -c <"$TMP/out")" -gt 20 ]
    check "$model's ids are those of fables" cmp -s "$TMP/fables.ids" "$TMP/$model.ids"
done
check "the text that the bundled models encode has more than 20 ids" [ "$(wc -w <"$TMP/fables.ids")" -gt 20 ]
works "the EAGLE-3 head drafts" run -n 16 -p "Once upon a time" --policy eagle
check "the EAGLE-3 head's file is at most 2 MB" sh -c '[ "$(stat -c %s models/fables-eagle-q8_0.gguf)" -le 2000000 ]'
for policy in dflash dspark; do
    works "the block drafter drafts for $policy" run -n 16 -p "Once upon a time" --policy $policy
done
check "the block drafter's file is at most 2 MB" sh -c '[ "$(stat -c %s models/fables-block-q8_0.gguf)" -le 2000000 ]'

hybrid="run -n 48 --ignore-eos -p Two --draft models/fables-draft-q8_0.gguf models/fables-hybrid-q8_0.gguf"
works "the hybrid has recurrent layers" info models/fables-hybrid-q8_0.gguf
check "nine of the hybrid's twelve layers are recurrent" says 'gated delta nets in 9 layers'
check "the hybrid's file is at most 4 MB" sh -c '[ "$(stat -c %s models/fables-hybrid-q8_0.gguf)" -le 4000000 ]'
works "the hybrid decodes" $hybrid --policy ar
cp "$TMP/out" "$TMP/ar"
for policy in layerskip del dv fsm specbound swift sd ngram suffix; do
    works "$policy drafts on the hybrid" $hybrid --policy $policy
    check "$policy's text on the hybrid is ar's" cmp -s "$TMP/ar" "$TMP/out"
done
finish
