#!/bin/sh
# make bench-llama LLAMA_CPP=FOLDER compares the CPU engine with llama.cpp on the same files, in the same run. FOLDER
# contains llama-bench and llama-quantize. Passes alternate between the two programs, so that drift affects both. A
# ratio is the median of the passes' ratios, and figures are medians. RECORD=1 writes the table into
# docs/measurements-batches.md. ISA=avx512vnni selects that instruction set on a machine with AMX; FOLDER must then
# contain a llama.cpp that was built without AMX (GGML_NATIVE=OFF and the other sets).
#
# SHAPES names models of `--synth`, or those of tests/bench/random_gguf.py, which needs Python with numpy and gguf
# (PYTHON), or GGUF files, which are measured as they are.
#
# usage: tests/bench/llama_cpp.sh BUILD LLAMA_CPP; SHAPES, TYPES, THREADS, PASSES, TOKENS, ISA, PYTHON from the environment
set -eu
cd "$(dirname "$0")/../.."
BUILD=$1
LLAMA=${2:-}
SHAPES=${SHAPES:-SmolLM-135M TinyLlama-1.1B Qwen3.5-0.8B Gemma-4-E2B}
TYPES=${TYPES:-F16 Q8_0 Q4_K_M}
THREADS=${THREADS:-2}
PASSES=${PASSES:-5}
TOKENS=${TOKENS:-128} # decoded
ISA=${ISA:-auto}
TITLE="Against llama.cpp$([ "$ISA" = auto ] || echo ", $ISA")"
PROMPT=512            # read at once, as specscope bench --speed has it
export LC_ALL=C.UTF-8

fail() {
    echo "bench-llama: $1" >&2
    exit 2
}
for program in llama-bench llama-quantize; do
    [ -x "$LLAMA/$program" ] || fail "there is no $program in '$LLAMA'; give LLAMA_CPP=/folder/with/llama.cpp's/programs"
done
case $SHAPES in
*Qwen3.5-* | *Gemma-4-*)
    "${PYTHON:-python3}" -c 'import gguf, numpy' 2>/dev/null ||
        fail "Qwen3.5 and Gemma 4 need Python with numpy and gguf; install them, set PYTHON, or leave these out of SHAPES"
    ;;
esac
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
trap 'exit 1' INT TERM

