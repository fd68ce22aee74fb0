#!/bin/sh
# Policies call exactly those functions of the context that engine/session/round.h lists, and otherwise round_*
# functions. The engine and the panels depend on no policy. Prints TAP.
# usage: tests/structure/test_policies.sh [TREE]
cd "${1:-$(dirname "$0")/../..}" || exit 1
. tests/structure/report.sh
listed=$(sed -n '/^ \* Of the context/,/\*\//p' engine/session/round.h | grep -oE 'context_[a-z_]+' | sort -u)
called=$(sources policies | xargs grep -ohE '\bcontext_[a-z_]+ *\(' | tr -d ' (' | sort -u)
result "policies call no function of the context that round.h does not list" \
    "$(echo "$called" | grep -vxF "$listed" | sed 's/$/: a policy calls it, round.h does not list it/')"
result "round.h lists no function of the context that no policy calls" \
    "$(echo "$listed" | grep -vxF "$called" | sed 's/$/: round.h lists it, no policy calls it/')"

# "ar" alone is the baseline's name, with one definition; "× ar" is a unit. Models have roles and files have
# architectures that are called as policies are.
names=$(sed -n 's/^ *\.name = "\(.*\)",$/\1/p' policies/*.c | sed 's/+/[+]/' |
    grep -vwF "$(sed -n '/^#define AUX_ROLES/,/[^\\]$/p' engine/events/event.h | grep -o '"[a-z]*"' | tr -d '"')" | paste -sd'|')
result "no string of engine/ and tui/panels contains a policy's name, except the baseline's" \
    "$(sources engine tui/panels | grep -v '^engine/model/arch/' |
        xargs grep -nE "\"ar\"|\"([^\"]* )?($names)( [^\"]*)?\"" |
        grep -vE '^[^:]*:[0-9]*: *(\*|/\*)|define POLICY_BASELINE|/\*[^"]*".*\*/$')"
exit $status
