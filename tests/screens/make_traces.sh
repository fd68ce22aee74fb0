#!/bin/sh
# Makes the traces that the screen tests replay, with the bundled model. The expected screens depend on them, so run
# UPDATE=1 tests/screens/test_screens.sh afterwards. The names of this machine are removed from run.json.
set -eu
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build}
make_trace() { # name, prompt, options…
    name=$1
    prompt=$2
    shift 2
    rm -rf "tests/screens/traces/$name"
    [ -z "$prompt" ] || set -- -p "$prompt" "$@"
    "$BUILD/specscope" run --isa reference --threads 1 --probe all --trace "tests/screens/traces/$name" "$@" >/dev/null
    sed -i -e 's#\("path":[[:space:]]*"\)[^"]*/\(models\|tests\)/#\1\2/#' -e 's#\("host":[[:space:]]*"\)[^"]*"#\1here"#' \
        "tests/screens/traces/$name/run.json"
}
make_trace specbound 'A baker sent Ruby to market with a leather fork. "Bring me an oven for it," said the baker, "and do not stop on the way." In the park she met' --policy specbound -n 48
make_trace swift 'Everybody in the valley knew Willa and Lorgar. Willa sat in the chapel and was merry. Lorgar was in the attic. Lorgar had a magic cheese. "Are you calm?" asked' --policy swift --set window=8 --set skip_ratio=0.7 --probe policy -n 60
make_trace del 'Everybody in the valley knew Willa and Lorgar. Willa sat in the chapel and was merry. Lorgar was in the attic. Lorgar had a magic cheese. "Are you calm?" asked' --policy del -n 40
make_trace sd 'Three mice sat on a wall,' --policy sd -n 30
make_trace batch "" --prompts tests/screens/prompts.jsonl --batch 3 --policy specbound -n 20
make_trace specdecpp 'A baker sent Ruby to market with a leather fork. "Bring me an oven for it," said the baker, "and do not stop on the way." In the park she met' --policy specdecpp --probe policy -n 60
make_trace sv 'A baker sent Ruby to market with a leather fork. "Bring me an oven for it," said the baker, "and do not stop on the way." In the park she met' --policy sv --set row_cost=0.2 --probe policy -n 60
make_trace eagle 'Everybody in the valley knew Willa and Lorgar. Willa sat in the chapel and was merry. Lorgar was in the attic. Lorgar had a magic cheese. "Are you calm?" asked' --policy eagle --set topk=4 --set k=5 --probe policy -n 30
make_trace hybrid 'Five ants, noisy as can be, sat on a fence;' --policy specbound -n 24 models/fables-hybrid-q8_0.gguf
make_trace experts 'the hen' --policy layerskip --set exit_layer=2 -n 30 tests/golden/families/glm4_moe.gguf
# Knob changes during the run and a baseline at the end, which only the scope can make, in a terminal.
rm -rf tests/screens/traces/turned
TERM=xterm-256color script -qec "stty rows 40 cols 140; $BUILD/specscope --isa reference --threads 1 --head lens -n 120 --probe policy \
    --trace tests/screens/traces/turned --script tests/screens/turned.script \
    -p 'Everybody in the valley knew Willa and Lorgar. Willa sat in the chapel and was merry. Lorgar was in the attic.'" /dev/null >/dev/null
sed -i -e 's#\("path":[[:space:]]*"\)[^"]*/models/#\1models/#' -e 's#\("host":[[:space:]]*"\)[^"]*"#\1here"#' \
    tests/screens/traces/turned/run.json
