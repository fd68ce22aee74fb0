#!/bin/sh
# Measures how much the scope slows the engine down: ten interleaved pairs of the same generation, with the scope on a
# terminal of 160x48 and headless with the same trace and the same --probe. Prints a table in Markdown. The compared
# speed is the engine's own: emitted tokens over the rounds' draft and verification time, from rounds.csv. It varies
# with the machine's. The time in which a thread of the engine was ready to run and had no processor (run_delay in
# schedstat) does not, and contains what the screen takes. TERMINAL=tmux draws on the same processors; the default only
# reads what is drawn, as ssh does.
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
threads() { # pid; of each: thread, nanoseconds of processor time, nanoseconds ready without a processor
    for t in /proc/"$1"/task/*; do echo "${t##*/} $(cut -d' ' -f1,2 "$t/schedstat")"; done
}
# Waits for the end of a run and prints, as parts of its time without loading: processor time of the process's first
# thread (the screen's, in the scope), and time in which threads of the engine (more than a fifth of a processor) were
# ready and had none.
shares() { # pid, folder
    until [ -e "$2/run.json" ]; do
        alive "$1"
        sleep 0.02
    done
    threads "$1" >"$WORK/before"
    begun=$(date +%s%N)
    # Looked at seldom, and not through tmux: whoever asks takes the processor from the engine as well. The last look
    # before the end counts: what is worked out when the engine rests (what-if) costs it nothing.
    until grep -q '"end"' "$2/controls.csv"; do
        threads "$1" >"$WORK/looked" 2>/dev/null && ! grep -q '"end"' "$2/controls.csv" && cp "$WORK/looked" "$WORK/after" &&
            ended=$(date +%s%N)
        sleep 0.5
    done
    awk -v pid="$1" -v time=$((ended - begun)) 'NR == FNR { cpu[$1] = $2; delay[$1] = $3; next }
        { c = ($2 - cpu[$1]) / time; if ($1 == pid) own = c; else if (c > 0.2) d += ($3 - delay[$1]) / time }
        END { print own, d }' "$WORK/before" "$WORK/after"
}
headless() { # probe, folder; leaves shares() in $WORK/shares
    $S run $ARGS --probe "$1" --trace "$2" >/dev/null 2>&1 &
    shares $! "$2" >"$WORK/shares"
    wait $!
}
scope() { # probe, folder; the same
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
    shares "$pid" "$2" >"$WORK/shares"
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

for probe in policy 10% all; do
    i=0
    : >"$WORK/$probe"
    while [ $i -lt "$PAIRS" ]; do
        rm -rf "$WORK/h" "$WORK/s"
        # each comes first every other time: a machine that warms up or tires favours neither
        if [ $((i % 2)) -eq 0 ]; then
            headless $probe "$WORK/h"
            mv "$WORK/shares" "$WORK/alone"
            scope $probe "$WORK/s"
        else
            scope $probe "$WORK/s"
            mv "$WORK/shares" "$WORK/watched"
            headless $probe "$WORK/h"
            mv "$WORK/shares" "$WORK/alone"
            mv "$WORK/watched" "$WORK/shares"
        fi
        # slowdown, more time without a processor, the same headless, the screen thread's time, the probes' share
        echo "$(speed "$WORK/h") $(speed "$WORK/s") $(cat "$WORK/alone" "$WORK/shares" | tr '\n' ' ') $(share "$WORK/s")" |
            awk '{ print 1 - $2 / $1, $6 - $4, $4, $5, $7 }' >>"$WORK/$probe"
        i=$((i + 1))
    done
done
column() { # probe, column of its table, unit's factor, what to print
    cut -d' ' -f"$2" "$WORK/$1" >"$WORK/column"
    awk -v m="$(median "$WORK/column")" -v s="$(spread "$WORK/column")" -v f="$3" "BEGIN { printf \"$4\", m * f, s * f }"
}
row() { # probe
    echo "| \`--probe $1\` | $(column "$1" 1 100 '%.1f ± %.1f%%') | $(column "$1" 2 100 '%.1f ± %.1f%%') |" \
        "$(column "$1" 3 100 '%.1f ± %.1f%%') | $(column "$1" 4 1000 '%.0f ms') | $(column "$1" 5 1 '%.0f%%') |"
}
echo "The table shows how much slower the engine is with the scope on a 160x48 terminal than headless with the same trace and"
echo "\`--probe\`. Speed is emitted tokens over draft and verification time. *Without a processor* is the time in which the engine's threads"
echo "were ready to run and others ran. Figures are medians of $PAIRS interleaved pairs of $N tokens each, ± half the distance between the"
echo "quartiles. $([ "$TERMINAL" = tmux ] && echo "tmux draws on the same processors." || echo "Another machine draws.")"
echo
echo "| | slowdown | more time without a processor | the same headless | the screen thread's processor time per second | the scope's probes, of draft + verification time |"
echo "| --- | --- | --- | --- | --- | --- |"
row policy
row 10%
row all
