#!/bin/sh
# Measures how much the scope slows the engine down: ten interleaved pairs of the same generation, with the scope on a terminal of 160x48
# and headless with the same trace and the same --probe. Prints a table in Markdown, with the scope's processor time. The compared speed is
# the engine's own: emitted tokens over the rounds' draft and verification time, from rounds.csv. TERMINAL=tmux draws on the same
# processors; the default only reads what is drawn, as ssh does.
set -eu
BUILD=${1:-build}
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
S=$BUILD/specscope
PAIRS=${PAIRS:-10}
N=${N:-4000}
TERMINAL=${TERMINAL:-script}
WORK=$(mktemp -d)
SOCKET=$WORK/tmux
trap 'tmux -S "$SOCKET" kill-server 2>/dev/null || true; rm -rf "$WORK"' EXIT INT TERM
mkfifo "$WORK/keys"
export TERM=xterm-256color
ARGS="--ignore-eos -n $N -c $((N + 96)) --seed 1 ${SCOPE_ARGS:-}"

speed() { # tokens per second of a trace
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
             { us += $c["draft_us"] + $c["verify_us"]; n += $c["emitted"] } END { print n / us * 1e6 }' "$1/rounds.csv"
}
share() { # part of a round's time that the scope's probes take
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
             { us += $c["draft_us"] + $c["verify_us"]; p += $c["probe_us"] } END { printf "%.0f", 100 * p / us }' "$1/rounds.csv"
}
headless() { # probe, folder
    $S run $ARGS --probe "$1" --trace "$2" >/dev/null 2>&1
}
scope() { # probe, folder; leaves the screen thread's nanoseconds of processor time in $WORK/ns, loading left out
    if [ "$TERMINAL" = tmux ]; then
        SOCKET=$WORK/tmux-$1-$i # a server each: the last one may still be going
        tmux -S "$SOCKET" new-session -d -s scope -x 160 -y 48 "exec $S $ARGS --pace 0 --probe $1 --trace $2"
        pid=$(tmux -S "$SOCKET" list-panes -t scope -F '#{pane_pid}')
    else
        script -qec "stty rows 48 cols 160; echo \$\$ >'$WORK/pid'; exec $S $ARGS --pace 0 --probe $1 --trace $2" /dev/null \
            <"$WORK/keys" >/dev/null &
        exec 3>"$WORK/keys" # held open: at the end of its input `script` ends
        until [ -s "$WORK/pid" ]; do sleep 0.02; done
        pid=$(cat "$WORK/pid")
        rm "$WORK/pid"
    fi
    until [ -e "$2/run.json" ]; do
        alive "$pid"
        sleep 0.02
    done
    before=$(cut -d' ' -f1 "/proc/$pid/task/$pid/schedstat")
    # Looked at seldom, and not through tmux: whoever asks takes the processor from the engine as well. The last look
    # before the end counts: what is worked out when the engine rests (what-if) costs it nothing.
    begun=$(date +%s%N)
    until grep -q '"end"' "$2/controls.csv"; do
        alive "$pid"
        now=$(cut -d' ' -f1 "/proc/$pid/task/$pid/schedstat")
        echo "$((now - before)) $(($(date +%s%N) - begun))" >"$WORK/looked"
        sleep 0.25
        grep -q '"end"' "$2/controls.csv" || cp "$WORK/looked" "$WORK/ns"
    done
    if [ "$TERMINAL" = tmux ]; then tmux -S "$SOCKET" send-keys -t scope q; else printf q >&3; fi
    until gone "$pid"; do sleep 0.05; done
}
gone() { # pid; a zombie is: whoever should reap it may take its time
    [ ! -d "/proc/$1" ] || ! grep -qs '^State:.[^Z]' "/proc/$1/status"
}
alive() { # pid
    ! gone "$1" || { echo "the scope ended by itself" >&2; exit 1; }
}
spread() { # half of what lies between the quartiles
    sort -g "$1" | awk '{ v[NR] = $1 } END { print (v[int(NR * 3 / 4 + 0.5)] - v[int(NR / 4 + 0.5)]) / 2 }'
}
median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

for probe in policy all; do
    : >"$WORK/ratios-$probe"
    : >"$WORK/cpu-$probe"
    i=0
    while [ $i -lt "$PAIRS" ]; do
        rm -rf "$WORK/h" "$WORK/s"
        # each comes first every other time: a machine that warms up or tires favours neither
        if [ $((i % 2)) -eq 0 ]; then
            headless $probe "$WORK/h"
            scope $probe "$WORK/s"
        else
            scope $probe "$WORK/s"
            headless $probe "$WORK/h"
        fi
        a=$(speed "$WORK/h")
        b=$(speed "$WORK/s")
        awk -v a="$a" -v b="$b" 'BEGIN { print 1 - b / a }' >>"$WORK/ratios-$probe"
        awk '{ print $1 / $2 }' "$WORK/ns" >>"$WORK/cpu-$probe"
        i=$((i + 1))
    done
    eval "slow_$probe=\$(median \"\$WORK/ratios-$probe\")"
    eval "spread_$probe=\$(spread \"\$WORK/ratios-$probe\")"
    eval "cpu_$probe=\$(median \"\$WORK/cpu-$probe\")"
    eval "share_$probe=\$(share \"\$WORK/s\")"
done
echo "The table shows how much slower the engine is with the scope on a 160x48 terminal than headless with the same trace and"
echo "\`--probe\`. Speed is emitted tokens over draft and verification time. Figures are medians of $PAIRS interleaved pairs of $N tokens each, ± half"
echo "the distance between the quartiles. $([ "$TERMINAL" = tmux ] && echo "tmux draws on the same processors." || echo "Another machine draws.")"
echo
echo "| | slowdown | the screen thread's processor time per second | the scope's probes, of draft + verification time |"
echo "| --- | --- | --- | --- |"
# shellcheck disable=SC2154 # set by eval above
row() {
    awk -v n="$1" -v s="$2" -v w="$3" -v c="$4" -v p="$5" \
        'BEGIN { printf "| `--probe %s` | %.1f ± %.1f%% | %.0f ms | %s%% |\n", n, s * 100, w * 100, c * 1000, p }'
}
row policy "$slow_policy" "$spread_policy" "$cpu_policy" "$share_policy"
row all "$slow_all" "$spread_all" "$cpu_all" "$share_all"
