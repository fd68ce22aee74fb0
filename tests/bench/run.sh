#!/bin/sh
# make bench measures on the bundled model and writes docs/measurements.md. All results are ratios within this run:
# medians of interleaved repetitions. Absolute speeds only describe the machine.
set -eu
cd "$(dirname "$0")/../.."
BUILD=${1:-build}
S=$BUILD/specscope
OUT=docs/measurements.md
MODEL=${MODEL:-}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT INT TERM
export LC_ALL=C.UTF-8

forecast_row() { # name, output of tests/bench/forecasts: a row from its last three lines
    awk -v name="$1" '{ gsub(/,/, "") }
        /^forecast against measured/ { printf "| %s | %s | %s | %s |", name, $4, $7, $10 }
        /^noise of/ { printf " %s | %s |", $10, $13 }
        /^without corrections/ { printf " %s | %s |\n", $6, $9 }' "$2"
}

# Writes the file only after everything was measured.
echo "steps …" >&2
$S bench --steps $MODEL >"$WORK/steps"
$S bench --steps --isa reference $MODEL >"$WORK/steps-reference"
echo "policies …" >&2
$S bench -n 200 --ignore-eos $MODEL >"$WORK/policies" 2>/dev/null
echo "layerskip's grid …" >&2
$S bench -n 200 --ignore-eos --policy layerskip --grid exit_layer=2:8:2 --grid gamma=2:6:2 $MODEL >"$WORK/grid" 2>/dev/null
echo "heads …" >&2
$S bench -n 200 --ignore-eos --policy specbound --head lens --head trained $MODEL >"$WORK/heads" 2>"$WORK/no-heads" || cp "$WORK/no-heads" "$WORK/heads"
echo "tuning …" >&2
$S tune $MODEL >"$WORK/tune" 2>/dev/null
echo "forecasts …" >&2
head -n 3 models/prompts.jsonl >"$WORK/prompts.jsonl"
"$BUILD/tests/forecasts" -n 200 --ignore-eos --repeat 2 --prompts "$WORK/prompts.jsonl" $MODEL >"$WORK/forecast" 2>/dev/null
"$BUILD/tests/forecasts" -n 16 --ignore-eos --repeat 2 -p 'Three mice sat on a wall.' --synth TinyLlama-1.1B:Q8_0,6,0.8 >"$WORK/forecast-1b" 2>/dev/null
echo "beside busy processes …" >&2
"$(dirname "$0")/busy.sh" "$BUILD" "$MODEL" >"$WORK/busy"
echo "the scope's cost …" >&2
"$(dirname "$0")/scope_cost.sh" "$BUILD" >"$WORK/scope" || { cat "$WORK/scope" >&2; exit 1; }

cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
{
    echo "# Measurements"
    echo
    echo "Written by \`make bench\` on $(date -u +%Y-%m-%d), $(nproc) cores of ${cpu:-an unknown processor}, $(uname -sr | sed 's/[+-].*//'),"
    echo "specscope $($S --version | cut -d' ' -f2). Figures are ratios within one run, because the speed of a shared machine varies more than ratios do."
    echo
    echo "## Steps"
    echo "The table compares the time of verifying several rows in one forward pass with the time of one row. It compares a probe,"
    echo "which applies the head to one row, with a layer. It also compares probing all layers of 8 rows in one call with verifying them."
    echo '```'
    cat "$WORK/steps"
    echo '```'
    echo "The portable reference kernels give these figures (\`--isa reference\`):"
    echo '```'
    cat "$WORK/steps-reference"
    echo '```'
    echo
    echo "## Policies"
    echo "\`x ar\` is the measured speedup over \`ar\`, \`from\` and \`to\` are its 95% interval, and \`+-\` is its standard error over passes."
    echo "\`modelled\` is emitted·(L + ρ) / (layer loads + ρ·head loads), and \`meas/mod\` is measured over modelled speedup. A quotient below 1"
    echo "is overhead that the model does not include. On a CPU whose caches hold the weights, each row costs arithmetic (see Steps),"
    echo "while the model counts only weights that are read."
    echo '```'
    cat "$WORK/policies"
    echo '```'
    echo "These are the results of \`layerskip\` at other exit layers and lengths:"
    echo '```'
    cat "$WORK/grid"
    echo '```'
    echo "These are the results of \`specbound\` with the logit lens and with trained heads:"
    echo '```'
    cat "$WORK/heads"
    echo '```'
    echo
    echo "## Tuning"
    echo "This is the report of \`specscope tune\` (the defaults of five minutes and the bundled list of 30 prompts):"
    echo '```'
    sed "s|$PWD/||g" "$WORK/tune"
    echo '```'
    echo
    echo "## Forecasts in time"
    echo "The table gives |forecast ÷ measured − 1| over the settings of \`build/tests/forecasts\`. Each setting is forecast before its own"
    echo "rounds correct the costs of steps ([forecasts](forecasts.md#cost-model)). The noise is that of the measured"
    echo "speedups alone, between passes. The synthetic model has random weights."
    echo
    echo "| model | settings | median | 90th percentile | noise, median | noise, 90th percentile | median, uncorrected | 90th percentile, uncorrected |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
    forecast_row "the bundled model" "$WORK/forecast"
    forecast_row "synthetic, 1.1B, Q8_0" "$WORK/forecast-1b"
    echo
    echo "These are the settings of the bundled model:"
    echo '```'
    cat "$WORK/forecast"
    echo '```'
    echo
    echo "## Beside busy processes"
    echo "The table gives tokens/s of \`ar\` beside processes that only compute, as medians of nine interleaved runs. The program chooses the"
    echo "number of threads (*chosen*), or the number is fixed."
    echo '```'
    cat "$WORK/busy"
    echo '```'
    echo
    echo "## What watching costs"
    cat "$WORK/scope"
    # The sections after this one are written by other commands or by hand, so they stay.
    awk 'NR > 1 && /^# / { kept = 1; print "" } kept' "$OUT" | cat -s
} >"$WORK/measurements.md"
mv "$WORK/measurements.md" "$OUT"
cat "$OUT"
