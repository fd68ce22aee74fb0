#!/bin/sh
# --trace: the contents of the folder, and failures of the disk, the folder or the process.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

works "a run is traced into a new folder" run -n 30 --ignore-eos --trace "$TMP/a/b" -p hello "$TINY"
for file in run.json tokens.csv layers.csv series.csv controls.csv vocab.csv rounds.csv; do
    check "the trace has $file" [ -s "$TMP/a/b/$file" ]
done
check "every table of the trace begins with the columns that order lines" \
    [ "$(head -qn 1 "$TMP"/a/b/*.csv | grep -c '^event,t_us,run,seq,')" -eq 6 ]
check "tokens.csv has all generated tokens" \
    [ "$(awk -F, '$10 != "prompt" && $16 == 1' "$TMP/a/b/tokens.csv" | wc -l)" -eq 30 ]
check "controls.csv has the run's end" grep -q '"end",,"tokens"' "$TMP/a/b/controls.csv"
cp "$TMP/a/b/tokens.csv" "$TMP/before"
refuses "a folder that holds a trace is refused" 2 'another folder' run -n 3 --trace "$TMP/a/b" "$TINY"
check "a folder that holds a trace is left alone" cmp -s "$TMP/before" "$TMP/a/b/tokens.csv"
specscope run -n 3 --trace "$TMP/before/x" "$TINY"
check "a file in place of the trace's folder stops the trace and not the run, which exits with status 1" sh -c '[ "$1" -eq 1 ] && [ -s "$2" ]' sh "$status" "$TMP/out"
check "a file in place of the trace's folder is reported" grep -q '^specscope: .*Not a directory' "$TMP/err"

replays() { # folder; what the scope says of it is left in $TMP/picture
    rm -f "$TMP/picture"
    printf ':save-screen %s\n:quit\n' "$TMP/picture" >"$TMP/replay.script"
    in_terminal "'$PROGRAM' replay --script '$TMP/replay.script' '$1'" && [ -s "$TMP/picture" ]
}
if command -v script >/dev/null 2>&1; then
    check "the trace replays" replays "$TMP/a/b"
    can_replay=yes
else
    skip "the trace replays" "there is no script(1)"
    can_replay=
fi

group "bounded"
works "a trace that is full does not stop the run" \
    run -n 1500 -c 2000 --ignore-eos --probe all --trace "$TMP/full" --trace-max 150K -p hello "$TINY"
check "a full trace does not cost tokens" grep -q ': 1500 tokens,' "$TMP/err"
check "the trace's end is reported in one line" [ "$(grep -c '^specscope: .*--trace-max' "$TMP/err")" -eq 1 ]
check "a full trace is no larger than --trace-max" [ "$(cat "$TMP"/full/* | wc -c)" -le 153600 ]
check "a full trace is nearly as large as --trace-max" [ "$(cat "$TMP"/full/* | wc -c)" -gt 100000 ]
check "run.json contains that the trace was cut" grep -q '"cut":.*true' "$TMP/full/run.json"
works "run --trace-probe off writes a trace without layers" run -n 30 --ignore-eos --probe all --trace "$TMP/flat" --trace-probe off -p hello "$TINY"
check "a trace without layers has an empty table of them" [ "$(wc -l <"$TMP/flat/layers.csv")" -eq 1 ]
works "diff compares a full trace and one without layers" diff "$TMP/full" "$TMP/flat"
check "diff names the trace that was cut" grep -Eq '^cut by --trace-max +yes +no' "$TMP/out"
[ -n "$can_replay" ] && check "a full trace replays" replays "$TMP/full"
[ -n "$can_replay" ] && check "a trace without layers replays" replays "$TMP/flat"
for size in 10 0 12Q 63K -5 2000G 99999999999999999999 1.5M K; do
    refuses "--trace-max $size is refused" 2 'a size from 64K' run -n 3 --trace "$TMP/no" --trace-max $size "$TINY"
done
for which in 0 some -1 2x; do
    refuses "--trace-probe $which is refused" 2 'every Nth round' run -n 3 --trace "$TMP/no" --trace-probe $which "$TINY"
done

