#!/bin/sh
# Every command in the documents works, every option and ':' command in them exists, every link leads somewhere, and a
# policy's page has the policy's knobs, and README.md all policies. UPDATE=1 writes both. DOCUMENTS names other
# documents. test_pictures.sh tests the pictures.
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
. tests/screens/lib.sh
DOCUMENTS=${DOCUMENTS:-README.md CONTRIBUTING.md $(ls docs/*.md docs/policies/*.md) models/README.md packaging/README.md python/README.md}
COMMANDS='run|replay|bench|tune|score|info|models|tokenize|train heads|train eagle|train accept|train profile|train|plot|diff|completions|doctor|connect|verdict'

code() { # document: what stands in fences, a line each (those that go on in the next joined), and between backquotes
    awk '/^ *```/ { fenced = !fenced; next }
         fenced { line = line $0; if (sub(/\\$/, "", line)) next; print line; line = ""; next }
         { n = split($0, part, "`"); for (i = 2; i <= n; i += 2) print part[i] }' "$1"
}

group "commands that a reader could paste, with few tokens if the command gives no number"

mkdir -p "$XDG_CONFIG_HOME/specscope"
head -n 3 models/prompts.jsonl >"$WORK/prompts.jsonl"
printf '{"tokens": 4, "repeat": 1, "prompts": "%s"}\n' "$WORK/prompts.jsonl" >"$XDG_CONFIG_HOME/specscope/config.json"

interactive() { # command: does it open the scope?
    case $1 in rm\ *) return 1 ;; esac
    case " $1 " in *" --help "* | *" --version "* | *" --list-"*) return 1 ;; *" --scope "*) return 0 ;; esac
    echo "$1" | grep -Evq "^build/specscope ($COMMANDS)( |\$)" || echo "$1" | grep -q '^build/specscope replay'
}
opens() { # command: in a terminal, until a round has been seen
    case $1 in *' replay '* | *' diff '*) : >"$WORK/quit.script" ;; *) echo ':wait round 1' >"$WORK/quit.script" ;; esac
    echo ':quit' >>"$WORK/quit.script"
    terminal 120x36 "(cd $FOLDER && $1 --script $WORK/quit.script)"
    exits 0
}
runs() { # command
    (cd "$FOLDER" && timeout 600 sh -c "$1" </dev/null)
}
writes() { # command: is its output read by the next ones?
    case $1 in rm\ * | *' --trace '* | *' --json '* | *' --csv '* | *' -o '*) true ;; *) false ;; esac
}
: >"$WORK/seen" # commands that write nothing run once for all documents
: >"$WORK/repeated" # measurements that ran twice in a document; a grid runs once
leaves_nothing() { # where git would not ignore it
    left=$(find "$FOLDER" -mindepth 1 -maxdepth 1 ! -type l ! -name build) && [ -z "$left" ] || { echo "$left"; false; }
}
for document in $DOCUMENTS; do
    FOLDER=$WORK/documents/$document # commands of a document follow each other
    mkdir -p "$FOLDER"
    for name in docs models tests themes python README.md; do ln -s "$ROOT/$name" "$FOLDER/$name"; done
    mkdir "$FOLDER/build" && ln -s "$PROGRAM" "$FOLDER/build/specscope"
    code "$document" | grep '^build/specscope\|^rm -rf build/' | awk '!seen[$0]++' >"$WORK/commands"
    while read -r command; do
        writes "$command" || ! grep -qxF "$command" "$WORK/seen" || continue
        echo "$command" >>"$WORK/seen"
        if interactive "$command"; then check "the command of $document works: $command" opens "$command" </dev/null
        else check "the command of $document works: $command" runs "$command" </dev/null; fi
    done <"$WORK/commands"
    while read -r command; do
        writes "$command" && ! grep -qxF "$command" "$WORK/repeated" || continue
        case $command in *' --grid '*) continue ;; *' bench '*) echo "$command" >>"$WORK/repeated" ;; esac
        check "the command of $document works again: $command" runs "$command" </dev/null
    done <"$WORK/commands"
    check "the commands of $document write into build/ alone" leaves_nothing
done

group "options, ':' commands, links"

options_of() { # subcommand or nothing
    # shellcheck disable=SC2086 # two words
    "$PROGRAM" $1 --help 2>/dev/null | grep -o -e '--[a-z][a-z-]*' | sort -u
}
unknown_options() { # document: options in the code of a command that has none of that name
    code "$1" | sed -n 's/.*\<specscope \(.*\)/\1/p' | while read -r line; do
        command=$(echo "$line" | grep -Eo "^($COMMANDS)\\>" || true)
        options_of "$command" >"$WORK/options"
        echo "$line" | grep -o -e '--[a-z][a-z-]*' | grep -vxF -f "$WORK/options" -e --versi | sed "s/^/specscope $command: /"
    done
}
unknown_commands() {
    code "$1" | grep -o '^:[a-z][a-z-]*' | sort -u | while read -r command; do
        grep -q -e "[ \`]$command\\>" -e "Ic $command\\>" docs/specscope.1 || echo "$command"
    done
}
dead_links() { # document; in its examples they are of other files
    awk '/^```/ { fenced = !fenced } !fenced' "$1" | grep -o '](\([^)#]*\)' | sed 's/](//' | grep -v '^http' | grep . | while read -r link; do
        [ -e "$(dirname "$1")/$link" ] || echo "$link"
    done
}
says_nothing() { said=$("$@") && [ -z "$said" ] || { echo "$said"; [ -z "$said" ]; }; }
for document in $DOCUMENTS; do
    check "$document names only options that the commands have" says_nothing unknown_options "$document"
    check "$document names only ':' commands that the manual has" says_nothing unknown_commands "$document"
    check "no link of $document is dead" says_nothing dead_links "$document"
done

group "policies"

"$PROGRAM" --list-policies >"$WORK/policies"
knobs() { # policy: as the program lists them; what helpers are here is another matter
    awk -v name="$1" '/^[^ ]/ { on = $1 == name } on && !/^    needs /' "$WORK/policies"
}
has_knobs() {
    page=docs/policies/$1.md
    if [ -n "${UPDATE:-}" ]; then
        { sed '/^## Knobs/q' "$page" && echo '```' && knobs "$1" && echo '```'; } >"$WORK/page" && cp "$WORK/page" "$page"
    fi
    [ "$(knobs "$1")" = "$(awk '/^## Knobs/ { seen = 1 } seen && /^```/ { on = !on; next } on' "$page")" ]
}
table() { # of README.md: the heading of each policy's page, and the paper
    sed -n 's/^\([a-z+][a-z+]*\)  *[^;]*[; ]*\(.*\)/\1 \2/p' "$WORK/policies" | while read -r policy paper; do
        echo "| [$policy](docs/policies/$policy.md) | $(sed -n '1s/^# [^:]*: //p' "docs/policies/$policy.md") | $paper |"
    done
}
ROW='^| \[[a-z+]*](docs/policies/'
has_table() {
    [ -z "${UPDATE:-}" ] || { sed "\\,$ROW,d" README.md | sed "/^| policy | what/{n;r $WORK/table
}" >"$WORK/page" && cp "$WORK/page" README.md; }
    grep "$ROW" README.md | diff - "$WORK/table"
}
table >"$WORK/table"
check "README.md lists the policies with their papers (UPDATE=1 $0 writes the list)" has_table
for policy in $(sed -n 's/^\([a-z+]*\) .*/\1/p' "$WORK/policies"); do
    check "docs/policies/$policy.md lists the policy's knobs (UPDATE=1 $0 writes them)" has_knobs "$policy"
    check "docs/policies/README.md names $policy" grep -q "]($policy.md)" docs/policies/README.md
done

echo "1..$N"
exit $STATUS
