#!/bin/sh
# Changes the CUDA backend in one place at a time and prints which check notices it. A mutation omits one barrier,
# __syncwarp, fence, acquire, release or barrier of the grid ("meeting") in one kernel, or one wait or event of the
# host. Others narrow the scope of an acquire or release to the block, make a load read-only, or use one buffer in place
# of two. A mutation is noticed by the race checker (a race, or a read that may find an old line in L1), by the emulator
# (threads that wait without a partner), by a test (a wrong result), or by nothing.
# usage: tests/emulator/mutations/run.sh BUILD [FEW [SEED]]
# FEW: tries so many mutations of one program, chosen by SEED. Without FEW it tries all and prints the table.
# UPDATE=1: writes the table to table.md. SPECSCOPE_MUTATION_PROGRAMS: other programs. JOBS=2: tries two at a time.
# KINDS="scope class": tries only these kinds. ALL=1: also tries the places of reason_of().
# The results are stored in BUILD/mutations and are valid while the programs and the plug-in are the same.
# Exit status 1: no check noticed a mutation.
set -u
SELF=tests/emulator/mutations/run.sh TABLE=tests/emulator/mutations/table.md
cd "$(dirname "$0")/../../.." || exit 2
case $1 in /*) BUILD=$1 ;; *) BUILD=$PWD/$1 ;; esac
RACES=$BUILD/tests/races
export SPECSCOPE_CUDA_PLUGIN="$RACES/specscope-cuda-emulated.so" CMOCKA_MESSAGE_OUTPUT=STDOUT OMP_WAIT_POLICY=passive SPECSCOPE_SEED=1
export LC_ALL=C
# Quick programs come first, because the first failure ends a trial. run/NAME runs specscope with that golden model.
PROGRAMS=${SPECSCOPE_MUTATION_PROGRAMS:-races/test_cuda_overlap races/test_cuda_head_statistics test_training_on_gpu
    run/glm4_moe-groups test_cuda_queue
    races/test_cuda_steps races/test_cuda_sampling races/test_cuda_verify races/test_cuda_products test_trained_heads test_cuda_feed
    test_cuda_backend test_draft_rows}
LIMIT=1200 # seconds for a program
MEETINGS=9 # barriers of a grid that are tried: more than a layer has

# Prints why no check notices the mutation of a place, or nothing.
reason_of() { # kind, file, function, kernel
    case "$1 $2 $3 $4" in
    "acquire grid.cuh grid_barrier_of"*) echo "nothing: no thread writes between the launch and this load" ;;
    "acquire forward.cuh begin_layer"*) echo "nothing: the load must return a new value, but no other data depends on its order" ;;
    "class matmul.cuh "*" multiply_matrix" | "class tile.cuh "*" multiply_matrix") echo "nothing: another launch wrote these activations" ;;
    "class attention.cuh multiply_keys kernel" | "class attention.cuh load_values kernel") echo "nothing: the test wrote keys and values before the launch" ;;
    "wait upload.c upload_finish"*) echo "nothing: later calls wait, too; this wait makes a failure an error of loading" ;;
    esac
}

source_of() { # file: prints its path
    if [ -e "kernels/cuda/device/$1" ]; then echo "kernels/cuda/device/$1"; else echo "kernels/cuda/$1"; fi
}
place_of() { # "kind file:line …": prints the function that contains the line
    file=${1#* }
    line=${file#*:}
    line=${line%% *}
    file=${file%%:*}
    awk -v line="$line" 'NR > line { exit }
        { sub(/^static __global__ void /, "") }
        /^[a-zA-Z_].*\(/ && !/^(static|template)/ { name = $0; sub(/^(__[a-z_]+__(\([^)]*\))? )+/, "", name); sub(/\(.*/, "", name); sub(/.* /, "", name) }
        END { print name }' "$(source_of "$file")"
}

