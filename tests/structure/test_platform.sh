#!/bin/sh
# Features that only Linux has are used in base/platform.c, or are read from files that may be missing. Prints TAP. The
# recipes for other systems' packages can be parsed, if their programs are installed, and contain the same version.
# usage: tests/structure/test_platform.sh [TREE]
cd "${1:-$(dirname "$0")/../..}" || exit 1
. tests/structure/report.sh
# Calls, constants and headers of Linux or its C library that macOS and the BSDs lack. Instruction sets ask the
# processor's way.
LINUX='memfd_create|dup3|pipe2|accept4|eventfd|signalfd|timerfd|epoll_|inotify_|sched_(get|set)affinity|CPU_COUNT'
LINUX=$LINUX'|pthread_condattr_setclock|pthread_(get|set)affinity_np|pthread_barrier_|sem_timedwait|MADV_(HUGEPAGE|POPULATE)'
LINUX=$LINUX'|MAP_(POPULATE|HUGETLB|STACK)|O_(TMPFILE|PATH|DIRECT)\b|renameat2|copy_file_range|sendfile|splice|fallocate|mremap|prctl'
LINUX=$LINUX'|getauxval|secure_getenv|get_nprocs|strchrnul|mempcpy|qsort_r|program_invocation|canonicalize_file_name|\bst_[acm]tim\b'
LINUX=$LINUX'|sys/(sysinfo|epoll|eventfd|auxv|prctl|syscall)\.h|linux/|__linux__|__APPLE__|__GLIBC__'
# shellcheck disable=SC2046 # a list
found=$(sources base cli engine kernels policies traces tui |
    grep -vE '^base/platform\.c$|^kernels/cuda/|^kernels/cublas/|^kernels/cpu/(amx|neondot)\.c$' |
    xargs grep -nE "$LINUX" | grep -vE '^[^:]*:[0-9]*: ?\*|/\*.*('"$LINUX"')')
result "calls that only Linux has are in base/platform.c" "$found"
result "the check for calls that only Linux has finds them in base/platform.c" "$(grep -qE "$LINUX" base/platform.c || echo "  nothing there")"

version=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)
result "CHANGELOG.md begins with the version of debian/changelog" "$(grep -m 1 '^## ' CHANGELOG.md | grep -F "[$version]" >/dev/null || echo "  it does not begin with $version")"
readable() { # program, sentence, command
    if command -v "$1" >/dev/null 2>&1; then
        result "$2" "$(sh -c "$3" 2>&1 || echo "  it ends with $?")"
    else
        echo "ok - $2 # SKIP there is no $1"
    fi
}
readable ruby "the Homebrew formula is Ruby" "ruby -c packaging/specscope.rb >/dev/null"
readable nix-instantiate "the flake is Nix" "nix-instantiate --parse packaging/flake.nix >/dev/null 2>&1"
readable mandoc "the manual is mdoc without a fault" "mandoc -T lint -W warning docs/specscope.1"
result "no macro of the manual has a quote among its arguments" "$(grep -nE '^\.(Ql|Sq|Ar|Pa|Dl|Ic|Cm) .*"' docs/specscope.1)"
example='{"policy": "layerskip", "set": ["gamma=6"], "theme": "light"}'
for renderer in "groff -mdoc -Tutf8 -rLL=300n -ww" "mandoc -Tutf8 -Owidth=300"; do
    readable "${renderer%% *}" "${renderer%% *} shows the manual's quotes" "$renderer docs/specscope.1 | col -bx | grep -qF '$example'"
done
exit $status
