#!/bin/sh
# Prints a checksum of the sources. A kit stores it, so that a kit of other sources is recognised.
# usage: tests/cuda/made_of.sh
cd "$(dirname "$0")/../.." || exit 1
find Makefile base kernels engine policies traces tui cli tests/rigs tests/golden tests/unit tests/cuda/smoke tests/bench \
    \( -name Makefile -o -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.inc' \) -type f | LC_ALL=C sort | xargs cat | cksum