start() { # program
    case $1 in
    run/*) timeout "$LIMIT" "$BUILD/specscope" run -n 3 --ignore-eos --backend cuda --policy layerskip -p hi "tests/golden/families/${1#run/}" 2>&3 ;;
    *) timeout "$LIMIT" "$BUILD/tests/$1" 2>&3 ;;
    esac
}
file_of() {
    case $1 in
    run/*) echo "$BUILD/specscope" ;;
    *) echo "$BUILD/tests/$1" ;;
    esac
}

# Runs a program with a mutation up to its first failing test. Other findings end the program at once.
try() { # site, order, program, log
    {
        export EMULATED_CUDA_SEED="$2" EMULATED_CUDA_DROP="$1"
        stdbuf -oL sh "$SELF" "$BUILD" --start "$3" 2>&1
        echo "$?" >"$4.status"
    } | sed '/\[  FAILED  \]/q' >"$4"
    said=$KEPT/$(basename "$3").said # the output of specscope without the mutation
    [ ! -e "$said" ] || grep -v '^emulated GPU' "$4" | head -n -1 | cmp -s - "$said" || echo "[  FAILED  ] prints another text" >>"$4"
}

# Tries the usual order of threads, and then another one, because the last thread at a barrier may have seen later
# writes of other threads.
noticed_by() { # site, a file to write to
    for order in 0 3; do
        for program in $PROGRAMS; do
            grep -qxF "$1" "$KEPT/$(basename "$program").sites" 2>/dev/null || continue
            try "$1" "$order" "$program" "$2"
            status=$(cat "$2.status")
            if grep -q 'an old line in L1' "$2"; then
                echo "an old line in L1"
            elif grep -q '^emulated GPU: .*a race: ' "$2"; then
                echo "a race"
            elif grep -qE '^emulated GPU: .*(no thread can run|is at another barrier|diverges from|threads arrived)' "$2"; then
                echo "threads that wait without a partner"
            elif grep -q '^emulated GPU: .*read-only load' "$2"; then
                echo "a read-only load of written data"
            elif grep '^emulated GPU: ' "$2" | grep -qv 'were not freed'; then
                echo "memory that was never written"
            elif [ "$status" -eq 124 ]; then
                echo "hangs"
            elif grep -q '\[  FAILED  \]' "$2"; then
                echo "a wrong result"
            elif [ "$status" -ge 128 ]; then
                echo "a crash"
            elif [ "$status" -ne 0 ]; then
                echo "a wrong result"
            else
                continue
            fi
            return
        done
    done
    echo "nothing"
}

# --one: tries one place in a process of its own, and stores its row.
if [ "${2:-}" = --one ]; then
    site=$4
    KEPT=$3
    row=$KEPT/$(printf '%s' "$site" | cksum | tr ' ' -)
    [ -s "$row" ] && exit 0
    file=${site#* }
    noticed=
    [ -n "${ALL:-}" ] || noticed=$(reason_of "${site%% *}" "${file%%:*}" "$(place_of "$site")" "${site#*@}")
    noticed=${noticed:-$(noticed_by "$site" "$row.log")}
    rm -f "$row.log" "$row.log.status"
    printf '%s\t%s\n' "$site" "$noticed" >"$row.part" && mv "$row.part" "$row"
    exit 0
fi

if [ "${2:-}" = --start ]; then
    start "$3" 3>&2
    exit $?
fi

# --sites: lists the places that a program passes.
if [ "${2:-}" = --sites ]; then
    sites=$3/$(basename "$4").sites
    [ -e "$sites" ] && exit 0
    : >"$sites.part"
    if ! EMULATED_CUDA_SITES="$sites.part" start "$4" >"$sites.log" 3>&1; then
        echo "$SELF: $4 fails with nothing left out" >&2
        tail -n 20 "$sites.log" >&2
        exit 2
    fi
    case $4 in run/*) head -n -1 "$sites.log" >"${sites%.sites}.said" ;; esac # the last line contains the time
    rm "$sites.log" && mv "$sites.part" "$sites"
    exit 0
fi

FEW=${2:-0}
SEED=${3:-$(date +%s)}
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
trap 'exit 2' INT TERM
if [ "$FEW" -gt 0 ]; then
    # shellcheck disable=SC2086 # a list
    PROGRAMS=$(printf '%s\n' $PROGRAMS | awk -v seed="$SEED" 'BEGIN { srand(seed) } { p[NR] = $0 } END { print p[int(rand() * NR) + 1] }')
    echo "# $FEW of $PROGRAMS, seed $SEED"
fi
export SPECSCOPE_MUTATION_PROGRAMS="$PROGRAMS"
# shellcheck disable=SC2086 # a list
KEPT=$BUILD/mutations/$(for program in $PROGRAMS; do cat "$(file_of "$program")"; done | cat - "$SPECSCOPE_CUDA_PLUGIN" | cksum | tr ' ' -)
mkdir -p "$KEPT"
# shellcheck disable=SC2086 # a list
printf '%s\n' $PROGRAMS | xargs -P "${JOBS:-1}" -n 1 sh "$SELF" "$BUILD" --sites "$KEPT" || exit 2
# Selects places in device code and in the host side of the backend. A place in a test's own kernel counts only if no
# other kernel has it.
for program in $PROGRAMS; do cat "$KEPT/$(basename "$program").sites"; done | sort -u | while read -r kind place rest; do
    case " ${KINDS:-$kind} " in *" $kind "*) ;; *) continue ;; esac
    turn=${rest%%@*}
    turn=${turn% }
    [ -e "$(source_of "${place%:*}")" ] && [ "${turn:-0}" -le "$MEETINGS" ] && echo "$kind $place${rest:+ $rest}"
done | awk '{ plain = $0; sub(/ @.*/, "", plain) }
    / @kernel$/ { own[plain] = $0; next } { other[plain] = 1; print }
    END { for (p in own) if (!(p in other)) print own[p] }' | sort -k2,2V -k1,1 -k3,3n >"$TMP/sites"
