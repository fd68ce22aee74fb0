#!/bin/sh
# train profile and train accept go on after an interruption at any instant, and end with the same file; what they refuse to go
# on with.
. tests/cli/checks.sh
text=$TMP/text
head -c 24000 README.md >"$text"
"$BUILD/tests/tinymodel" "$TMP/draft.gguf" --layers 2 --calm-after 1 --calm 0.1 >/dev/null || exit 1
"$BUILD/tests/tinymodel" "$TMP/third.gguf" --layers 1 --calm-after 1 --calm 0.1 >/dev/null || exit 1
profile() { # arguments, after those that all have
    echo train profile --model "$TINY" --draft "$TMP/draft.gguf" --companion "$TMP/third.gguf" --text "$text" --tokens 4000 \
        --response 16 --prompt-tokens 12 "$@"
}
accept() {
    echo train accept --model "$TINY" --draft "$TMP/draft.gguf" --text "$text" --tokens 3000 --response 16 --prompt-tokens 12 \
        --blocks 0,2 "$@"
}
size() { # file
    [ -e "$1" ] && wc -c <"$1" || echo 0
}
grown() { # file, bytes
    [ "$(size "$1")" -gt "$2" ]
}
interrupt() { # signal, bytes, file that is to have more than that, arguments: leaves what wait says in $left
    signal=$1 bytes=$2 file=$3
    shift 3
    : >"$TMP/err"
    "$PROGRAM" "$@" >"$TMP/out" 2>"$TMP/err" &
    pid=$!
    wait_until 60 grown "$file" "$bytes"
    kill -"$signal" $pid 2>/dev/null
    wait $pid 2>/dev/null
    left=$?
}
says() {
    grep -Eq "$1" "$TMP/err"
}

# ---- profiles ----

works "a profile without an interruption" $(profile --out "$TMP/whole.json")
check "leaves nothing beside it" [ ! -e "$TMP/whole.json.partial" ]
out=$TMP/p.json
interrupt KILL 2000 "$out.partial" $(profile --out "$out")
check "killed, it leaves what it saw" [ "$left" -gt 128 -a -s "$out.partial" -a ! -e "$out" ]
interrupt INT $(($(size "$out.partial") + 2000)) "$out.partial" $(profile --out "$out")
check "interrupted, it leaves a profile of what it saw" [ "$left" -eq 0 -a -s "$out" ]
check "and says how to go on" says 'interrupted.*the same command goes on'
check "having said that it did" says 'p.json.partial has seen [0-9]+ of 251 prompts; going on'
cp "$out.partial" "$TMP/saved"
works "the third time it comes to an end" $(profile --out "$out")
check "with the profile of one that was not interrupted" cmp "$out" "$TMP/whole.json"
check "and leaves nothing beside it" [ ! -e "$out.partial" ]
all=$(size "$TMP/saved")
for cut in 0 $((all / 5)) $((all / 2)) $((all - 1)) $all; do
    head -c "$cut" "$TMP/saved" >"$out.partial"
    specscope $(profile --out "$out")
    check "from $cut of $all bytes it is the same" cmp "$out" "$TMP/whole.json"
done

refuses_to_go_on() { # what, pattern, arguments
    cp "$TMP/saved" "$out.partial"
    refuses "with $1 it does not go on" 2 "p.json.partial was begun with '$2.* to go on, or remove the file to start anew" $(profile --out "$out" $3)
    check "and keeps what it has, with $1" cmp "$TMP/saved" "$out.partial"
}
refuses_to_go_on "other drafts" "drafts 5', not 'drafts 3'" "--drafts 3"
refuses_to_go_on "another temperature" "temperature 1, top-k 0" "--temp 0.5"
refuses_to_go_on "another companion" "companion tiny" "--companion $TINY"
refuses_to_go_on "other nuclei" "temperature 1, top-k 0, top-p 1', not 'temperature 1, top-k 0, top-p 0.9'" "--top-p 0.9"
refuses_to_go_on "other prompts" "251 prompts" "--tokens 3000"
refuses_to_go_on "another seed" "answers of 16" "--seed 9"
refuses "nor with a training of another kind" 2 "was begun with 'train profile', not 'train accept'" $(accept --out "$out")
printf 'a letter to my aunt' >"$out.partial"
refuses "what is no such file is left alone" 1 "none of this program's" $(profile --out "$out")
check "as it is" grep -q aunt "$out.partial"
head -c 60 "$TMP/saved" >"$out.partial"
refuses "one that breaks off at once, too" 1 "breaks off" $(profile --out "$out")
refuses "a place that is no file is refused at once" 1 "not a regular file" $(profile --out /dev/null)

# ---- acceptance heads ----

works "a head without an interruption" $(accept --passes 60 --out "$TMP/whole.head")
out=$TMP/h
interrupt INT 3000 "$TMP/i.partial" $(accept --tokens 60000 --out "$TMP/i")
check "interrupted while candidates are collected, it has no head" [ "$left" -eq 1 -a ! -e "$TMP/i" -a -s "$TMP/i.partial" ]
check "and says how to go on" says 'interrupted before training began; the same command goes on'
interrupt KILL 0 "$out" $(accept --passes 60 --out "$out")
check "killed, it leaves candidates and a head" [ "$left" -gt 128 -a -s "$out.partial" -a -s "$out" ]
cp "$out.partial" "$TMP/saved"
cp "$out" "$TMP/head"
interrupt INT 0 "$TMP/err" $(accept --passes 60 --out "$out") # it says that it goes on
check "interrupted before it is as far again, it leaves a head" [ "$left" -eq 0 -a -s "$out" ]
works "it comes to an end" $(accept --passes 60 --out "$out")
check "with the head of one that was not interrupted" cmp "$out" "$TMP/whole.head"
check "and leaves nothing beside it" [ ! -e "$out.partial" ]
works "fewer passes over the same candidates" $(accept --passes 2 --out "$TMP/short.head")
all=$(size "$TMP/saved")
for cut in 0 $((all / 7)) $((all / 2)) $((all - 5)); do
    head -c "$cut" "$TMP/saved" >"$out.partial"
    specscope $(accept --passes 2 --out "$out")
    check "from $cut of $all bytes it is the same" cmp "$out" "$TMP/short.head"
done
cp "$TMP/saved" "$out.partial"
refuses "with another mixing it does not go on" 2 "was begun with 'mixing 0.1" $(accept --mixing 0.3 --out "$out")
finish
