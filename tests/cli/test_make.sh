#!/bin/sh
# make on machines with other GPUs, nvcc, compilers and packages. Small programs replace these and record how they were
# called.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
FAKE=$TMP/fake
mkdir -p "$FAKE/bin"
PATH=$FAKE/bin:$PATH
unset MAKEFLAGS MFLAGS MAKELEVEL SANITIZE
playing() { # name; its script is on stdin
    { echo '#!/bin/sh'; cat; } >"$FAKE/bin/$1"
    chmod +x "$FAKE/bin/$1"
}
playing nvidia-smi <<'SCRIPT'
[ -n "$CAPABILITY" ] && echo "$CAPABILITY" && exit
echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
exit 9
SCRIPT
playing nvcc <<'SCRIPT'
[ "$1" = --list-gpu-code ] && echo $LISTED && exit
[ "$1" = --dryrun ] && exit
[ "$1" = --version ] && echo "Cuda compilation tools, release 13.0, V13.0.48" && exit
echo "$@" >>"$CALLS"
while [ "$1" != -o ]; do shift; done
: >"$2"
SCRIPT
playing cc <<'SCRIPT'
while [ $# -gt 1 ] && [ "$1" != -o ]; do shift; done
[ "$1" = -o ] && : >"$2"
exit 0
SCRIPT
export CALLS="$TMP/calls"

group "the CUDA plug-in"
CODE='sm_80 sm_86 sm_89 sm_90 compute_90'
calls_of() { # make's arguments
    : >"$CALLS"
    make -s "$@" BUILD="$TMP/build" NVCC="$FAKE/bin/nvcc" CC="$FAKE/bin/cc" V=1 >"$TMP/made" 2>&1
}
sorted() {
    printf '%s\n' "$@" | sort | tr '\n' ' ' | sed 's/ $//'
}
compiled_for() { # what nvcc was asked for, in all its calls
    [ "$(grep -o 'code=[a-z_0-9]*' "$CALLS" | sort -u | cut -d= -f2 | tr '\n' ' ')" = "$1 " ]
}
answers() { # capabilities, answer
    # shellcheck disable=SC2086 # a list
    [ "$(CAPABILITY="$1" .ci/gpus /dev/null $CODE)" = "$2" ]
}
check "make compiles a GPU's own code" answers 9.0 sm_90
check "make compiles the code of a GPU's family where its own is not listed" answers 8.7 sm_86
check "make compiles code for a newer GPU that its driver can translate" answers 12.1 compute_90
check "make compiles the code of each of several GPUs" answers '8.9
8.0' "sm_80 sm_89"
check "make compiles nothing for a GPU that is too old" answers 7.5 ''
if [ ! -e /dev/nvidia0 ]; then
    check "make compiles nothing for the GPU without a GPU" answers '' ''
fi
export CAPABILITY=9.0
calls_of cuda-here
check "make run compiles the plug-in for the GPU that is here" compiled_for sm_90
calls_of cuda-here
check "make run compiles the plug-in once" [ ! -s "$CALLS" ]
calls_of cuda
check "make cuda compiles the plug-in for all GPUs" compiled_for "$(sorted $CODE)"
calls_of cuda-here
check "make run uses the plug-in of make cuda" [ ! -s "$CALLS" ]
export LISTED='sm_75 sm_90 sm_100 sm_103 sm_120'
calls_of cuda
check "make cuda compiles for newer GPUs that nvcc knows" compiled_for "$(sorted $CODE sm_100 sm_120)"
check "nvcc is told never to fuse a multiplication and an addition" \
    [ "$(grep -c -- '-c kernels' "$CALLS")" -eq "$(grep -c -- '-fmad=false.*-c kernels' "$CALLS")" ]
export LISTED=
export CAPABILITY=
rm -rf "$TMP/build"
calls_of cuda-here
check "without a GPU make run leaves nvcc alone" [ ! -s "$CALLS" ]
calls_of all -n
check "make without a GPU leaves nvcc alone" sh -c "grep -q specscope '$TMP/made' && ! grep -q nvcc '$TMP/made'"
calls_of test -n
check "make test without a GPU leaves nvcc alone" sh -c "grep -q tests/run.sh '$TMP/made' && ! grep -q nvcc '$TMP/made'"
calls_of test-long -n
check "make test-long builds the plug-in" grep -q "nvcc.*specscope-cuda.so" "$TMP/made"

group "jobs"
check "make run has a job for each processor" sh -c \
    "make -n run BUILD='$TMP/build' | grep -q -e ' -j$(getconf _NPROCESSORS_ONLN) .*specscope'"
check "make run has as many jobs as -j gives" sh -c "make -n -j3 run BUILD='$TMP/build' >'$TMP/made' 2>&1; ! grep -q -e ' -j[0-9]' '$TMP/made'"

group "scripts"
for script in $(grep -o '[@ (]\(tests/[a-z_/]*\.sh\|\.ci/[a-z]*\) ' Makefile | tr -d '@ (' | sort -u); do
    check "$script can be executed" [ -x "$script" ]
done

group "files that packaging leaves"
if [ -e /usr/share/dpkg/default.mk ]; then
    mkdir -p "$TMP/package/build"
    cp -r debian "$TMP/package/"
    : >"$TMP/package/build/kept"
    check "cleaning the Debian package leaves build/ as it is" sh -c \
        "cd '$TMP/package' && make -s -f debian/rules override_dh_auto_clean && [ -e build/kept ]"
else
    skip "cleaning the Debian package leaves build/ as it is" "there is no dpkg-dev"
fi
if git rev-parse --git-dir >/dev/null 2>&1; then
    git check-ignore build-debian/a python/build/lib/a.py python/specscope_trace.egg-info/PKG-INFO >"$TMP/ignored"
    check "git ignores the files that dpkg-buildpackage and pip leave" [ "$(wc -l <"$TMP/ignored")" -eq 3 ]
else
    skip "git ignores the files that dpkg-buildpackage and pip leave" "this is no clone"
fi

group "packages"
playing id <<'SCRIPT'
echo 0
SCRIPT
playing apt-get <<'SCRIPT'
mkdir "$CALLS.lock" || echo "apt-get is running already" >>"$CALLS"
echo "apt-get $*" >>"$CALLS"
sleep 0.3
rmdir "$CALLS.lock"
SCRIPT
playing cc <<'SCRIPT'
what=$(sed -n 's/.*<\(csv\|cmocka\)\.h>$/lib\1-dev/p') # these two are missing until apt-get brings them
[ -z "$what" ] || grep -q "$what" "$CALLS"
SCRIPT
: >"$CALLS"
check ".ci/deps installs packages that are missing" make -s -j4 deps-test deps BUILD="$TMP/build" CC="$FAKE/bin/cc"
check ".ci/deps installs packages for building and for testing" sh -c "grep -q libcsv-dev '$CALLS' && grep -q libcmocka-dev '$CALLS'"
check ".ci/deps installs a missing compiler as a package" sh -c "CC='$TMP/no/cc' .ci/deps build 2>&1 | grep -q 'installing gcc '"
playing pkg-config <<'SCRIPT'
exit 1
SCRIPT
playing apt-get <<'SCRIPT'
echo "apt-get $*" >>"$CALLS"
case $* in *libcairo2-dev*) exit 1 ;; esac
SCRIPT
rm -rf "$TMP/build"
check "make deps works without cairo" make -s deps BUILD="$TMP/build" CC="$FAKE/bin/cc"
check "make deps tries to install cairo" grep -q libcairo2-dev "$CALLS"
playing cc <<'SCRIPT'
case $* in *-ltinfo*) exit 1 ;; esac # ncurses has its terminfo in itself, as on macOS
exit 0
SCRIPT
check "make links ncurses where it is one library" sh -c "make -n V=1 all BUILD='$TMP/build' CC='$FAKE/bin/cc' NVCC= >'$TMP/made' 2>&1 &&
    grep -q -e '-lncursesw -lcsv' '$TMP/made' && ! grep -q -e -ltinfo '$TMP/made'"
check ".ci/deps runs one apt-get at a time" sh -c "! grep -q already '$CALLS'"
finish
