#!/bin/sh
# The ledger on the bundled model, live: undo and redo of knob changes, taking a row's settings again, presets, command
# lines.
BUILD=${BUILD:-build}
. tests/screens/lib.sh

knob() { # saved screen, knob: its value
    sed -n "s/.*[ ▸]$2 .*├[^┤]*┤ *\([^ ┃│]*\).*/\1/p" "$1" | head -n 1
}
row() { # saved screen, letter: the ledger's row
    grep -m 1 "[│┃]▸\{0,1\} *$2[★☆ ] " "$1"
}

group "knob changes"
cat >"$WORK/turns.script" <<'END'
:wait round 3
:set tau 0.3
:step 2
:wait idle
:set tau 0.8
:step 2
:wait idle
:policy layerskip
:step
:wait idle
:save-screen turned.txt
:key u
:wait idle
:save-screen back1.txt
:key u
:wait idle
:save-screen back2.txt
:step
:wait idle
:key U
:wait idle
:save-screen again.txt
:step
:wait idle
:undo
:undo
:wait idle
:save-screen first.txt
:take B
:wait idle
:save-screen taken.txt
:step
:wait idle
:take D
:wait idle
:step
:wait idle
:save-screen layerskip.txt
:undo
:wait idle
:save-screen ungrouped.txt
:step
:wait idle
:copy-command D
:preset save D mine
:preset save now
:quit
END
terminal 160x48 "$PROGRAM -n 200 -p \"Three mice's wall\" --script $WORK/turns.script"
check "a script of turns ends well" exits 0
check "the newest row shows the policy" sh -c "grep -q 'D.  layerskip' '$WORK/run/turned.txt'"
check "every change of a knob is a mark in its round" grep -q '┊τ 0.55→0.3 .*low confidence\|┊τ 0.55→0.3 .*w_max' "$WORK/run/turned.txt"
check "every change of a knob is a mark in the series" grep -q '└1.*┊.*round 8' "$WORK/run/turned.txt"
check "every change of a knob is a mark in the time line" grep -q '┊.*context' "$WORK/run/turned.txt"
check "u takes the policy back" grep -q 'policy specbound' "$WORK/run/back1.txt"
check "u takes back the policy with the value that its knob had" test "$(knob "$WORK/run/back1.txt" tau)" = 0.8
check "a second u takes back the change before" test "$(knob "$WORK/run/back2.txt" tau)" = 0.3
check "U restores the change that u took back" test "$(knob "$WORK/run/again.txt" tau)" = 0.8
check "two more undos restore the knob's first value" test "$(knob "$WORK/run/first.txt" tau)" = 0.55
check ":take has a row's settings again" test "$(knob "$WORK/run/taken.txt" tau)" = 0.3
check ":take has a row's policy again" grep -q 'policy layerskip' "$WORK/run/layerskip.txt"
check "one undo takes back all of :take" test "$(knob "$WORK/run/ungrouped.txt" tau)" = 0.3
cat >"$WORK/wanted.json" <<'END'
{
	"policy":	"layerskip",
	"set":	["exit_layer=4", "gamma=5", "draft_vocab=0"],
	"head":	"lens",
	"temp":	0,
	"top-k":	0,
	"top-p":	1,
	"seed":	1
}
END
check ":preset save writes a row's settings" diff -u "$WORK/wanted.json" "$WORK/home/specscope/presets/mine.json"
check ":preset save without a row writes the settings in force" grep -q '"tau=0.3"' "$WORK/home/specscope/presets/now.json"
check ":copy-command leaves the command line in a file" grep -q "^$PROGRAM run --policy layerskip --head lens .*-n 200 -p 'Three mice'\\\\''s wall' -- /" "$WORK/home/specscope/command"
cp "$WORK/home/specscope/command" "$WORK/command"
check "the copied command line runs" sh -c "cd '$WORK' && sh ./command >/dev/null 2>'$WORK/said' && grep -q '^layerskip: ' '$WORK/said'"

group "sampling's sliders"
cat >"$WORK/sampling.script" <<'END'
:wait round 2
:panel knobs
:key Down Down Down Down Down Down Down Down Right S-Right
:wait idle
:step
:wait idle
:save-screen warm.txt
:key Down Down Down Right Right
:wait idle
:step
:wait idle
:save-screen seed.txt
:key u
:wait idle
:key u
:wait idle
:save-screen undone.txt
:key U U
:wait idle
:step
:wait idle
:save-screen again.txt
:quit
END
terminal 260x60 "$PROGRAM --preset mine --policy specbound -n 100 --script $WORK/sampling.script"
check "a script of sampling's sliders ends well" exits 0
check "→ changes the temperature by a hundredth, and Shift-→ by ten" test "$(knob "$WORK/run/warm.txt" 'T temperature')" = 0.11
check "a changed temperature is a row of the ledger and a mark" sh -c "grep -q 'B.  T 0.11' '$WORK/run/warm.txt' && grep -q '┊T 0→0.11' '$WORK/run/warm.txt'"
check "→ changes the seed by one" test "$(knob "$WORK/run/seed.txt" seed)" = 3
check "u takes the seed back, then the temperature" test "$(knob "$WORK/run/undone.txt" seed)$(knob "$WORK/run/undone.txt" 'T temperature')" = 10
check "U restores the temperature and the seed" test "$(knob "$WORK/run/again.txt" seed)$(knob "$WORK/run/again.txt" 'T temperature')" = 30.11

