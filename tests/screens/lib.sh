# For the screen tests: specscope in a terminal of its own. Sourced; BUILD is set.
export LC_ALL=C.UTF-8
unset NO_COLOR COLORTERM 2>/dev/null || true
unset HF_HOME HF_HUB_CACHE HUGGINGFACE_HUB_CACHE XDG_CACHE_HOME OLLAMA_MODELS LLAMA_CACHE 2>/dev/null || true # nobody's own models
ROOT=$PWD
case $BUILD in /*) PROGRAM=$BUILD/specscope ;; *) PROGRAM=$ROOT/$BUILD/specscope ;; esac
WORK=$(mktemp -d)
SOCKET=$WORK/socket0
mkdir "$WORK/home"
export HOME="$WORK/home" XDG_CONFIG_HOME="$WORK/home" XDG_STATE_HOME="$WORK/home" TMPDIR="$WORK"
export SPECSCOPE_CUDA_PLUGIN='' # the CPU, whatever GPU is here
trap 'tmux -S "$SOCKET" kill-server 2>/dev/null; rm -rf "$WORK"' EXIT
trap 'exit 1' INT TERM
N=0
STATUS=0

tm() { tmux -S "$SOCKET" -f /dev/null "$@"; }
ok() { N=$((N + 1)); echo "ok $N - $1"; }
bad() { N=$((N + 1)); STATUS=1; echo "not ok $N - $1"; }
group() { echo "# $1"; } # the name of the checks that follow
check() { # sentence, command…: passes if the command does; else prints what the command printed, and the screen
    sentence=$1
    shift
    "$@" >"$WORK/check.log" 2>&1 && ok "$sentence" && return
    bad "$sentence"
    { cat "$WORK/check.log" && tm capture-pane -p; } 2>/dev/null | sed -n '/[^ ]/s/^/    |/p'
}
# Runs a command line in a terminal of WxH, in folder $WORK/run; its exit status lands in status, its stderr in err.
terminal() { # WxH, command line
    tm kill-server 2>/dev/null
    RUNS=$((${RUNS:-0} + 1))
    SOCKET=$WORK/socket$RUNS # a server that is still going down must not be used again
    rm -rf "$WORK/run"
    mkdir -p "$WORK/run"
    tm new-session -d -x "${1%x*}" -y "${1#*x}" "cd $WORK/run && { $2; } 2>err; echo \$? >status.new; mv status.new status; sleep 3600"
    tm set-option -g remain-on-exit on 2>/dev/null
}
until_true() { # command…: waits until it passes; gives up after minutes, so that a failure ends
    tries=6000
    case $1 in *[!0-9]*) ;; *) shift ;; esac # a limit in seconds, as it used to be given
    while [ $tries -gt 0 ]; do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.05
        tries=$((tries - 1))
    done
    echo "waited in vain for: $*"
    cat "$WORK/run/err" 2>/dev/null
    return 1
}
ended() { until_true test -s "$WORK/run/status"; }
shows() { tm capture-pane -p | grep -q -- "$1"; }
hides() { ! shows "$1"; }
wait_for() { until_true shows "$1"; }
drawn_whole() { # columns: a frame that is drawn again begins at the top, and its last line is the key bar
    tm capture-pane -p >"$WORK/frame"
    grep -q "^.\{$1\}" "$WORK/frame" && tail -n 1 "$WORK/frame" | grep -q '[^ ]'
}
drawn_again() { # makes the screen one column wider, and waits for the whole frame
    cols=$(($(tm display-message -p '#{window_width}') + 1))
    tm resize-window -x "$cols"
    until_true drawn_whole "$cols"
}
exits() { # status: it has ended with that
    ended && [ "$(cat "$WORK/run/status")" = "$1" ] || { echo "exit status $(cat "$WORK/run/status" 2>/dev/null)"; cat "$WORK/run/err"; return 1; }
}
refused() { # its exit status is 2, and its message is one line
    exits 2 && test "$(wc -l <"$WORK/run/err")" = 1
}
