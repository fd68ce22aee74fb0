#!/bin/sh
# make install: the installed program works in a folder far from the source tree.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

PREFIX=/opt/scope
ROOT=$TMP/root
case $BUILD in "$PWD"/*) from=${BUILD#"$PWD"/} ;; *) from=$BUILD ;; esac
check "it installs" make -s -o all install BUILD="$from" PREFIX="$PREFIX" DESTDIR="$ROOT"
cd "$TMP" || exit 1 # nothing of the tree is near
PROGRAM=$ROOT$PREFIX/bin/specscope
works "the bundled model is found" run -n 4
works "its prompts and its trained heads too" bench -n 4 --repeat 1 --policy specbound --head lens --head trained
check "both were measured" grep -q 'head=trained' "$TMP/out"
check "and the plug-in for training's products" sh -c "'$PROGRAM' doctor | grep BLAS | grep -vq 'no specscope-blas.so'"
check "themes are there" [ -s "$ROOT$PREFIX/share/specscope/themes/dark.json" ]
for file in bash-completion/completions/specscope zsh/site-functions/_specscope fish/vendor_completions.d/specscope.fish; do
    check "completions are there: $file" [ -s "$ROOT$PREFIX/share/$file" ]
done
check "the manual is there" [ -s "$ROOT$PREFIX/share/man/man1/specscope.1" ]

cd - >/dev/null || exit 1
check "it can be taken away" make -s uninstall PREFIX="$PREFIX" DESTDIR="$ROOT"
check "and nothing is left" sh -c "[ -z \"\$(find '$ROOT' -type f)\" ]"
finish
