#!/bin/sh
# The commands of docs/faq.md work and print what the page describes. Each generates fewer tokens than on the page;
# SPECSCOPE_LONG=1 runs them unchanged.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
FAQ=docs/faq.md
SHORT="-n 2 --repeat 1"
[ -z "${SPECSCOPE_LONG:-}" ] || SHORT=
sed -n '/^```$/,/^```$/s/^specscope //p' $FAQ >"$TMP/commands"
check "the FAQ has at least eight commands" [ "$(wc -l <"$TMP/commands")" -ge 8 ]
while read -r line; do
    more=
    case $line in *--steps*) more=${SHORT:+$TINY} ;; bench*) more=$SHORT ;; esac # a small model has smaller steps
    sh -c "'$PROGRAM' $line $more" >"$TMP/out" 2>"$TMP/err" </dev/null
    status=$?
    check "the FAQ's command works: specscope $line" [ $status -eq 0 ]
    cat "$TMP/out" "$TMP/err" >>"$TMP/all"
done <"$TMP/commands"
for word in 'x ar' from to lossless modelled meas/mod accept tok/round discard 'all in' 'verify  8 rows' 'probe, against a layer' ρ draft heads \
    verify probes waited learned 'best layerskip'; do
    check "the FAQ's commands print '$word'" grep -qF -e "$word" "$TMP/all"
done
finish
