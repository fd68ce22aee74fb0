#!/bin/sh
# specscope bench --grid and --csv: the grid's points, the best one, and refusals.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

works "bench --grid sweeps two knobs of layerskip" bench -n 24 --repeat 1 -p hello --policy layerskip --policy del --grid exit_layer=1:3:1 \
    --grid gamma=2:6:2 --csv "$TMP/grid.csv" "$TINY"
check "bench --grid prints a line for each pair of values" sh -c "[ \$(grep -c '^layerskip .*exit_layer=[123] gamma=[246]\$' '$TMP/out') -eq 9 ]"
check "bench --grid runs a policy without those knobs once" sh -c "[ \$(grep -c '^del .*yes$' '$TMP/out') -eq 1 ]"
check "the table of bench --grid is sorted by speedup" sh -c "sed -n 's/^[a-z]* *[0-9.]* *\([0-9.]*\) .*yes.*/\1/p' '$TMP/out' | sort -rnc"
check "bench --grid names the best point by speedup and by eTPL" \
    grep -Eq '^best layerskip: by speedup exit_layer=. gamma=. \(.* x ar.*\), by eTPL exit_layer=. gamma=. ' "$TMP/out"
check "the CSV of a grid has a line for each point" sh -c "[ \$(wc -l <'$TMP/grid.csv') -eq 12 ]"
if [ -n "$HAVE_PYTHON" ]; then
    check "the points that bench --grid names are the best in its CSV" python3 - "$TMP/grid.csv" "$TMP/out" <<'PY'
import csv, re, sys
rows = [r for r in csv.DictReader(open(sys.argv[1], newline="")) if r["policy"] == "layerskip"]
line = next(l for l in open(sys.argv[2]) if l.startswith("best layerskip"))
fast, lean = re.search(r"by speedup (\S+ \S+) \(.*by eTPL (\S+ \S+) \(", line).groups()
assert max(rows, key=lambda r: float(r["speedup"]))["params"] == fast
assert max(rows, key=lambda r: float(r["etpl"]))["params"] == lean
assert all(r["lossless"] == "yes" for r in rows)
PY
fi
check "bench --grid calls no setting faster after one pass" grep -q '^best layerskip: .*one pass has no interval' "$TMP/out"
works "bench --grid measures several passes" bench -n 24 --repeat 3 -p hello --policy layerskip --grid gamma=2:6:2 "$TINY"
check "the table of several passes has the interval of each speedup" grep -Eq '^layerskip +[0-9.]+ +[0-9.]+ +[0-9]+\.[0-9]{2} +[0-9]+\.[0-9]{2} ' "$TMP/out"
check "the best point is faster than all others, or those without a clear difference are named" \
    grep -Eq '^best layerskip: by speedup gamma=. \([0-9.]+ x ar, [0-9.]+ to [0-9.]+; (faster than each other point|no clear difference from gamma=.(, gamma=.)?)\)' "$TMP/out"
works "bench --csv - works" bench -n 8 --repeat 1 -p hello --policy ar --csv - "$TINY"
check "bench --csv - prints the CSV alone on stdout" sh -c "[ \$(wc -l <'$TMP/out') -eq 2 ]"
works "bench --grid sweeps fractions" bench -n 8 --repeat 1 -p hello --policy specbound --grid tau=0.5:0.8:0.1 "$TINY"
check "the end of a fractional range is a point" sh -c "[ \$(grep -c '^specbound .*tau=0.[5678]\$' '$TMP/out') -eq 4 ]"

refuses "a grid of too many points is refused" 2 'more than 1000 points' bench --grid gamma=1:32:1 --grid exit_layer=1:3:1 \
    --grid tau=0:1:0.01 --grid omega=0:1:0.01 --grid w_max=1:32:1 "$TINY"
refuses "one range of too many points is refused" 2 '1000 are possible' bench --grid tau=0:1:0.000001 "$TINY"
refuses "a grid of no policy's knob is refused" 2 'none of these policies' bench --policy ar --grid gamma=1:2:1 "$TINY"
refuses "values out of bounds are refused" 2 'exit_layer = 4' bench --policy layerskip --grid exit_layer=2:9:1 "$TINY"
refuses "values between the knob's steps are refused" 2 'between' bench --policy layerskip --grid gamma=1:3:0.5 "$TINY"
refuses "a knob can't be set and swept" 2 'gamma' bench --policy layerskip --set gamma=2 --grid gamma=1:3:1 "$TINY"
refuses "a knob can't be swept twice" 2 'already' bench --policy layerskip --grid gamma=1:3:1 --grid gamma=4:5:1 "$TINY"
refuses "a choice can't be swept" 2 'choice' bench --policy del --grid length=0:1:1 "$TINY"
for grid in gamma gamma=1 gamma=1:2 gamma=2:1:1 gamma=1:2:0 gamma=1:2:-1 gamma=1:2:x gamma=a:b:c =1:2:1 gamma=1:nan:1; do
    refuses "a malformed grid is refused ($grid)" 2 'from:to:step' bench --grid $grid "$TINY"
done
refuses "a CSV file that can't be written is named" 1 "$TMP/no/x" bench -n 2 --repeat 1 --policy ar --csv "$TMP/no/x" -p a "$TINY"
if [ -w /dev/full ]; then
    specscope bench -n 2 --repeat 1 --policy ar --csv /dev/full --json "$TMP/whole" -p a "$TINY"
    check "bench --csv on a full disk exits with status 1" [ "$status" -eq 1 ]
    check "bench --csv on a full disk names the file" grep -q '/dev/full' "$TMP/err"
    check "the table is whole although the CSV's disk is full" grep -q '^ar ' "$TMP/out"
    check "the JSON is whole although the CSV's disk is full" grep -q '"tok_per_s"' "$TMP/whole"
else
    skip "bench --csv on a full disk exits with status 1" "there is no /dev/full"
fi
finish
