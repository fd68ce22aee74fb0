#!/bin/sh
# Runs on the portable kernels with one thread give the committed traces, except for times. tests/screens/make_traces.sh
# makes them. Ids, ranks and counts are compared exactly, and probabilities to 1e-4, because exp() differs between C
# libraries.
BUILD=${BUILD:-build}
. tests/screens/lib.sh
mask() { # the columns that tell the time are emptied
    awk -F, -v OFS=, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ /_us$/) t[i] = 1 } NR > 1 { for (i in t) $i = "" } { print }' "$1"
}
same() { # line by line, field by field
    awk -F'[,: "]+' 'function off(a, b) { d = a - b; return d < 0 ? -d : d }
        NR == FNR { line[FNR] = $0; n = FNR; next }
        { m = split(line[FNR], want); bad = m != NF
          for (i = 1; i <= NF && !bad; i++)
              bad = $i "" != want[i] "" && ($i !~ /[.e]/ || off($i, want[i]) > 1e-4 * (1 + off(want[i], 0)))
          if (bad) { print "line " FNR; print "- " line[FNR]; print "+ " $0; wrong = 1; exit } }
        END { if (!wrong && FNR != n) { print n " lines are wanted, there are " FNR; wrong = 1 }; exit wrong }' "$1" "$2"
}
golden() { # name, prompt, options…
    name=$1
    prompt=$2
    shift 2
    rm -rf "$WORK/trace"
    [ -z "$prompt" ] || set -- -p "$prompt" "$@"
    "$PROGRAM" run --isa reference --threads 1 --probe all --trace "$WORK/trace" "$@" >/dev/null 2>"$WORK/err" || cat "$WORK/err"
    for table in tokens layers series controls vocab rounds experts; do
        [ -e "tests/screens/traces/$name/$table.csv" ] || continue
        mask "tests/screens/traces/$name/$table.csv" >"$WORK/expected"
        mask "$WORK/trace/$table.csv" >"$WORK/got"
        check "$table.csv of $name is the golden one" same "$WORK/expected" "$WORK/got"
    done
}
golden specbound 'A baker sent Ruby to market with a leather fork. "Bring me an oven for it," said the baker, "and do not stop on the way." In the park she met' --policy specbound -n 48
golden sd 'Three mice sat on a wall,' --policy sd -n 30
golden batch '' --prompts tests/screens/prompts.jsonl --batch 3 --policy specbound -n 20
golden experts 'the hen' --policy layerskip --set exit_layer=2 -n 30 tests/golden/families/glm4_moe.gguf
exit $STATUS
