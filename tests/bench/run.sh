#!/bin/sh
# make bench: measures on the bundled model and writes docs/measurements.md. All figures are ratios within this run,
# medians of interleaved repetitions; absolute speeds are there to say what machine it was.
set -eu
cd "$(dirname "$0")/../.."
BUILD=${1:-build}
S=$BUILD/specscope
OUT=docs/measurements.md
MODEL=${MODEL:-}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT INT TERM
export LC_ALL=C.UTF-8

# Nothing is written before everything is measured.
echo "steps …" >&2
$S bench --steps $MODEL >"$WORK/steps"
$S bench --steps --isa reference $MODEL >"$WORK/steps-reference"
echo "policies …" >&2
$S bench -n 200 --ignore-eos $MODEL >"$WORK/policies" 2>/dev/null
echo "layerskip's grid …" >&2
$S bench -n 200 --ignore-eos --policy layerskip --grid exit_layer=2:8:2 --grid gamma=2:6:2 $MODEL >"$WORK/grid" 2>/dev/null
echo "heads …" >&2
$S bench -n 200 --ignore-eos --policy specbound --head lens --head trained $MODEL >"$WORK/heads" 2>"$WORK/no-heads" || cp "$WORK/no-heads" "$WORK/heads"
echo "the scope's cost …" >&2
"$(dirname "$0")/scope_cost.sh" "$BUILD" >"$WORK/scope" || { cat "$WORK/scope" >&2; exit 1; }

cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
{
    echo "# Measurements"
    echo
    echo "Written by \`make bench\` on $(date -u +%Y-%m-%d), $(nproc) cores of ${cpu:-an unknown processor}, $(uname -sr | sed 's/[+-].*//'),"
    echo "specscope $($S --version | cut -d' ' -f2). Figures are ratios within one run; a shared machine drifts, ratios drift less."
    echo
    echo "## Steps"
    echo "Verifying several rows in one sweep against one row; a probe (the head on one row) against a layer; probing all"
    echo "layers of 8 rows in one call against verifying them."
    echo '```'
    cat "$WORK/steps"
    echo '```'
    echo "The same with the portable reference kernels (\`--isa reference\`):"
    echo '```'
    cat "$WORK/steps-reference"
    echo '```'
    echo
    echo "## Policies"
    echo "\`x ar\` is measured, \`from\` and \`to\` are its 95% interval, \`+-\` its standard error over passes, \`modelled\` is emitted·(L + ρ) / (layer loads + ρ·head loads), \`meas/mod\` their quotient: below 1"
    echo "is overhead that the model does not know: on a CPU whose caches hold the weights, a row more in a sweep costs"
    echo "arithmetic (see Steps), while the model counts weights read."
    echo '```'
    cat "$WORK/policies"
    echo '```'
    echo "\`layerskip\` at other exit layers and lengths:"
    echo '```'
    cat "$WORK/grid"
    echo '```'
    echo "\`specbound\` with the lens and with trained heads, side by side:"
    echo '```'
    cat "$WORK/heads"
    echo '```'
    echo
    echo "## What watching costs"
    cat "$WORK/scope"
    if [ -f docs/measurements-notes.md ]; then
        echo
        cat docs/measurements-notes.md
    fi
    # What `make bench-batch`, `make bench-llama` and `make bench-cuda` wrote with RECORD=1 stays.
    awk '/^# Batches: / || /^# Against llama\.cpp$/ || /^# On a GPU$/ { kept = 1; print "" } kept' "$OUT" | cat -s
} >"$WORK/measurements.md"
mv "$WORK/measurements.md" "$OUT"
cat "$OUT"
