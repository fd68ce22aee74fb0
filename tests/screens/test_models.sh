#!/bin/sh
# Without a model, the scope lists the models on this machine, and :open opens another one in mid-run. UPDATE=1 writes
# the expected screens.
BUILD=${BUILD:-build}
. tests/screens/lib.sh
FAMILIES=$ROOT/tests/golden/families

terminal 120x36 "exec $PROGRAM"
check "the scope opens the bundled model at once where there is no other" wait_for 'fables-14m · 16 layers'

HUB=$HOME/.cache/huggingface/hub
for name in org--tiny Qwen--toy org--files; do
    mkdir -p "$HUB/models--$name/snapshots/c"
done
cp -L "$FAMILIES"/gemma3/* "$HUB/models--org--tiny/snapshots/c/"
cp -L "$FAMILIES"/qwen2-yarn/* "$HUB/models--Qwen--toy/snapshots/c/"
cp -L "$FAMILIES/phi.gguf" "$HUB/models--org--files/snapshots/c/phi-Q4_K_M.gguf"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 7\n' >"$HUB/models--org--files/snapshots/c/pointer.gguf"

golden() { # name, the row with the path, which is another one on every machine
    expected=$ROOT/tests/screens/expected/models-$1.txt
    tm capture-pane -p | sed "$2d" >"$WORK/screen.txt"
    [ -n "${UPDATE:-}" ] && cp "$WORK/screen.txt" "$expected"
    diff -u "$expected" "$WORK/screen.txt"
}
for size in 40x10:7 80x24:19 160x48:43; do
    terminal "${size%:*}" "$PROGRAM"
    wait_for '4 of 5 run here' >/dev/null
    [ -n "${UPDATE:-}" ] || until_true golden "${size%:*}" "${size#*:}" >/dev/null # which is drawn line by line
    check "the list of models at ${size%:*} is as expected" golden "${size%:*}" "${size#*:}"
done
tm send-keys Up Down Down Down
check "a model that does not run is described" wait_for 'it does not run here: .*Git LFS pointer'
tm send-keys Enter
check "a model that does not run stays closed after Enter" wait_for '^ .*pointer.gguf: .*Git LFS pointer'
tm send-keys T I N Y
check "typing filters the models" wait_for '^ filter TINY .*Enter open'
check "a filter leaves models with its text in their name" sh -c "[ \$(tmux -S $SOCKET capture-pane -p | grep -c 'hf:\|bundled') = 1 ]"
tm send-keys Enter
check "Enter in the list of models opens a model" wait_for 'tiny · [0-9]* layers'
tm send-keys -l ':open nothing-of-the-kind.gguf'
tm send-keys Enter
check "a model that cannot be opened leaves the run unchanged" wait_for 'nothing-of-the-kind.gguf'
tm send-keys O
wait_for '4 of 5 run here' >/dev/null
tm send-keys p o i n t Enter
check "the list reports why the model does not open" wait_for '^ .*pointer.gguf: .*Git LFS pointer'
tm send-keys Escape
until_true shows 'hf:Qwen/toy' >/dev/null
tm send-keys Escape
check "Esc in the list of models goes back to the run" wait_for 'tiny · [0-9]* layers'
tm send-keys -l ':open bundled'
tm send-keys Enter
check "the list of models asks before it leaves a run that is not exported" wait_for 'not exported yet:  q open the other and lose it'
tm send-keys Down
tm send-keys q
check "another key keeps a run that is not exported" wait_for 'not exported yet:  q quit and lose it'
tm send-keys Down
tm send-keys -l ':open bundled'
tm send-keys Enter
wait_for 'q open the other' >/dev/null
tm send-keys q
check ":open takes the other model" wait_for 'fables-14m · 16 layers'
tm send-keys q q
check "the scope ends well after :open" exits 0

for case in sd:k specdecpp:max sv:window; do
    policy=${case%:*}
    terminal 160x48 "$PROGRAM --pace 20 --policy $policy --set ${case#*:}=3 bundled" # so that no later message follows at once
    wait_for 'fables-14m.* round [1-9]' >/dev/null
    tm send-keys -l ':open hf:org/tiny'
    tm send-keys Enter
    wait_for 'q open the other' >/dev/null
    tm send-keys q
    check ":open under $policy accepts a model without a draft model, and reports it" wait_for "policy $policy needs a draft model.*; the policy is chosen automatically"
    check "a model without a draft model runs with another policy after :open under $policy" wait_for "tiny.* policy [a-z]"
done
leave() { # the next prompt may begin between two keys
    tm send-keys q
    sleep 0.2
    test -s "$WORK/run/status"
}
until_true leave
check ":open works with another policy" exits 0

terminal 80x24 "NO_COLOR=1 LC_ALL=C $PROGRAM"
check "the list of models can be read without colours and UTF-8" wait_for '> bundled'
check "models that do not run are marked without colours" wait_for 'pointer.gguf *x '
tm send-keys q
check "q filters models whose name begins with it" wait_for '^ filter q '
tm send-keys q
check "a second q leaves the list" exits 0
terminal 120x36 "$PROGRAM bundled"
check ":open bundled opens the bundled model" wait_for 'fables-14m · 16 layers'
printf ':open bundled\n' >"$WORK/open.script"
terminal 80x24 "$PROGRAM --script $WORK/open.script -n 5"
check "a script keeps its model" exits 2
check "a script that opens another model is refused with the reason" grep -q 'a script stays with its model' "$WORK/run/err"
exit $STATUS
