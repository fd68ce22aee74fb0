#!/bin/sh
# Policies call exactly those functions of the context that engine/session/round.h lists, and otherwise round_* functions.
# Prints TAP. usage: tests/structure/test_policy_calls.sh [TREE]
cd "${1:-$(dirname "$0")/../..}" || exit 1
. tests/structure/report.sh
listed=$(sed -n '/^ \* Of the context/,/\*\//p' engine/session/round.h | grep -oE 'context_[a-z_]+' | sort -u)
called=$(sources policies | xargs grep -ohE '\bcontext_[a-z_]+ *\(' | tr -d ' (' | sort -u)
result "policies call no function of the context that round.h does not list" \
    "$(echo "$called" | grep -vxF "$listed" | sed 's/$/: a policy calls it, round.h does not list it/')"
result "round.h lists no function of the context that no policy calls" \
    "$(echo "$listed" | grep -vxF "$called" | sed 's/$/: round.h lists it, no policy calls it/')"
exit $status
