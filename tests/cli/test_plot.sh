#!/bin/sh
# specscope plot: each kind of figure in each format, and refusals.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

TRACES=tests/screens/traces
SWEEP=tests/golden/figures/two.csv
OUT=$TMP/figure
kinds="layers series exits positions reliability mask grid pareto versus score"
inputs() { # kind
    case $1 in
    mask) echo $TRACES/swift ;;
    grid) echo $SWEEP ;;
    pareto) echo $SWEEP $TRACES/turned ;;
    score) echo tests/golden/figures/score.json ;;
    versus) echo $TRACES/swift $TRACES/del ;;
    *) echo $TRACES/turned ;;
    esac
}

group "refusals that need no cairo"
refuses "plot without arguments is refused" 2 'which trace' plot
refuses "plot of a trace without a kind is refused" 2 'which figure of a.csv. .* plot TRACE KIND -o FILE; KIND is one of layers, series, .*, score$' plot a.csv -o "$TMP/a.svg"
refuses "plot of a kind without a trace is refused" 2 'of which trace' plot layers
refuses "plot without an output file is refused" 2 'into which file' plot $TRACES/del layers
refuses "plot of an unknown kind is refused with a list of kinds" 2 'layers, series, exits, positions, reliability, mask, grid, pareto, versus and score' plot $TRACES/del pie -o "$OUT.svg"
refuses "plot into a file of an unknown format is refused" 2 '.svg, .pdf or .png' plot $TRACES/del layers -o "$OUT.jpg"
refuses "plot of a trace that is not there is refused" 1 'No such file' plot "$TMP/none" layers -o "$OUT.svg"
refuses "plot of a kind that the trace has nothing for is refused" 2 'policy swift' plot $TRACES/del mask -o "$OUT.svg"
refuses "plot versus of one trace is refused" 2 'two traces' plot $TRACES/del versus -o "$OUT.svg"
refuses "plot grid of a trace is refused" 2 'bench --grid' plot $TRACES/del grid -o "$OUT.svg"
refuses "plot with a width without a unit is refused" 2 '85mm' plot $TRACES/del layers --width 85 -o "$OUT.svg"
refuses "plot with a width that is too narrow is refused" 2 '45mm at least' plot $TRACES/del series --width 20mm -o "$OUT.svg"
refuses "plot of a range that ends before it begins is refused" 2 'beyond' plot $TRACES/del series --from 9 --to 3 -o "$OUT.svg"
refuses "plot of a range after the end of the trace is refused" 2 'ends before position 900' plot $TRACES/del layers --from 900 -o "$OUT.svg"
refuses "plot of an unknown measure is refused" 2 'tokens_per_round' plot $SWEEP grid --measure joy -o "$OUT.svg"
mkdir "$TMP/empty" && cp $TRACES/del/* "$TMP/empty" && for table in tokens layers series controls rounds vocab; do
    head -n 1 $TRACES/del/$table.csv >"$TMP/empty/$table.csv"
done
refuses "plot of a trace without a round is refused" 2 'no whole round' plot "$TMP/empty" exits -o "$OUT.svg"
printf 'not,a\r\n"benchmark' >"$TMP/bad.csv"
refuses "plot grid of a file that is no benchmark is refused" 1 'bad.csv' plot "$TMP/bad.csv" grid -o "$OUT.svg"
check "a refused plot writes nothing" [ -z "$(ls "$OUT".* 2>/dev/null)" ]
for kind in $kinds; do
    check "plot --help describes $kind" sh -c "'$PROGRAM' plot --help | grep -q '^  $kind '"
done

group "a program that was built without cairo"
case $BUILD in "$PWD"/*) built=${BUILD#"$PWD"/} ;; *) built=build ;; esac
case $built in
*sanitize*) skip "the program is built without cairo" "this one is instrumented" ;;
*)
    COPY=$TMP/tree
    mkdir -p "$COPY/$built"
    cp -a .ci Makefile base cli engine kernels policies tests themes traces tui "$COPY"
    cp -a "$BUILD/obj" "$BUILD/gen" "$BUILD/.deps" "$BUILD/libspecscope.a" "$COPY/$built" # so that little is compiled
    check "the program is built without cairo" make -s -C "$COPY" NVCC= CAIRO= BUILD="$built" "$built/specscope"
    with=$PROGRAM PROGRAM=$COPY/$built/specscope
    refuses "a program without cairo prints in one line what to install" 1 'libcairo2-dev' plot $TRACES/del exits -o "$OUT.svg"
    refuses "a program without cairo reports other errors of a figure first" 2 'there is no figure' plot $TRACES/del pie -o "$OUT.svg"
    PROGRAM=$with
    ;;
esac

specscope plot $TRACES/del exits -o "$OUT.svg"
if grep -q 'built without' "$TMP/err"; then
    skip "plot draws figures" "there is no cairo"
    finish
fi

group "files"
is_svg() { # file
    head -c 200 "$1" | grep -q '<svg' && [ "$(wc -c <"$1")" -gt 3000 ] && tail -c 20 "$1" | grep -q '</svg>'
}
for kind in $kinds; do
    for end in svg pdf png; do
        # shellcheck disable=SC2046 # a list
        works "plot draws $kind as $end" plot $(inputs "$kind") "$kind" -o "$OUT-$kind.$end"
    done
    check "plot writes $kind as an SVG" is_svg "$OUT-$kind.svg"
    check "plot writes $kind as a PDF" sh -c "head -c 5 '$OUT-$kind.pdf' | grep -q '%PDF-' && tail -c 10 '$OUT-$kind.pdf' | grep -q '%%EOF'"
    check "plot writes $kind as a PNG" sh -c "head -c 4 '$OUT-$kind.png' | od -An -tx1 | grep -q '89 50 4e 47'"
    if [ -n "$HAVE_PYTHON" ]; then
        check "plot writes $kind as a well-formed SVG without a bitmap" python3 -c 'import sys, xml.etree.ElementTree as x
names = [e.tag.split("}")[1] for e in x.parse(sys.argv[1]).iter()]
sys.exit(not (len(names) > 50 and "image" not in names and ("use" in names or "text" in names)))' "$OUT-$kind.svg"
    fi
done
check "plot prints nothing" [ ! -s "$TMP/out" ] && [ ! -s "$TMP/err" ]
works "plot accepts the kind before the trace" plot layers $TRACES/specbound -o "$TMP/first.svg"
works "plot accepts a width in inches" plot $TRACES/del reliability --width 3.5in -o "$TMP/wide.svg"
check "plot draws a figure of 3.5 inches that wide" grep -q 'width="252pt"' "$TMP/wide.svg"
mkdir "$TMP/fonts"
printf '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>%s</dir><cachedir>%s</cachedir></fontconfig>' \
    "$TMP/fonts" "$TMP/fonts" >"$TMP/fonts.conf"
export FONTCONFIG_FILE="$TMP/fonts.conf"
works "plot draws a figure without fonts for its characters" plot $TRACES/del exits --caption "一只小猫" -o "$TMP/caption.png"
check "plot reports characters without a font, and what to install" grep -q 'caption.png: no font here has .* drawn as boxes; install a font' "$TMP/err"
unset FONTCONFIG_FILE
works "plot accepts a caption with any characters" plot $TRACES/del exits --caption "$(printf 'x <&> \033[2J\377 "y"')" -o "$TMP/caption.svg"
if [ -n "$HAVE_PYTHON" ]; then
    check "any characters in a caption leave the SVG well-formed" python3 -c 'import sys, xml.etree.ElementTree as x; x.parse(sys.argv[1])' "$TMP/caption.svg"
fi
refuses "plot into a file that can't be written is refused" 1 "$TMP/no/x.svg" plot $TRACES/del exits -o "$TMP/no/x.svg"
mkdir "$TMP/small"
check "a figure over the limit of files' sizes is an error" sh -c "ulimit -f 4; '$PROGRAM' plot $TRACES/del exits -o '$TMP/small/x.svg' 2>'$TMP/err'; [ \$? -eq 1 ]"
check "a figure over the limit of files' sizes is reported in a line" grep -q '^specscope: .*x.svg: .*File too large$' "$TMP/err"
check "a figure over the limit of files' sizes leaves no part" [ -z "$(ls "$TMP/small")" ]
echo before >"$TMP/kept.svg"
refuses "plot of a range without a round is refused" 2 'no round' plot $TRACES/del series --from 99 -o "$TMP/kept.svg"
check "a refused plot leaves the old file unchanged" grep -qx before "$TMP/kept.svg"

group "a new run with several sequences"
works "run --trace writes a trace" run -n 40 --ignore-eos --policy layerskip --trace "$TMP/own" -p hello "$TINY"
works "plot draws the trace of run" plot "$TMP/own" exits -o "$TMP/own.svg"
"$PROGRAM" run -n 0 -c 200000 --ignore-eos --trace "$TMP/growing" "$TINY" >/dev/null 2>&1 &
pid=$!
wait_until sh -c "[ \$(wc -l <'$TMP/growing/rounds.csv') -gt 20 ]"
works "plot draws a trace while it grows" plot "$TMP/growing" series --to 15 -o "$TMP/growing.svg"
kill -KILL $pid
wait $pid 2>/dev/null

finish
