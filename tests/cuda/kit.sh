#!/bin/sh
# Collects what the first ten minutes on a GPU need, for a machine that has the driver and nothing else: programs, the
# libraries they are linked with, tmux, scripts, models. There: `./first`, or `./first bench`.
# A kit is laid out as this tree is, with what was built in build/, so that programs find the rest as they do here.
# usage: tests/cuda/kit.sh KIT PROGRAM...; what lies in a folder tests/ goes into build/tests/
# NVCC: the compiler of the CUDA code; the kit records its version.
# BARE=1: programs and libraries alone, for a machine that has this tree: in its build/ `make test-cuda` finds it (here.sh).
# WITH_CUBLAS=1: also cuBLASLt, half a gigabyte that training needs; without, it is looked for there.
# SANITIZER=1: also the toolkit's compute-sanitizer, which is large. STRIP=no: debugging symbols stay.
set -eu
cd "$(dirname "$0")/../.."
KIT=$1
shift
BUILT=$KIT/build
mkdir -p "$BUILT/tests" "$BUILT/bin" "$BUILT/lib" "$BUILT/terminfo"
for program in "$@"; do
    case ${program%/*} in */tests) to=$BUILT/tests/${program##*/} ;; *) to=$BUILT/${program##*/} ;; esac
    cp "$program" "$to"
    [ "${STRIP:-}" = no ] || strip --strip-debug "$to"
done
if tmux=$(command -v tmux); then cp "$tmux" "$BUILT/bin/"; fi
for terminal in xterm-256color screen screen-256color tmux-256color; do
    infocmp -x $terminal >"$BUILT/terminfo/source" 2>/dev/null && tic -x -o "$BUILT/terminfo" "$BUILT/terminfo/source" 2>/dev/null ||
        true
done
rm -f "$BUILT/terminfo/source"
# Libraries, but those of libc, which belong to the loader that is there.
find "$BUILT" -type f \( -perm -u+x -o -name '*.so' \) -exec ldd {} + 2>/dev/null | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' |
    sort -u | grep -v '/lib\(c\|m\|dl\|pthread\|rt\)\.so' | grep -v "${WITH_CUBLAS:+no}/libcublasLt" | while read -r library; do cp -L "$library" "$BUILT/lib/"; done
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/compute-sanitizer/compute-sanitizer 2>/dev/null || true)
if [ -n "${SANITIZER:-}" ] && [ -n "$sanitizer" ]; then
    cp -r "$(dirname "$(readlink -f "$sanitizer")")" "$BUILT/compute-sanitizer"
fi
{ tests/cuda/made_of.sh; [ -z "${NVCC:-}" ] || "$NVCC" --version | sed -n 's/.*release \([0-9.]*\).*/CUDA \1/p'; } >"$KIT/made-of"
[ -z "${BARE:-}" ] || exit 0

mkdir -p "$KIT/tests/cuda" "$KIT/tests/bench" "$KIT/tests/golden" "$KIT/models" "$KIT/themes" "$KIT/docs"
cp tests/cuda/*.sh "$KIT/tests/cuda/"
cp tests/bench/scope_cost.sh "$KIT/tests/bench/"
cp models/*.gguf models/*.safetensors models/*.json models/*.jsonl "$KIT/models/"
cp themes/*.json "$KIT/themes/"
cp -rL tests/golden/families tests/golden/packed "$KIT/tests/golden/"
cp docs/cuda.md docs/measurements.md "$KIT/docs/"
cp LICENSE "$KIT/"
printf '#!/bin/sh\n# The first ten minutes on a GPU (docs/cuda.md); `./first bench`: figures alone.\nexec sh "$(dirname "$0")/tests/cuda/run.sh" "$(dirname "$0")/build" "${1:-test}"\n' >"$KIT/first"
chmod +x "$KIT/first"