group "exported"
if [ -n "$can_replay" ]; then
    printf ':wait round 5\n:export %s\n:wait end\n:baseline\n:wait idle\n:export %s\n:quit\n' \
        "$TMP/early" "$TMP/late" >"$TMP/export.script"
    in_terminal "'$PROGRAM' -n 200 --ignore-eos --script '$TMP/export.script' -p hello '$TINY'"
    for folder in early late; do
        check "the $folder export is marked as whole" grep -q '"closed_event"' "$TMP/$folder/run.json"
        check "the $folder export has a trace's files and no others" [ "$(ls -A "$TMP/$folder" | wc -l)" -eq 7 ]
        check "the $folder export replays" replays "$TMP/$folder"
    done
    check "the later export has the run's end" grep -q '"end",,' "$TMP/late/controls.csv"
fi

group "killed"
has_rounds() { # folder, how many
    [ "$(wc -l <"$1/rounds.csv")" -gt "$2" ]
}
"$PROGRAM" run -n 0 -c 200000 --ignore-eos --trace "$TMP/killed" "$TINY" >/dev/null 2>&1 &
pid=$!
check "a long run writes its trace as it runs" wait_until has_rounds "$TMP/killed" 20
kill -KILL $pid
wait $pid 2>/dev/null
[ -n "$can_replay" ] && check "a trace that SIGKILL leaves replays" replays "$TMP/killed"

for signal in 2:INT 15:TERM; do
    number=${signal%:*} signal=${signal#*:}
    "$PROGRAM" run -n 0 -c 200000 --ignore-eos --trace "$TMP/$signal" --json "$TMP/$signal.json" "$TINY" \
        >"$TMP/out" 2>"$TMP/err" &
    pid=$!
    wait_until has_rounds "$TMP/$signal" 5
    kill -$signal $pid
    wait $pid
    status=$?
    check "SIG$signal ends a run with status 128 + $number" [ "$status" -eq $((128 + number)) ]
    check "the summary of a run that a signal ended contains 'cancelled'" grep -q 'end: cancelled$' "$TMP/err"
    check "a run that a signal ended prints the text so far" [ -s "$TMP/out" ]
    check "a run that a signal ended writes the results so far" grep -q '"end":.*"cancelled"' "$TMP/$signal.json"
    [ -n "$can_replay" ] && check "the trace of a run that a signal ended replays" replays "$TMP/$signal"
done

group "no room"
# Mounting needs a mount namespace: root's, or any user's if the system allows user namespaces.
if unshare -m mount -t tmpfs x "$TMP/a" 2>/dev/null; then spaces='unshare -m'
elif unshare -rm mount -t tmpfs x "$TMP/a" 2>/dev/null; then spaces='unshare -rm'
else spaces=; fi
mounted() { # mount options, command for sh in which the disk is $TMP/disk
    mkdir -p "$TMP/disk"
    $spaces sh -c "mount -t tmpfs -o $1 x '$TMP/disk' && $2"
}
if [ -n "$spaces" ]; then
    mounted size=64k "'$PROGRAM' run -n 200 --ignore-eos --trace '$TMP/disk/t' '$TINY' && rm -f '$TMP/disk/filler'; \
        s=\$?; cp -r '$TMP/disk/t' '$TMP/filled'; exit \$s" >"$TMP/out" 2>"$TMP/err"
    status=$?
    check "a disk that fills up under a trace makes the run exit with status 1" [ "$status" -eq 1 ]
    check "a disk that fills up does not stop the run" grep -q ': 200 tokens,' "$TMP/err"
    check "the trace's end is reported in one line" [ "$(grep -c '^specscope: .*No space left' "$TMP/err")" -eq 1 ]
    [ -n "$can_replay" ] && check "the trace on a full disk replays" replays "$TMP/filled"
    mounted size=4k "'$PROGRAM' run -n 20 --ignore-eos --trace '$TMP/disk/t' '$TINY'" >"$TMP/out" 2>"$TMP/err"
    status=$?
    check "a disk that is full from the start makes the run exit with status 1" [ "$status" -eq 1 ]
    check "a disk that is full from the start is reported" grep -q '^specscope: .*No space left' "$TMP/err"
    mounted ro "'$PROGRAM' run -n 20 --ignore-eos --trace '$TMP/disk/t' '$TINY'" >"$TMP/out" 2>"$TMP/err"
    status=$?
    check "a read-only folder for the trace makes the run exit with status 1, after its text" sh -c '[ "$1" -eq 1 ] && [ -s "$2" ]' sh "$status" "$TMP/out"
    check "a read-only folder is reported" grep -q '^specscope: .*Read-only' "$TMP/err"
else
    skip "a disk that fills up does not stop the run" "mounting is not allowed here"
fi
finish