group "requested settings while a round waits"
cat >"$WORK/pending.script" <<'END'
:wait round 2
:step token
:wait idle
:set gamma 3
:wait idle
:save-screen pending.txt
:take A
:step
:wait idle
:save-screen taken.txt
:step token
:wait idle
:set gamma 3
:undo
:set exit_layer 6
:step
:wait idle
:save-screen undone.txt
:step token
:wait idle
:head other
:head other
:step
:wait idle
:save-screen head.txt
:quit
END
terminal 160x48 "$PROGRAM -n 200 --policy layerskip -p \"Three mice's wall\" --script $WORK/pending.script"
check "a script of changes while a round waits ends well" exits 0
check "a change by a command is shown as pending" test "$(knob "$WORK/run/pending.txt" 'γ gamma')" = 3…
check ":take restores a row's settings while a change waits" test "$(knob "$WORK/run/taken.txt" 'γ gamma')" = 5
check ":undo takes back a change that waits" test "$(knob "$WORK/run/undone.txt" 'γ gamma')" = 5
check "a change after an undone one takes effect" test "$(knob "$WORK/run/undone.txt" exit_layer)" = 6
check ":head other, twice, restores the head" test "$(grep -c 'trained heads' "$WORK/run/head.txt")" = "$(grep -c 'trained heads' "$WORK/run/undone.txt")"

group "presets"
cat >"$WORK/preset.script" <<'END'
:wait round 2
:save-screen begun.txt
:preset now
:wait idle
:step
:wait idle
:save-screen now.txt
:undo
:wait idle
:save-screen undone.txt
:step
:wait idle
:set temperature 0.7
:step
:wait idle
:save-screen warm.txt
:preset save warm
:take A
:wait idle
:step
:wait idle
:save-screen greedy.txt
:preset warm
:wait idle
:step
:wait idle
:save-screen again.txt
:preset mine
:wait idle
:save-screen mine.txt
:quit
END
terminal 160x48 "$PROGRAM --preset mine -n 100 --script $WORK/preset.script"
check "a script with presets ends well" exits 0
check "--preset begins the run with a preset" grep -q 'policy layerskip' "$WORK/run/begun.txt"
check ":preset loads a preset" test "$(knob "$WORK/run/now.txt" tau)" = 0.3
check "a row's sampling settings are taken again, too" sh -c "grep -q ' T 0.7 ' '$WORK/run/warm.txt' && grep -q ' greedy ' '$WORK/run/greedy.txt'"
check "a saved preset has the sampling settings" sh -c "grep -q '\"temp\":	0.7' '$WORK/home/specscope/presets/warm.json' && grep -q ' T 0.7 ' '$WORK/run/again.txt'"
check "a preset of greedy decoding makes the run greedy" grep -q ' greedy ' "$WORK/run/mine.txt"
check "one undo takes a whole preset back" grep -q 'policy layerskip' "$WORK/run/undone.txt"

group "refusals"
for line in ':undo' ':redo' ':take Q' ':take' ':preset none' ':preset save a/b' ':preset save Q name' ':undo now'; do
    printf ':wait round 1\n%s\n:quit\n' "$line" >"$WORK/wrong.script"
    terminal 120x36 "$PROGRAM --script $WORK/wrong.script"
    check "$line is refused in one line" refused
done
printf ':goto 3\n:wait idle\n:undo\n:quit\n' >"$WORK/replay.script"
terminal 120x36 "$PROGRAM replay --script $WORK/replay.script $ROOT/tests/screens/traces/specbound"
check ":undo in a replay is refused" exits 2

group "keys, and the clipboard"
tm kill-server 2>/dev/null
terminal 160x48 "exec $PROGRAM --pace 30 --once"
tm set-option -s set-clipboard on
wait_for 'layers × tokens' >/dev/null
tm send-keys 6
check "6 moves the focus to the ledger, and the key bar shows its keys" wait_for 'Enter pin'
check "the ledger's first row grows" wait_for 'A   start  *[1-9][0-9]'
check "the title shows the engine's speed while it is slowed down" wait_for '30/s shown · [0-9]* ±[0-9]* engine'
tm send-keys y
check "y prints the file of the command line" wait_for 'copied, and in .*specscope/command'
check "y copies the command line to the terminal's clipboard" until_true sh -c "tmux -S $SOCKET show-buffer | grep -q '^$PROGRAM run --policy specbound'"
for verb in take copy-command; do
    tm send-keys :
    tm send-keys -l "$verb "
    tm send-keys Tab
    check "Tab after :$verb completes the ledger's letters" wait_for ":$verb A"
    tm send-keys Escape
    until_true hides ":$verb" >/dev/null
done
tm send-keys s
check "s in the ledger asks for a preset's name" wait_for ':preset save A'
tm send-keys -l typed
tm send-keys Enter
check "s in the ledger saves the preset" until_true test -s "$WORK/home/specscope/presets/typed.json"
echo '{}' >"$WORK/home/specscope/presets/typed.json"
tm send-keys -l ':preset save typed'
tm send-keys Enter
check ":preset save does not replace a preset at once" wait_for 'there is a preset typed; the same command again replaces it'
check "a preset that was not replaced is as it was" grep -qx '{}' "$WORK/home/specscope/presets/typed.json"
tm send-keys : Up Enter
check "the same :preset save again replaces a preset" until_true grep -q policy "$WORK/home/specscope/presets/typed.json"
exit $STATUS
