#!/bin/sh
# make install: the installed program works in a folder far from the source tree.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

PREFIX=/opt/scope
ROOT=$TMP/root
case $BUILD in "$PWD"/*) from=${BUILD#"$PWD"/} ;; *) from=$BUILD ;; esac
check "make install installs the program" make -s -o all install BUILD="$from" PREFIX="$PREFIX" DESTDIR="$ROOT"
cd "$TMP" || exit 1 # nothing of the tree is near
PROGRAM=$ROOT$PREFIX/bin/specscope
works "the installed program finds the bundled model" run -n 4
works "the installed program finds the bundled prompts and trained heads" bench -n 4 --repeat 1 --policy specbound --head lens --head trained
check "bench measures the installed lens and trained heads" grep -q 'head=trained' "$TMP/out"
check "make install installs the plug-in for training's products" sh -c "'$PROGRAM' doctor | grep BLAS | grep -vq 'no specscope-blas.so'"
check "make install installs the plug-in for servers" sh -c "'$PROGRAM' doctor | grep -q '^ok    servers  *libcurl'"
check "make install installs the themes" [ -s "$ROOT$PREFIX/share/specscope/themes/dark.json" ]
for file in bash-completion/completions/specscope zsh/site-functions/_specscope fish/vendor_completions.d/specscope.fish; do
    check "make install installs the completions $file" [ -s "$ROOT$PREFIX/share/$file" ]
done
check "make install installs the manual" [ -s "$ROOT$PREFIX/share/man/man1/specscope.1" ]

cd - >/dev/null || exit 1
check "make uninstall removes the program" make -s uninstall PREFIX="$PREFIX" DESTDIR="$ROOT"
check "make uninstall leaves no file" sh -c "[ -z \"\$(find '$ROOT' -type f)\" ]"
finish
