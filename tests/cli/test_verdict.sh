#!/bin/sh
# verdict, against a server with the program's own texts and rounds: the same drafts, those of a damaged draft model,
# texts that part by rounding and by other weights, other token ids, wrong usage.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
if [ -z "$HAVE_PYTHON" ]; then
    skip "verdict compares drafts with those of a server" "there is no python3"
    finish
fi
MODEL=$PWD/models/fables-q8_0.gguf
DRAFT=$PWD/models/fables-draft-q8_0.gguf
head -n 10 models/prompts.jsonl >"$TMP/prompts"

serve() { # options of answering.py; sets URL
    : >"$TMP/port"
    PYTHONDONTWRITEBYTECODE=1 python3 tests/servers/answering.py "$@" >"$TMP/port" 2>"$TMP/server" &
    server=$!
    until [ -s "$TMP/port" ]; do sleep 0.05; done
    URL=http://127.0.0.1:$(cat "$TMP/port")
}
end_server() {
    kill "$server"
    wait "$server" 2>/dev/null
}
against() { # options of answering.py; the rest of verdict's are in $OPTIONS
    serve "$@"
    # shellcheck disable=SC2086 # a list
    specscope verdict --server "$URL" --prompts "$TMP/prompts" -n 48 $OPTIONS "$MODEL"
    end_server
}
concludes() { # status, sentence
    [ "$status" -eq "$1" ] && tail -n 1 "$TMP/out" | grep -q "$2"
}

prompt() { # number of a line; writes its text
    python3 -c 'import json, sys; print(json.loads(sys.stdin.readlines()[int(sys.argv[1]) - 1])["turns"][0], end="")' "$1" <"$TMP/prompts" >"$TMP/prompt"
}
# Which text parts in F32 depends on the instruction set.
parting=10
while [ $parting -gt 1 ]; do
    prompt $parting
    "$PROGRAM" run --policy ar -n 48 -f "$TMP/prompt" "$MODEL" >"$TMP/a" 2>"$TMP/err"
    "$PROGRAM" run --policy ar -n 48 -f "$TMP/prompt" --exact "$MODEL" >"$TMP/b" 2>"$TMP/err"
    cmp -s "$TMP/a" "$TMP/b" || break
    parting=$((parting - 1))
done
{
    sed -n "$((parting % 10 + 1))p;$(((parting + 1) % 10 + 1))p" "$TMP/prompts"
    sed -n "${parting}p" "$TMP/prompts"
} >"$TMP/few"
OPTIONS="--policy sd --draft $DRAFT --prompts $TMP/few"
against "$PROGRAM" "$MODEL" --policy sd --draft "$DRAFT"
check "the same drafter has equal rounds" concludes 0 '^the same drafts: every round there is the round here$'
against "$PROGRAM" "$MODEL" --policy sd --draft "$DRAFT" --set k=3
check "drafts of another length are not called the same, and the setting is named" concludes 3 '^drafts have other lengths: up to 3 tokens a round there, up to 5 here; --set k=3?$'
against "$PROGRAM" "$MODEL" --exact --policy sd --draft "$DRAFT"
check "F32 there is not called other drafts" sh -c "[ $status -eq 0 ] || [ $status -eq 3 ]"
check "texts that F32 changes part by rounding" sh -c "grep -q '^prompt [0-9]* parts' '$TMP/out' && ! grep '^prompt .* parts' '$TMP/out' | grep -v ': rounding$'"
python3 tests/servers/damage_gguf.py "$DRAFT" "$TMP/damaged.gguf"
against "$PROGRAM" "$MODEL" --policy sd --draft "$TMP/damaged.gguf"
check "three prompts are too few for a difference" concludes 3 '^rounds differ, and only 3 prompts have drafts'
OPTIONS="--policy sd --draft $DRAFT"
against "$PROGRAM" "$MODEL" --policy sd --draft "$TMP/damaged.gguf"
check "a draft model with exchanged rows has fewer drafts accepted than it deserves" concludes 1 '^fewer drafts than the drafter deserves from position 1 on: [0-9]% are accepted there, [5-9][0-9]% here, p 0.00'
OPTIONS="--policy sd --draft $DRAFT --prompts $TMP/few"
against "$PROGRAM" "$MODEL" --policy ar
check "a server without speculation drafts nothing" concludes 1 'the server drafted nothing$'
against "$PROGRAM" "$DRAFT" --policy ar
check "other weights are not explained by rounding" concludes 3 '^texts part first, [1-9][0-9]* of [0-9]* not by rounding'
against --ids-from 1 "$PROGRAM" "$MODEL" --policy ar
check "other token ids of all prompts are the answer" concludes 3 '^the token ids of every prompt differ'
OPTIONS="--policy ngram --set n_min=3 --set n_max=3"
against "$PROGRAM" "$MODEL" --policy ngram --set n_min=3 --set n_max=3
check "a server of another rule is compared under the nearest one, which is named" grep -q '^compared under the nearest rule, ngram: llama-server looks for n_min' "$TMP/out"
sed -n '/^ *[1-9][0-9]*  */p' "$TMP/out" >"$TMP/counts"
check "the table has eight positions" [ "$(grep -c . "$TMP/counts")" -eq 8 ]
check "the counts of each position are equal" sh -c "! grep -v '\([1-9][0-9]* of [1-9][0-9]*\),.* \1,' '$TMP/counts'"

prompt $parting
specscope run --policy ar -n 48 -f "$TMP/prompt" --trace "$TMP/here" "$MODEL"
serve "$PROGRAM" "$MODEL" --exact --policy ar
specscope run --server "$URL" -n 48 -f "$TMP/prompt" --trace "$TMP/there"
end_server
works "diff compares traces of an engine and of a server" diff "$TMP/there" "$TMP/here" --json "$TMP/diff.json"
check "diff measures why the texts part" python3 - "$TMP/diff.json" <<'END'
import json, sys
p = json.load(open(sys.argv[1]))["texts"]["parting"]
assert p["verdict"] == "rounding" and p["best"] == p["here"] and 0 <= p["margin"] <= p["bound"], p
END
works "diff writes both tokens" diff "$TMP/there" "$TMP/here"
check "diff prints the verdict" grep -q "^  the model's own arithmetics there: \".*\" in A, \".*\" in B; .*: rounding$" "$TMP/out"

specscope verdict --policy sd "$MODEL"
check "a server must be named" refused_as 2
specscope verdict --server http://127.0.0.1:9 "$MODEL"
check "a policy must be named" refused_as 2
specscope verdict --server http://127.0.0.1:9 --policy sd --temp 1 "$MODEL"
check "sampling is refused" refused_as 2
specscope verdict --server http://127.0.0.1:9 --policy ngram "$MODEL"
check "a server that does not answer is an error" refused_as 1
finish
