#!/bin/sh
# The ledger's marks, live: a change without effect, one with a forecast, and one that changes the text.
BUILD=${BUILD:-build}
. tests/screens/lib.sh

cat >"$WORK/marks.script" <<'END'
:wait round 30
:set seed 2
:step 20
:wait round 50
:wait idle
:wait what-if
:save-screen nothing.txt
:set w_max 1
:step 40
:wait round 90
:wait idle
:wait what-if
:save-screen shorter.txt
:set temperature 0.7
:step 20
:wait round 110
:wait idle
:save-screen sampled.txt
:quit
END
terminal 160x48 "$PROGRAM -n 300 --ignore-eos --probe all -p 'Three mice sat on a wall,' --script $WORK/marks.script"
check "a script of changes ends well" exits 0
row() { # saved screen, letter
    grep -m 1 "[│┃]▸\{0,1\} *$2[★☆ ] " "$WORK/run/$1.txt"
}
check "a change of the seed has no mark in greedy decoding" sh -c "echo '$(row nothing B)' | grep -q 'seed 2 .*+0.0% ±0.0 ≈'"
check "the ledger marks drafts of one token by a forecast on the same text" sh -c "echo '$(row shorter C)' | grep -q 'w_max 1 .*[+-][0-9.]*% ±[0-9.]* [▲▼≈]'"
check "the ledger marks a sampled text as another text" sh -c "echo '$(row sampled D)' | grep -q 'T 0.7 .* ≠ text'"
exit $STATUS
