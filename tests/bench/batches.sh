#!/bin/sh
# make bench-batch [MODEL='FILE --draft …'] compares sd at its best K with sv, in batches of several sizes, in one run
# each. Each pass goes through all policies in turn, so that drift of the machine affects all of them. RECORD=1 writes
# the tables into docs/measurements-batches.md; NAME=… is the model's name there.
#
# usage: tests/bench/batches.sh BUILD; MODEL, NAME, BATCHES, WINDOWS, DRAFTS, TOKENS, SEQUENCES, PASSES from the environment
set -eu
cd "$(dirname "$0")/../.."
BUILD=${1:-build}
S=$BUILD/specscope
MODEL=${MODEL:-}
NAME=${NAME:-the bundled family}
BATCHES=${BATCHES:-1 2 4 8 16}
DRAFTS=${DRAFTS:-1:6:1} # K
WINDOWS=${WINDOWS:-2:6:2}
TOKENS=${TOKENS:-64}
PASSES=${PASSES:-3}
SEQUENCES=${SEQUENCES:-40} # at most 40
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
trap 'exit 1' INT TERM
export LC_ALL=C.UTF-8

# Enough sequences to keep the largest batch full for most of its time.
for _ in 1 2 3 4; do cat models/prompts.jsonl; done | head -n "$SEQUENCES" >"$WORK/prompts.jsonl"

row() { # batch, CSV: ar's tokens/s, sd at its best K, sv at its best window
    awk -F, -v batch="$1" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["category"] != "" { next } # of a part of the prompts
        $1 == "ar" { ar = sprintf("%.0f", $at["tok_per_s"]) }
        $1 != "ar" && (!($1 in best) || $at["speedup"] + 0 > best[$1] + 0) {
            best[$1] = $at["speedup"]
            point = $at["params"]
            gsub(/"|[a-z]+=/, "", point)
            all[$1] = $at["speedup_all_in"]; se[$1] = $at["speedup_se"]; verified[$1] = $at["verified"] / $at["emitted"]
            said[$1] = sprintf("%.2f ± %.2f (%s)", $at["speedup"], $at["speedup_se"], point)
        }
        END { printf "| %s | %s | %s | %s | %.2f | %.2f ± %.2f | %.2f, %.2f |\n", batch, ar, said["sd"], said["sv"], all["sv"],
                  best["sv"] / best["sd"], best["sv"] / best["sd"] * sqrt((se["sv"] / best["sv"])^2 + (se["sd"] / best["sd"])^2),
                  verified["sd"], verified["sv"] }' "$2"
}

for batch in $BATCHES; do
    echo "$NAME, $batch at a time …" >&2
    # shellcheck disable=SC2086
    "$S" bench --ignore-eos -n "$TOKENS" --repeat "$PASSES" --batch "$batch" --prompts "$WORK/prompts.jsonl" --policy sd \
        --grid "k=$DRAFTS" --policy sv --grid "window=$WINDOWS" --csv "$WORK/csv" $MODEL >"$WORK/said" 2>&1 || { cat "$WORK/said" >&2; exit 1; }
    row "$batch" "$WORK/csv" >>"$WORK/rows"
done

cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
{
    echo "# Batches: $NAME"
    echo
    echo "\`make bench-batch\` wrote this section on $(date -u +%Y-%m-%d), with $(nproc) cores of ${cpu:-an unknown processor}. It decodes $TOKENS tokens of"
    echo "each of $(wc -l <"$WORK/prompts.jsonl" | tr -d ' ') sequences, greedily, in $PASSES passes. Speeds are relative to \`ar\` with the same batch, ± one standard error over"
    echo "passes. The numbers in brackets are the best K of \`sd\` ($DRAFTS) and the best window of \`sv\` ($WINDOWS). *All in* includes the passes"
    echo "in which \`sv\` measures how long verifications take. The last column is the number of verified drafts per emitted token."
    echo
    echo "| at a time | \`ar\`, tokens/s | \`sd\`, x ar (K) | \`sv\`, x ar (window) | \`sv\` all in | \`sv\` over \`sd\` | verified: \`sd\`, \`sv\` |"
    echo "| --- | --- | --- | --- | --- | --- | --- |"
    cat "$WORK/rows"
} >"$WORK/section.md"
cat "$WORK/section.md"
if [ -n "${RECORD:-}" ]; then # in the place of the section of this name, or before those that other programs write
    awk -v section="$WORK/section.md" -v title="# Batches: $NAME" '
        function put() { while ((getline line < section) > 0) print line; print ""; done = 1 }
        $0 == title { put(); skip = 1; next }
        /^# / && NR > 1 { skip = 0; if (!done && /^# (Against llama\.cpp|On a GPU)$/) put() }
        !skip
        END { if (!done) { print ""; put() } }' docs/measurements-batches.md | cat -s >"$WORK/measurements.md"
    cp "$WORK/measurements.md" docs/measurements-batches.md
fi
