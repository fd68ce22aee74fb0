#!/bin/sh
# Completes the golden folders for model loaders: links the files of shared/ into every folder that has none of its own
# by that name. git ignores the links. The Makefile runs this script before it links a test program; by hand: sh
# tests/golden/assemble.sh
set -eu
cd "$(dirname "$0")"
for folder in models/*/ families/*/ packed/*/ eagle/targets/*/; do
    case $folder in eagle/*) up=../../.. ;; *) up=../.. ;; esac
    set --
    for file in shared/*; do
        [ -e "$folder${file##*/}" ] || set -- "$@" "$up/$file"
    done
    [ $# -eq 0 ] || ln -sf "$@" "$folder"
done
