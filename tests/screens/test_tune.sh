#!/bin/sh
# A race in the scope, live: it runs to its end, its setting is taken, saved and copied, it is stopped, and settings and
# prompt are restored. Which setting wins depends on the machine.
BUILD=${BUILD:-build}
. tests/screens/lib.sh

PROMPTS=$WORK/prompts.jsonl
cat "$ROOT/tests/screens/prompts.jsonl" - >"$PROMPTS" <<END
{"turns": ["Two mice sat on a wall,"], "category": "rhymes"}
{"turns": ["Three mice sat on a wall,"], "category": "rhymes"}
{"turns": ["Four mice sat on a wall,"], "category": "rhymes"}
END
cat >"$WORK/race.script" <<END
:wait round 3
:set d_max 4
:tune 30s sd fsm
:wait sweep 1
:key Down
:save-screen row.txt
:wait idle
:save-screen over.txt
:key Down
:save-screen shown.txt
:key Home f
:save-screen flags.txt
:key Down Down Down
:save-screen transformers.txt
:key f Home y
:key f Escape
:zoom
:save-screen closed.txt
:zoom
:tune save 1 row1
:tune save 2 row2
:tune save 3 row3
:tune take 2
:wait idle
:save-screen taken.txt
:undo
:quit
END
terminal 160x48 "$PROGRAM -n 12 --prompts '$PROMPTS' --script $WORK/race.script"
check "a race ends well" exits 0
check "the panel of :tune has the policies that were named, and no others" \
    sh -c "grep -Eq '^┃[▸ ] *[0-9]* (sd|fsm) .*[0-9]\.[0-9][0-9]' '$WORK/run/over.txt' && ! grep -q '[0-9] swift ' '$WORK/run/over.txt'"
check "the panel of :tune shows the result of held-out prompts" grep -Eq 'held out .* × ar.*(faster than|slower than|within noise of) plain decoding|plain decoding is the fastest' "$WORK/run/over.txt"
names_fastest() {
    grep -Eq '(fastest: .* × ar on held-out prompts, faster than plain decoding|plain decoding is the fastest|no setting is clearly faster than plain decoding: [a-z].*, the fastest one, emits [0-9.]* tokens in the time of)' "$WORK/run/over.txt" ||
        { cat "$WORK/run/over.txt"; false; }
}
check "the message after :tune names the fastest setting, or the reason why none is clearly faster" names_fastest
check "the panel's title and the message agree whether a setting is clearly faster" \
    [ "$(grep -c 'no setting is clearly faster' "$WORK/run/over.txt")" = "$(grep -c 'none is clearly faster' "$WORK/run/over.txt")" ]
check "the cursor stays on its setting during a race" grep -q '▸ *[0-9]* [a-z]' "$WORK/run/row.txt"
check "the cursor's row fills the other panels with its setting's run" \
    sh -c "grep -q ' τ *tau ' '$WORK/run/over.txt' && ! grep -q ' τ *tau ' '$WORK/run/shown.txt'"
check "Home returns from a row's run to the current one" grep -q ' τ *tau ' "$WORK/run/flags.txt"
check "knobs and prompt are restored after a race" sh -c "grep -q 'd_max .* 4 ' '$WORK/run/over.txt' && grep -q 'Everybody in the valley' '$WORK/run/over.txt'"
check "f in the panel of :tune shows options of other engines" grep -q 'llama.cpp [0-9.]*' "$WORK/run/flags.txt"
check "the commands of other engines than llama.cpp have an explained word in place of the GGUF file" \
    sh -c "grep -q 'transformers .*HF_FOLDER, HF_DRAFT_FOLDER: ' '$WORK/run/transformers.txt' && grep -q \"from_pretrained('HF_FOLDER')\" '$WORK/run/transformers.txt'"
check "Esc closes the options, and the race's rows return" sh -c "grep -q 'dropped in heat\|├─' '$WORK/run/closed.txt' && ! grep -q HF_FOLDER '$WORK/run/closed.txt'"
row_words() { # row
    sed -n "s/^┃[▸ ] *$1 \([a-z].*\)/\1/p" "$WORK/run/closed.txt" | sed 's/  .*//; s/ [0-9.]*$//'
}
is_saved() { # row
    saved=" $("$PROGRAM" --list-presets | sed -n "s/^row$1  *//p") "
    words=$(row_words "$1")
    test -n "$words" || return 1
    for word in $words; do
        case $saved in *" $word "*) ;; *) echo "row $1: $words, saved:$saved"; return 1 ;; esac
    done
}
check ":take takes a setting by its row on the screen" grep -q "policy $(row_words 2 | cut -d ' ' -f 1)" "$WORK/run/taken.txt"
for row in 1 2 3; do
    check "row $row of the screen is saved as a preset by its number" is_saved $row
done
check "a row of the screen is copied as a command" grep -q "^$PROGRAM run --policy " "$HOME/specscope/command"

cat >"$WORK/stop.script" <<END
:wait round 2
:tune 5m
:wait sweep 1
:key Escape
:wait idle
:save-screen stopped.txt
:quit
END
terminal 120x36 "$PROGRAM -n 16 --script $WORK/stop.script"
check "Esc stops a race, not the scope" exits 0
check "the message after a stopped race names the fastest setting so far" grep -q 'the race stopped in heat [0-9]*; fastest so far: ' "$WORK/run/stopped.txt"

for line in ':tune 0.001s' ':tune stop' ':tune take 1' ':tune nothing' ':tune show 1'; do
    printf ':wait round 1\n%s\n:quit\n' "$line" >"$WORK/wrong.script"
    terminal 120x36 "$PROGRAM -n 8 --script $WORK/wrong.script"
    check "'$line' is refused" exits 2
done
printf ':goto 3\n:wait idle\n:tune\n:quit\n' >"$WORK/replay.script"
terminal 120x36 "$PROGRAM replay --script $WORK/replay.script $ROOT/tests/screens/traces/specbound"
check ":tune in a replay is refused" exits 2
check "the refusal of :tune in a replay names what the replay shows" grep -q 'a replay cannot race settings: it shows' "$WORK/run/err"
exit $STATUS
