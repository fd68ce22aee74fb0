#!/bin/sh
# A run takes the memory that info prints, within 5%, and never holds the weights twice.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
SYNTH=$BUILD/tests/synth
CTX=48

# Prints the peak memory of a run in KiB, as the kernel counts it.
peak() { # model
    most=$(python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' \
        "$PROGRAM" run --backend cpu -t 2 --policy ar --ignore-eos -n $((CTX - 2)) -c "$CTX" -p a "$1")
}
said() { # model: KiB
    "$PROGRAM" info --json -c "$CTX" "$1" | sed -n 's/.*"run_bytes":[[:space:]]*\([0-9]*\).*/\1/p' | awk '{ print int($1 / 1024) }'
}
near() { # number, number, share
    awk -v a="$1" -v b="$2" -v share="$3" 'BEGIN { exit !(a > b * (1 - share) && a < b * (1 + share)) }'
}

# Limits of the stack and of open files.
(ulimit -s 64 && "$PROGRAM" run -n 2 -p a "$TINY") >"$TMP/out" 2>"$TMP/err"
check "a stack of 64 KiB is refused" test $? = 1
check "the refusal of a small stack is one line that names the limit" sh -c "test \$(wc -l <'$TMP/err') = 1 && grep -q 'ulimit -s' '$TMP/err'"
if command -v script >/dev/null; then
    # standard input, output and error, and one or two files more
    for files in 5 6; do
        TERM=xterm script -qec "sh -c 'ulimit -n $files; exec \"$PROGRAM\" --once --quit-at-end'" /dev/null </dev/null >"$TMP/out" 2>&1
        check "the scope with $files open files at most names them, not the terminal's type" grep -qE 'Too many open files|No file descriptors' "$TMP/out"
    done
fi

case $BUILD in */sanitize*) skip "a run holds the memory that info prints" "sanitizers take more" && finish ;; esac
if [ -z "$HAVE_PYTHON" ] || [ "$(uname)" != Linux ]; then # elsewhere ru_maxrss has another unit
    skip "a run holds the memory that info prints" "there is no python3, or no Linux"
    finish
fi
for type in q8_0 f16; do
    "$SYNTH" "$TMP/model.gguf" SmolLM-135M --type $type >"$TMP/out" 2>"$TMP/err"
    peak "$TMP/model.gguf"
    told=$(said "$TMP/model.gguf")
    check "a run with $type holds the memory that info prints, within 5%: $most KiB, printed $told" near "$most" "$told" 0.05
done
finish
