#!/bin/sh
# The instructions of CONTRIBUTING.md work: its policy, panel, architecture and theme are added to a copy of the tree,
# which is built, used and documented. A block "```c FILE", "```json FILE" or "```md FILE" is a new file. In "```diff
# FILE" each "+" line is inserted after the line above it, which occurs once in FILE.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
COPY=$TMP/tree
case $BUILD in "$PWD"/*) built=${BUILD#"$PWD"/} ;; *) built=build ;; esac
mkdir -p "$COPY/$built"
cp -a .ci debian Makefile README.md CONTRIBUTING.md base cli docs engine kernels models policies python tests themes traces tui "$COPY"
cp -a "$BUILD/obj" "$BUILD/gen" "$BUILD/.deps" "$BUILD/libspecscope.a" "$COPY/$built" # so that little is compiled

extract() { # tree: what CONTRIBUTING.md adds to it
    awk -v tree="$1/" '
        function put(file,    all, line, hits) {
            while ((getline line <file) > 0) {
                all = all line "\n"
                if (line == above) { all = all added; hits++ }
            }
            close(file)
            if (hits != 1) { print file " has " hits + 0 " lines that read: " above; failed = 1 }
            printf "%s", all >file
            close(file)
        }
        /^```(c|json|md|diff) / { kind = $1; file = tree $2; next }
        /^```/ { if (kind ~ /c$|json$|md$/) close(file); kind = "" }
        kind ~ /c$|json$|md$/ { print >file }
        kind == "```diff" && /^ / { above = substr($0, 2) }
        kind == "```diff" && /^[+]/ { added = substr($0, 2) "\n"; put(file) }
        END { exit failed }' CONTRIBUTING.md
}
check "the examples of CONTRIBUTING.md apply" extract "$COPY"
before=$("$PROGRAM" --list-policies | grep -c '^[a-z]')
check "the examples compile without a warning" sh -c \
    "cd '$COPY' && make -s NVCC= BUILD='$built' '$built/specscope' >make.log 2>&1 && ! grep -v '^  [A-Z]* ' make.log"
new=$(grep -c '^```c policies/' CONTRIBUTING.md)
PROGRAM=$COPY/$built/specscope
check "the new policy is listed" [ "$("$PROGRAM" --list-policies | grep -c '^[a-z]')" -eq $((before + new)) ]

documents() { # more of the environment: the documents' tests, in the copy
    (cd "$COPY" && env BUILD="$built" DOCUMENTS="CONTRIBUTING.md docs/policies/README.md $(sed -n 's/^```md //p' CONTRIBUTING.md)" "$@" \
        sh tests/docs/test_docs.sh)
}
check "documents of the new policy are written" documents DOCUMENTS=" " UPDATE=1
for name in $(sed -n 's/^```c policies\/\(.*\)\.c$/\1/p' CONTRIBUTING.md); do
    added=$(diff README.md "$COPY/README.md" | sed -n 's/^\([<>] | .[a-z+]*\).*/\1/p')
    check "README.md gets a row for the new policy $name and is otherwise the same" [ "$added" = "> | [$name" ]
done
check "documents of the new policy pass their tests" documents

works "run --policy ar works" run -n 60 --ignore-eos --policy ar -p hello "$TINY"
cp "$TMP/out" "$TMP/ar"
for name in $(sed -n 's/^```c policies\/\(.*\)\.c$/\1/p' CONTRIBUTING.md); do
    works "the policy $name drafts" run -n 60 --ignore-eos --policy "$name" --trace "$TMP/trace" -p hello "$TINY"
    check "the new policy is lossless" cmp "$TMP/ar" "$TMP/out"
    check "some drafts of the new policy are accepted" grep -q 'acceptance 0\.[1-9]\|acceptance 1' "$TMP/err"
    check "series of the new policy are in the trace" [ "$(wc -l <"$TMP/trace/series.csv")" -gt 1 ]
done

theme=$(sed -n 's/^```json themes\/\(.*\)\.json$/\1/p' CONTRIBUTING.md)
for name in $(sed -n 's/^```c tui\/panels\/panel_\(.*\)\.c$/\1/p' CONTRIBUTING.md); do
    if ! command -v script >/dev/null 2>&1; then
        skip "the panel $name opens" "there is no script(1)"
        continue
    fi
    printf ':goto 9\n:wait idle\n:panel %s\n:key z\n:save-screen %s\n:quit\n' "$name" "$TMP/screen.txt" >"$TMP/script"
    check "the panel $name opens in the theme $theme" in_terminal "'$PROGRAM' replay --theme $theme --script '$TMP/script' '$TMP/trace'"
    title=$(sed -n 's/.*\.title = "\(.*\)".*/\1/p' "$COPY/tui/panels/panel_$name.c")
    check "the panel $name is on the screen" grep -q "$title" "$TMP/screen.txt"
    check "the panel's numbers are those of nine rounds" [ "$(awk '/^┃/ { gsub(/[^0-9 ]/, ""); n += $NF } END { print n }' "$TMP/screen.txt")" -eq 9 ]
done

specscope run -n 30 --ignore-eos -p hello "$TINY"
cp "$TMP/out" "$TMP/llama"
for name in $(sed -n '/^```diff engine\/model/,/^```$/s/^+ *{"\([^"]*\)".*/\1/p' CONTRIBUTING.md); do
    "$BUILD/tests/tinymodel" "$TMP/$name.gguf" --arch "$name" --layers 4 --calm-after 1 --calm 0.1 --sharpness 8 >/dev/null # as $TINY
    works "a model of the architecture $name opens" run -n 30 --ignore-eos -p hello "$TMP/$name.gguf"
    check "the architecture $name generates the text of a Llama with the same weights" cmp "$TMP/llama" "$TMP/out"
    check "info names the architecture $name" sh -c "'$PROGRAM' info '$TMP/$name.gguf' | grep -q '$name'"
done
finish
