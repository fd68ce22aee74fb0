#!/bin/sh
# Trainings go on after an interruption at any instant, and end with the same file; what they refuse to go on with.
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
    wait_until grown "$file" "$bytes"
    kill -"$signal" $pid 2>/dev/null
    wait $pid 2>/dev/null
    left=$?
}
says() {
    grep -Eq "$1" "$TMP/err"
}
kill_at_state() { # how many states from the start, file, arguments
    states=$1 file=$2 was=
    shift 2
    "$PROGRAM" "$@" >"$TMP/out" 2>"$TMP/err" &
    pid=$!
    while [ "$states" -gt 0 ] && kill -0 $pid 2>/dev/null; do
        now=$(ls -i "$file" 2>/dev/null)
        [ "$now" = "$was" ] || { states=$((states - 1)) was=$now; }
    done
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
}
stops() { # sentence, status, pattern, arguments: it may have said before what it is about
    sentence=$1 wanted=$2 pattern=$3
    shift 3
    specscope "$@"
    check "$sentence" sh -c '[ "$1" -eq "$2" ] && tail -n 1 "$3" | grep -Eq "$4"' sh "$status" "$wanted" "$TMP/err" "$pattern"
}
no_state() { # file of it, arguments: damaged anyhow, it is refused in a line and left as it is
    state=$1
    shift
    cp "$state" "$TMP/state"
    all=$(size "$state") bad=0
    for cut in 0 32 100 $((all / 2)) $((all - 1)); do
        head -c "$cut" "$TMP/state" >"$state"
        cp "$state" "$TMP/cut"
        specscope "$@"
        [ "$status" -eq 1 ] && [ "$(wc -l <"$TMP/err")" -le 3 ] && cmp -s "$TMP/cut" "$state" &&
            says 'state: (is damaged|is none of this program)' || bad=$cut
    done
    check "a state that is cut anywhere is refused in a line" [ "$bad" -eq 0 ]
    { head -c $((all - 40)) "$TMP/state" && printf x && tail -c 39 "$TMP/state"; } >"$state"
    stops "so is one with another byte" 1 "state: is damaged; remove it to start anew" "$@"
    { cat "$TMP/state" && printf x; } >"$state"
    stops "and one with a byte more" 1 "state: is damaged; remove it to start anew" "$@"
    cp "$TMP/state" "$state"
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
rm -f "$out" # which is a profile, and no head replaces it
refuses "nor with a training of another kind" 2 "was begun with 'train profile', not 'train accept'" $(accept --out "$out")
printf 'a letter to my aunt' >"$out.partial"
refuses "what is no such file is left alone" 1 "none of this program's" $(profile --out "$out")
check "as it is" grep -q aunt "$out.partial"
head -c 60 "$TMP/saved" >"$out.partial"
refuses "one that breaks off at once, too" 1 "breaks off" $(profile --out "$out")
refuses "a place that is no file is refused at once" 1 "not a regular file" $(profile --out /dev/null)

# ---- acceptance heads ----

works "a head without an interruption" $(accept --passes 30 --out "$TMP/whole.head")
out=$TMP/h
interrupt INT 3000 "$TMP/i.partial" $(accept --tokens 60000 --out "$TMP/i")
check "interrupted while candidates are collected, it has no head" [ "$left" -eq 1 -a ! -e "$TMP/i" -a -s "$TMP/i.partial" ]
check "and says how to go on" says 'interrupted before training began; the same command goes on'
interrupt KILL 0 "$out" $(accept --passes 30 --out "$out")
check "killed, it leaves candidates and a head" [ "$left" -gt 128 -a -s "$out.partial" -a -s "$out" ]
cp "$out.partial" "$TMP/saved"
cp "$out" "$TMP/head"
interrupt INT 0 "$TMP/err" $(accept --passes 30 --out "$out") # it says that it goes on
check "interrupted before it is as far again, it leaves a head" [ "$left" -eq 0 -a -s "$out" ]
works "it comes to an end" $(accept --passes 30 --out "$out")
check "with the head of one that was not interrupted" cmp "$out" "$TMP/whole.head"
check "and leaves nothing beside it" [ ! -e "$out.partial" ]
works "fewer passes over the same candidates" $(accept --passes 2 --out "$TMP/short.head")
all=$(size "$TMP/saved")
for cut in 0 $((all / 7)) $((all / 2)) $((all - 5)); do
    head -c "$cut" "$TMP/saved" >"$out.partial"
    specscope $(accept --passes 2 --out "$out")
    check "from $cut of $all bytes it is the same" cmp "$out" "$TMP/short.head"
done
check "and leave no state" [ ! -e "$out.state" ]
for states in 1 4 2; do
    kill_at_state $states "$TMP/k.state" $(accept --passes 20 --rate 0.0005 --out "$TMP/k")
done
cp "$TMP/k.state" "$TMP/midway"
no_state "$TMP/k.state" $(accept --passes 20 --rate 0.0005 --out "$TMP/k")
for set in "--passes 2" "--rate 0.1" "--batch 7" "--reject-weight 2" "--blocks 0,1" "-t 1"; do
    stops "with $set it does not go on" 2 "k.state was begun with '.* to go on, or remove the file to start anew" \
        $(accept --passes 20 --rate 0.0005 --out "$TMP/k") $set
done
check "having kept what there is" cmp "$TMP/midway" "$TMP/k.state"
interrupt INT 0 "$TMP/err" $(accept --passes 20 --rate 0.0005 --out "$TMP/k")
check "interrupted and killed again and again, it says where it is" says 'k.state is at [0-9]+% of the head of [02] blocks; going on'
works "it comes to an end" $(accept --passes 20 --rate 0.0005 --out "$TMP/k")
works "as one does without" $(accept --passes 20 --rate 0.0005 --out "$TMP/whole.k")
check "with the same head" cmp "$TMP/k" "$TMP/whole.k"
check "and leaves nothing beside it" [ ! -e "$TMP/k.state" -a ! -e "$TMP/k.partial" ]
python3 - "$TMP/saved" "$out.partial" <<'END'
import struct, sys
record, h = struct.pack("<QQ", 1, 12345), 0xcbf29ce484222325 # a look, as earlier versions had them behind the candidates
for byte in record:
    h = (h ^ byte) * 0x100000001b3 % 2**64
open(sys.argv[2], "wb").write(open(sys.argv[1], "rb").read() + struct.pack("<QQ", len(record), h) + record)
END
works "what an earlier version left is gone on with" $(accept --passes 2 --out "$out")
check "candidates and all" says 'has candidates of'
check "to the same head" cmp "$out" "$TMP/short.head"
cp "$TMP/saved" "$out.partial"
refuses "with another mixing it does not go on" 2 "was begun with 'mixing 0.1" $(accept --mixing 0.3 --out "$out")
rm -f "$out.partial"

# ---- heads ----

heads() { # arguments, after those that all have
    echo train heads --model "$TINY" --text "$text" --tokens 12000 --batch 64 --window 64 "$@"
}
works "heads without an interruption" $(heads --out "$TMP/whole.heads")
check "leave nothing beside them" [ ! -e "$TMP/whole.heads.state" ]
out=$TMP/heads
interrupt KILL 0 "$out" $(heads --out "$out")
check "killed, they leave where they were" [ "$left" -gt 128 -a -s "$out.state" -a -s "$out" ]
for states in 2 3; do
    kill_at_state $states "$out.state" $(heads --out "$out")
done
interrupt INT 90 "$TMP/err" $(heads --out "$out") # behind its first line: it says that it goes on
check "interrupted, they leave heads" [ "$left" -eq 0 -a -s "$out" ]
check "and say how to go on" says 'interrupted; the best heads so far are in the file, the same command goes on'
check "having said where they were" says 'heads.state has [0-9]+ of 12000 tokens learned; going on'
cp "$out.state" "$TMP/midway"
no_state "$out.state" $(heads --out "$out")
for set in "--kind full" "--tokens 12001" "--batch 32" "--window 32" "--rate 0.1" "--seed 2" "-t 1" "--text $TMP/saved" "--model $TMP/third.gguf"; do
    stops "with $set they do not go on" 2 "heads.state was begun with '.* to go on, or remove the file to start anew" \
        $(heads --out "$out") $set
done
check "having kept what there is" cmp "$TMP/midway" "$out.state"
head -c 400 "$TMP/whole.heads" >"$out" # who goes on writes what belongs to the state
works "they come to an end" $(heads --out "$out")
check "with the same heads" cmp "$out" "$TMP/whole.heads"
check "and leave nothing beside them" [ ! -e "$out.state" ]
works "full heads without an interruption" $(heads --kind full --tokens 2000 --out "$TMP/whole.heads")
interrupt KILL 0 "$out.state" $(heads --kind full --tokens 2000 --out "$out")
works "and with one" $(heads --kind full --tokens 2000 --out "$out")
check "are the same" cmp "$out" "$TMP/whole.heads"
mkdir "$out.state"
refuses "a place that is no file is refused at once" 1 "heads.state: is not a regular file" $(heads --out "$out")
finish
