#!/bin/sh
# Collects everything that the first ten minutes on a GPU need, for a machine with only the driver: programs, their
# shared libraries, tmux, scripts, models. On that machine run `./first` or `./first bench`. A kit has the layout of
# this tree, with programs in build/, so that programs find their files.
# usage: tests/cuda/kit.sh KIT PROGRAM...; programs in a folder tests/ are copied to build/tests/
# NVCC: the compiler of the CUDA code; the kit records its version.
# BARE=1: only programs and libraries, for a machine that has this tree; `make test-cuda` finds the kit in build/
# (here.sh).
# WITH_CUBLAS=1: also cuBLASLt, half a gigabyte that training needs; otherwise it is searched for on the other machine.
# SANITIZER=1: also the toolkit's compute-sanitizer, which is large. STRIP=no: keeps debugging symbols.
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
# Libraries, except those of libc, which belong to the other machine's loader.
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