median() { # of a file's lines
    sort -g "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}
number() { # key, JSON file
    sed -n 's/.*"'"$1"'":[[:space:]]*\([0-9.eE+-]*\).*/\1/p' "$2" | head -n 1
}
wall() { # command: seconds to its end
    start=$(date +%s.%N)
    "$@" >"$WORK/said" 2>&1 </dev/null || { tail -n 3 "$WORK/said" >&2; fail "$1 failed"; }
    date +%s.%N | awk -v start="$start" '{ print $1 - start }'
}

# A figure a line is appended to $WORK/{ours,theirs}-{decode,prefill,load}. Loading is a process that loads and says one
# token, with the file in the page cache.
ours() { # model
    "$BUILD/specscope" bench --speed --backend cpu --isa "$ISA" -t "$THREADS" -n "$TOKENS" --repeat 1 --json "$WORK/ours.json" "$1" >/dev/null
    number decode_tok_per_s "$WORK/ours.json" >>"$WORK/ours-decode"
    number prompt_tok_per_s "$WORK/ours.json" >>"$WORK/ours-prefill"
    wall "$BUILD/specscope" run --backend cpu --isa "$ISA" -t "$THREADS" --policy ar -n 1 -p a -c $((PROMPT + TOKENS)) "$1" >>"$WORK/ours-load"
}
theirs() { # model
    for try in 1 2 3; do # its tiles have been seen to trap on a busy virtual machine
        "$LLAMA/llama-bench" -m "$1" -t "$THREADS" -p "$PROMPT" -n "$TOKENS" -r 1 -o csv 2>"$WORK/said" >"$WORK/theirs.csv" && break
        [ "$try" -lt 3 ] || { tail -n 3 "$WORK/said" >&2; fail "llama-bench failed on $shape, $type"; }
    done
    for test in prefill decode; do
        awk -F'","' -v test="$test" 'NR == 1 { gsub(/"/, ""); n = split($0, name, ","); for (i = 1; i <= n; i++) column[name[i]] = i; next }
            (test == "prefill") == ($column["n_prompt"] > 0) { gsub(/"/, "", $column["avg_ts"]); print $column["avg_ts"] }' \
            "$WORK/theirs.csv" >>"$WORK/theirs-$test"
    done
    wall "$LLAMA/llama-bench" -m "$1" -t "$THREADS" -p 0 -n 1 -r 1 --no-warmup >>"$WORK/theirs-load"
}

cell() { # decode|prefill|load: "ratio (ours : theirs)"; of load, where less is better, the ratio of times too
    paste "$WORK/ours-$1" "$WORK/theirs-$1" | awk '{ print $1 / $2 }' >"$WORK/ratios"
    awk -v what="$1" -v ratio="$(median "$WORK/ratios")" -v ours="$(median "$WORK/ours-$1")" -v theirs="$(median "$WORK/theirs-$1")" 'BEGIN {
        if (what == "load") printf " %.2f (%.2f : %.2f s) |", ratio, ours, theirs
        else printf " %.2f (%.4g : %.4g tokens/s) |", ratio, ours, theirs }'
}

rows() {
    for shape in $SHAPES; do
        types=$TYPES
        rm -f "$WORK/f16.gguf" # a link to a file that must stay as it is
        case $shape in
        *.gguf) types=$(basename "$shape" .gguf) && ln -sf "$(realpath "$shape")" "$WORK/f16.gguf" ;;
        Qwen3.5-* | Gemma-4-*) "${PYTHON:-python3}" tests/bench/random_gguf.py "$WORK/f16.gguf" "$shape" ;;
        *) "$BUILD/tests/synth" "$WORK/f16.gguf" "$shape" --type f16 >/dev/null ;;
        esac
        for type in $types; do
            model=$WORK/f16.gguf
            if [ "$type" != F16 ] && [ ! -L "$model" ]; then
                model=$WORK/model.gguf
                "$LLAMA/llama-quantize" "$WORK/f16.gguf" "$model" "$type" >"$WORK/said" 2>&1 || fail "llama-quantize failed on $shape, $type"
            fi
            rm -f "$WORK"/ours-* "$WORK"/theirs-*
            for pass in $(seq 0 "$PASSES"); do
                echo "$shape, $type, pass $pass of $PASSES" >&2
                ours "$model"
                theirs "$model"
                [ "$pass" -gt 0 ] || rm -f "$WORK"/ours-* "$WORK"/theirs-* # that one fetched the file
            done
            [ -L "$model" ] && name=$type || name="$shape, $type"
            echo "| $name |$(cell decode)$(cell prefill)$(cell load)"
        done
    done
}

cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
rows >"$WORK/rows"
version=$("$LLAMA/llama-bench" -m "$WORK/f16.gguf" -t "$THREADS" -p 0 -n 1 -r 1 --no-warmup 2>/dev/null | sed -n 's/^build: //p')
{
    echo "# $TITLE"
    echo
    echo "\`make bench-llama\` wrote this section on $(date -u +%Y-%m-%d), with $THREADS threads of ${cpu:-an unknown processor}, specscope"
    echo "$("$BUILD/specscope" --version | cut -d' ' -f2) and llama.cpp build ${version:-unknown}. Both programs read the same files: random weights in the"
    echo "shapes named, quantised by llama.cpp. Figures are medians of $PASSES passes that alternate between the programs. Ratios are"
    echo "specscope's figure over llama.cpp's, pass by pass. For decoding $TOKENS tokens and for reading a prompt of $PROMPT tokens, specscope is"
    echo "faster where the ratio is above 1. For the time from the start of the process to the first token, it is faster where the ratio is"
    echo "below 1. The file is in the page cache."
    echo
    echo "| model | decoding | prompt | start to first token |"
    echo "| --- | --- | --- | --- |"
    cat "$WORK/rows"
} >"$WORK/section.md"
cat "$WORK/section.md"
if [ -n "${RECORD:-}" ]; then # in the place of the section that was there, before the one on a GPU
    awk -v section="$WORK/section.md" -v title="# $TITLE" '
        function put() { while ((getline line < section) > 0) print line; print ""; done = 1 }
        $0 == title { put(); skip = 1; next }
        /^# / && NR > 1 { skip = 0; if (!done && /^# On a GPU$/) put() }
        !skip
        END { if (!done) { print ""; put() } }' docs/measurements-batches.md | cat -s >"$WORK/measurements.md"
    cp "$WORK/measurements.md" docs/measurements-batches.md
fi
