#!/bin/sh
# Prints the cost of each phase of a forward pass, and of each other request, from the file that
# SPECSCOPE_CUDA_PROFILE=FILE makes the kernels write (kernels/cuda/profile.h).
# usage: sh tests/cuda/phases.sh FILE [layers]; with `layers` also the phases of each layer
# Forward passes of one row, of a few and of many have a table each.
set -eu
[ $# -ge 1 ] && [ -r "$1" ] || { echo "usage: sh tests/cuda/phases.sh FILE [layers]" >&2; exit 2; }
awk -F, -v layers="${2:-}" '
function class_of(rows) { return rows == 1 ? 1 : rows <= 8 ? 2 : rows <= 32 ? 3 : 4 }
function whole(text, width) { # counts characters, not bytes, in any locale
    shown = text; gsub(/[\200-\277]/, "", shown)
    while (length(shown) < width) { text = text " "; shown = shown " " }
    return text
}
NR == 1 { if ($0 !~ /^call,what,rows,layer,phase/) { print FILENAME " is not a profile of the GPU" > "/dev/stderr"; wrong = 1; exit 1 } next }
$2 == "forward" {
    k = class_of($3); key = k SUBSEP $5
    if (!((k, $1) in seen)) { seen[k, $1] = 1; passes[k]++; rows[k] += $3 }
    if (!(key in n)) { order[k, ++phases[k]] = $5 }
    n[key]++; us[key] += $7; mean[key] += $9; last[key] += $10; total[k] += $7
    by[key, $4] += $7; times[key, $4]++; if ($4 > deepest) deepest = $4
    next
}
{ if (!($2 in calls)) names[++others] = $2; calls[$2]++; called[$2] += $7; asked[$2] += $3 }
END {
    if (wrong) exit 1
    split("forward passes of 1 row;forward passes of 2 to 8 rows;forward passes of 9 to 32 rows;forward passes of more than 32 rows", title, ";")
    for (k = 1; k <= 4; k++) {
        if (!passes[k]) continue
        printf "%s: %d, %.1f rows and %.1f us each\n", title[k], passes[k], rows[k] / passes[k], total[k] / passes[k]
        printf "  %s %10s %7s %10s %10s %10s  %s\n", whole("phase", 16), "us a layer", "share", "of it: work", "slower", "barrier", "slowest layer"
        for (i = 1; i <= phases[k]; i++) {
            key = k SUBSEP order[k, i]; worst = 0; where = "-"
            for (l = 1; l <= deepest; l++) if (times[key, l] && by[key, l] / times[key, l] > worst) { worst = by[key, l] / times[key, l]; where = l }
            printf "  %s %10.2f %6.1f%% %11.2f %10.2f %10.2f  %s (%.2f us)\n", whole(order[k, i], 16), us[key] / n[key], 100 * us[key] / total[k],
                mean[key] / n[key], (last[key] - mean[key]) / n[key], (us[key] - last[key]) / n[key], where, worst
        }
        if (layers != "") {
            printf "  %s", whole("layer", 6)
            for (i = 1; i <= phases[k]; i++) printf " %s", whole(order[k, i], 13)
            printf "\n"
            for (l = 1; l <= deepest; l++) {
                printf "  %-6d", l
                for (i = 1; i <= phases[k]; i++) { key = k SUBSEP order[k, i]; printf " %-13s", times[key, l] ? sprintf("%.2f", by[key, l] / times[key, l]) : "-" }
                printf "\n"
            }
        }
    }
    if (others) printf "other requests\n  %s %10s %10s %10s\n", whole("what", 16), "calls", "rows each", "us each"
    for (i = 1; i <= others; i++)
        printf "  %s %10d %10.1f %10.2f\n", whole(names[i], 16), calls[names[i]], asked[names[i]] / calls[names[i]], called[names[i]] / calls[names[i]]
}' "$1"
