# For the tests of releases; sourced from the root of the tree, WORK is a folder. Every check prints one TAP line;
# `status` becomes 1 where one fails.
checks=0
status=0
group() { echo "# $1"; } # the name of the checks that follow
check() { # sentence, command
    checks=$((checks + 1))
    sentence=$1
    shift
    if "$@" >"$WORK/said" 2>&1; then
        echo "ok $checks - $sentence"
    else
        echo "not ok $checks - $sentence"
        tail -n 25 "$WORK/said" | sed 's/^/# /'
        status=1
    fi
}
