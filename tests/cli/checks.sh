# For the tests of the command line; sourced from the root of the tree. Every check prints one TAP line.
set -u
export LC_ALL=C.UTF-8
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
PROGRAM=$BUILD/specscope
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
trap 'exit 1' INT TERM
export SPECSCOPE_CUDA_PLUGIN='' # the CPU, whatever GPU is here; tests/cli/test_cuda.sh sets its own
export HOME="$TMP" XDG_CONFIG_HOME="$TMP/config" XDG_STATE_HOME="$TMP/state" # nobody's own settings
TINY=$TMP/tiny.gguf
"$BUILD/tests/tinymodel" "$TINY" --layers 4 --calm-after 1 --calm 0.1 --sharpness 8 >/dev/null || exit 1
checks=0
failures=0

check() { # sentence, command
    sentence=$1
    shift
    checks=$((checks + 1))
    if "$@" >"$TMP/said" 2>&1; then
        echo "ok $checks - $sentence"
    else
        failures=1
        echo "not ok $checks - $sentence"
        for file in said out err; do
            [ -s "$TMP/$file" ] && head -c 2000 "$TMP/$file" | tr -c '\n -~' '?' | sed "s/^/# $file: /"
        done
    fi
    return 0
}

group() { echo "# $1"; } # the name of the checks that follow

skip() { # sentence, why
    checks=$((checks + 1))
    echo "ok $checks - $1 # SKIP $2"
}

finish() {
    echo "1..$checks"
    exit $failures
}

# Writes stdout to $TMP/out and stderr to $TMP/err, and sets $status to the exit status.
specscope() {
    "$PROGRAM" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
    status=$?
}

# An acceptance head that returns 0.5 for every candidate of a draft model of this width.
accept_head() { # file, width
    weights=$((8 * $2))
    json=$(printf '{"model.0.weight":{"dtype":"F32","shape":[2,%d],"data_offsets":[0,%d]},"model.0.bias":{"dtype":"F32","shape":[2],"data_offsets":[%d,%d]}}' \
        "$2" $weights $weights $((weights + 8)))
    json=$(printf '%-192s' "$json") # the data is aligned
    printf '\300\0\0\0\0\0\0\0%s' "$json" >"$1"
    head -c $((weights + 8)) /dev/zero >>"$1"
}

# The files that policies need beside $TINY: its first layers as auxiliary models, an untrained acceptance head, a
# profile.
aux_of_tiny() {
    accept_head "$TMP/accept" 64
    head -c 8000 docs/methods.md >"$TMP/profile.txt"
    "$PROGRAM" train profile --model "$TINY" --draft self:1 --companion self:2 --text "$TMP/profile.txt" --tokens 100 --response 8 \
        --prompt-tokens 8 --temp 0 --out "$TMP/profile.json" >/dev/null 2>&1 || exit 1
    AUX="--draft self:1 --companion self:2 --accept $TMP/accept --profile $TMP/profile.json"
}

policies_of_tiny() { # those that run on it: no feature drafter belongs to it (test_golden_eagle has some)
    "$PROGRAM" --list-policies | sed -n 's/^\([a-z][a-z_0-9]*\) .*/\1/p' | grep -vxE 'eagle|dspark|dflash|mtp'
}

one_line() { # of stderr, with the program's name, and no control character
    [ "$(wc -l <"$TMP/err")" -eq 1 ] && grep -q '^specscope: .' "$TMP/err" &&
        [ "$(tr -d '\n -~\200-\377' <"$TMP/err" | wc -c)" -eq 0 ]
}

refused_as() { # status
    [ "$status" -eq "$1" ] && [ ! -s "$TMP/out" ] && one_line
}

refuses() { # sentence, status, pattern in the message, arguments
    sentence=$1 wanted=$2 pattern=$3
    shift 3
    specscope "$@"
    check "$sentence" refused_as "$wanted"
    check "$sentence, and the message gives the reason" grep -q -e "$pattern" "$TMP/err"
}

works() { # sentence, arguments
    sentence=$1
    shift
    specscope "$@"
    check "$sentence" [ "$status" -eq 0 ]
}

wait_until() { # command…: waits until it passes; gives up after minutes, so that a failure ends
    tries=6000
    while ! "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.05
    done
}

# Runs the command in a terminal of its own (util-linux' script); $TMP/screen contains the bytes that reached the
# terminal.
in_terminal() { # command line for sh
    TERM=xterm-256color timeout 600 script -qec "stty rows 40 cols 140; $1" /dev/null >"$TMP/screen" 2>&1 </dev/null
}

# Evaluates an expression over `j`, the JSON value of the file, with python3 if it is installed.
json_holds() { # file, expression
    python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' "$1" "$2"
}
HAVE_PYTHON=
if command -v python3 >/dev/null 2>&1; then HAVE_PYTHON=yes; fi