if [ "$FEW" -gt 0 ]; then
    awk -v seed="$SEED" 'BEGIN { srand(seed + 1) } { print rand(), $0 }' "$TMP/sites" | sort -n | head -n "$FEW" | cut -d ' ' -f 2- >"$TMP/few"
    mv "$TMP/few" "$TMP/sites"
fi
xargs -d '\n' -P "${JOBS:-1}" -n 1 sh "$SELF" "$BUILD" --one "$KEPT" <"$TMP/sites" || exit 2
while read -r site; do
    file=${site#* }
    file=${file%%:*}
    function=$(place_of "$site")
    noticed=$(cut -f 2 "$KEPT/$(printf '%s' "$site" | cksum | tr ' ' -)")
    if [ "$noticed" = nothing ]; then
        noticed=$(reason_of "${site%% *}" "$file" "$function" "${site#*@}")
        noticed=${noticed:-**nothing**}
    fi
    kernel=
    case $site in *@*) kernel=${site##*@} ;; esac
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$file" "$function" "${site%% *}" "${site%% @*}" "$kernel" "$noticed"
done <"$TMP/sites" >"$TMP/rows"

# A row contains the places of one kind in one function that the same check noticed in a kernel. Kernels with the same
# row share it.
awk -F '\t' '
    { key = $1 FS $2 FS $3
      if (!((key, $4) in number)) number[key, $4] = ++n[key]
      row = key FS $6 FS $5
      if (!(row in list)) order[++rows] = row
      i = number[key, $4]
      list[row] = list[row] (list[row] == "" ? "" : ", ") i; last[row] = i; first[row] = first[row] == "" ? i : first[row]
      many[row]++ }
    END {
        print "| file | function | left out | in | noticed by |"
        print "| --- | --- | --- | --- | --- |"
        for (i = 1; i <= rows; i++) {
            row = order[i]; split(row, f, FS); key = f[1] FS f[2] FS f[3]
            which = n[key] == 1 ? "" : " " (many[row] > 3 && last[row] - first[row] + 1 == many[row] ? first[row] " to " last[row] : list[row])
            gsub(/struct /, "", f[5])
            line = f[1] FS f[2] FS f[3] which FS f[4]
            if (!(line in kernels)) lines[++m] = line
            kernels[line] = kernels[line] (kernels[line] == "" ? "" : ", ") (f[5] == "" ? "" : "`" f[5] "`")
        }
        for (i = 1; i <= m; i++) {
            split(lines[i], f, FS)
            printf "| %s | `%s` | %s | %s | %s |\n", f[1], f[2], f[3], kernels[lines[i]] == "" ? "the host" : kernels[lines[i]], f[4]
        }
    }' "$TMP/rows" >"$TMP/table"
cat "$TMP/table"
[ -n "${ROWS:-}" ] && cp "$TMP/rows" "$ROWS"
if [ -n "${UPDATE:-}" ] && [ "$FEW" -eq 0 ] && [ -z "${KINDS:-}" ]; then
    awk -v table="$TMP/table" '
        /^\| file \| function \| left out/ { while ((getline line <table) > 0) print line; skip = 1; next }
        skip && /^\|/ { next }
        { skip = 0; print }' "$TABLE" >"$TMP/doc" && cp "$TMP/doc" "$TABLE"
fi
! grep -q '\*\*nothing\*\*' "$TMP/table"
