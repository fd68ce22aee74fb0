#!/bin/sh
# Leaves out one barrier, __syncwarp, fence, acquire, release or meeting of the grid at a time, wherever device code passes it, and
# says what notices: the happens-before checker (a race; a read that may find an old line in L1), the emulation (threads that
# stand still or part ways), a test (a wrong result), or nothing.
# usage: tests/cuda/mutations.sh BUILD [FEW [SEED]]
# FEW: so many of one program's, chosen by SEED. Prints a table in Markdown; with all of them that of docs/cuda.md, which UPDATE=1
# puts there. SPECSCOPE_MUTATION_PROGRAMS has other programs. Exit status 1: something is left out and nothing notices.
set -u
cd "$(dirname "$0")/../.." || exit 2
case $1 in /*) BUILD=$1 ;; *) BUILD=$PWD/$1 ;; esac
FEW=${2:-0}
SEED=${3:-$(date +%s)}
RACES=$BUILD/tests/races
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
trap 'exit 2' INT TERM
export SPECSCOPE_CUDA_PLUGIN="$RACES/specscope-cuda-emulated.so" CMOCKA_MESSAGE_OUTPUT=STDOUT OMP_WAIT_POLICY=passive SPECSCOPE_SEED=1
export LC_ALL=C
# The quick ones first: the first to fail is enough.
PROGRAMS=${SPECSCOPE_MUTATION_PROGRAMS:-races/test_cuda_head_statistics races/test_cuda_overlap races/test_cuda_verify races/test_cuda_steps
    races/test_cuda_sampling races/test_cuda_products test_cuda_backend}
LIMIT=600 # seconds a program
MEETINGS=9 # of a grid: more than a layer's

# What may be left out without anybody's notice, and why it is there.
reason_of() { # kind, file, function
    case "$1 $2 $3" in
    "acquire grid.cuh grid_barrier_of") echo "nothing: nobody has written since the launch; the load is the barrier's like the others" ;;
    "acquire sweep_kernel.cuh begin_layer") echo "nothing: it must not be an old value, which is all; what hangs on it is this word alone" ;;
    esac
}

place_of() { # "kind file:line …": the function that the line is in
    file=${1#* }
    line=${file#*:}
    line=${line%% *}
    file=${file%%:*}
    awk -v line="$line" 'NR > line { exit }
        /^[a-zA-Z_].*\(/ && !/^(static|template)/ { name = $0; sub(/^(__[a-z_]+__(\([^)]*\))? )+/, "", name); sub(/\(.*/, "", name); sub(/.* /, "", name) }
        END { print name }' "kernels/cuda/$file"
}

noticed_by() { # "kind file:line …"
    for turn in $TURNS; do
        program=${turn#*:}
        grep -qxF "$1" "$TMP/$(basename "$program").sites" 2>/dev/null || continue
        EMULATED_CUDA_SEED="${turn%%:*}" EMULATED_CUDA_DROP="$1" timeout "$LIMIT" "$BUILD/tests/$program" >"$TMP/log" 2>&1
        status=$?
        [ "$status" -eq 0 ] && continue
        if [ "$status" -eq 124 ]; then
            echo "hangs"
        elif grep -q 'an old line in L1' "$TMP/log"; then
            echo "an old line in L1"
        elif grep -q '^emulated GPU: .* a race: ' "$TMP/log"; then
            echo "a race"
        elif grep -qE '^emulated GPU: .*(stands still|waits for its block|parts ways)' "$TMP/log"; then
            echo "threads that wait for nobody"
        elif grep '^emulated GPU: ' "$TMP/log" | grep -qv 'were not freed'; then
            echo "memory that nobody wrote"
        elif [ "$status" -ge 128 ]; then
            echo "a crash"
        else
            echo "a wrong result"
        fi
        return
    done
    echo "nothing"
}

if [ "$FEW" -gt 0 ]; then
    # shellcheck disable=SC2086 # a list
    PROGRAMS=$(printf '%s\n' $PROGRAMS | awk -v seed="$SEED" 'BEGIN { srand(seed) } { p[NR] = $0 } END { print p[int(rand() * NR) + 1] }')
    echo "# $FEW of $PROGRAMS, seed $SEED"
fi
for program in $PROGRAMS; do
    if ! EMULATED_CUDA_SITES="$TMP/$(basename "$program").sites" timeout "$LIMIT" "$BUILD/tests/$program" >"$TMP/log" 2>&1; then
        echo "tests/cuda/mutations.sh: $program fails with nothing left out" >&2
        tail -n 20 "$TMP/log" >&2
        exit 2
    fi
done
# Of device code, not of the tests' own kernels.
cat "$TMP"/*.sites | sort -u | while read -r kind place turn; do
    [ -e "kernels/cuda/${place%:*}" ] && [ "${turn:-0}" -le "$MEETINGS" ] && echo "$kind $place${turn:+ $turn}"
done | sort -k2,2V -k1,1 -k3,3n >"$TMP/sites"
if [ "$FEW" -gt 0 ]; then
    awk -v seed="$SEED" 'BEGIN { srand(seed + 1) } { print rand(), $0 }' "$TMP/sites" | sort -n | head -n "$FEW" | cut -d ' ' -f 2- >"$TMP/few"
    mv "$TMP/few" "$TMP/sites"
fi
# In the usual order of threads, then in another: who comes last to a barrier may have seen there what others did behind it.
TURNS=
for order in 0 3; do
    for program in $PROGRAMS; do TURNS="$TURNS $order:$program"; done
done
while read -r site; do
    file=${site#* }
    file=${file%%:*}
    function=$(place_of "$site")
    noticed=$(noticed_by "$site")
    if [ "$noticed" = nothing ]; then
        noticed=$(reason_of "${site%% *}" "$file" "$function")
        noticed=${noticed:-**nothing**}
    fi
    printf '%s\t%s\t%s\t%s\t%s\n' "$file" "$function" "${site%% *}" "$site" "$noticed"
done <"$TMP/sites" >"$TMP/rows"

# A row for what is of one kind in one function and was noticed alike: which of them, by their lines.
awk -F '\t' '
    { key = $1 FS $2 FS $3; number = ++n[key]; row = key FS $5
      if (!(row in list)) order[++rows] = row
      list[row] = list[row] (list[row] == "" ? "" : ", ") number; last[row] = number; first[row] = first[row] == "" ? number : first[row]
      many[row]++ }
    END {
        print "| file | function | left out | noticed by |"
        print "| --- | --- | --- | --- |"
        for (i = 1; i <= rows; i++) {
            row = order[i]; split(row, f, FS); key = f[1] FS f[2] FS f[3]
            which = n[key] == 1 ? "" : " " (many[row] > 3 && last[row] - first[row] + 1 == many[row] ? first[row] " to " last[row] : list[row])
            printf "| %s | `%s` | %s%s | %s |\n", f[1], f[2], f[3], which, f[4]
        }
    }' "$TMP/rows" >"$TMP/table"
cat "$TMP/table"
[ -n "${ROWS:-}" ] && cp "$TMP/rows" "$ROWS"
if [ -n "${UPDATE:-}" ] && [ "$FEW" -eq 0 ]; then
    awk -v table="$TMP/table" '
        /^\| file \| function \| left out/ { while ((getline line <table) > 0) print line; skip = 1; next }
        skip && /^\|/ { next }
        { skip = 0; print }' docs/cuda.md >"$TMP/doc" && cp "$TMP/doc" docs/cuda.md
fi
! grep -q '\*\*nothing\*\*' "$TMP/table"
