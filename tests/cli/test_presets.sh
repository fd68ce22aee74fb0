#!/bin/sh
# Presets: named settings for the scope, run and bench; a broken preset is refused in one line.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

preset() { # name, JSON
    mkdir -p "$XDG_CONFIG_HOME/specscope/presets"
    printf '%s' "$2" >"$XDG_CONFIG_HOME/specscope/presets/$1.json"
}

works "--list-presets works without presets" run --list-presets
check "--list-presets without presets names the command that saves one" grep -q ':preset save NAME' "$TMP/out"
refuses "a missing preset is refused" 2 "there is no preset 'quick', nor any other" run --preset quick "$TINY"
preset quick '{"policy": "layerskip", "set": ["gamma=3", "exit_layer=2"]}'
preset broken '{"policy": "layerskip", "set": "gamma=3"}'
works "run --preset works" run --preset quick -n 5 -p hello --json "$TMP/j" "$TINY"
check "a preset sets the policy" grep -q '"policy":.*"layerskip"' "$TMP/j"
check "a preset sets the knobs" grep -q '"gamma":.*"3"' "$TMP/j"
works "run --preset accepts --set after it" run --preset quick --set gamma=4 -n 5 -p hello --json "$TMP/j" "$TINY"
check "--set after --preset overrides its knob" grep -q '"gamma":.*"4"' "$TMP/j"
works "run --preset accepts --policy after it" run --preset quick --policy ar -n 5 -p hello --json "$TMP/j" "$TINY"
check "--policy after --preset overrides its policy" grep -q '"policy":.*"ar"' "$TMP/j"
printf '{"policy": "specbound", "set": ["tau=0.7"]}' >"$XDG_CONFIG_HOME/specscope/config.json"
works "--preset replaces the config file's policy and knobs" run --preset quick -n 5 -p hello --json "$TMP/j" "$TINY"
rm "$XDG_CONFIG_HOME/specscope/config.json"
preset warm '{"policy": "ar", "temp": 0.7, "top-k": 40, "top-p": 0.95, "seed": "18446744073709551615"}'
works "run --preset works with a preset of sampling" run --preset warm -n 5 -p hello --json "$TMP/j" "$TINY"
check "a preset sets the temperature" grep -q '"temperature":.*0\.69999' "$TMP/j"
check "a preset sets the seed to its last digit" grep -q '18446744073709551615' "$TMP/j"
works "run --preset accepts --temp after it" run --preset warm --temp 0 -n 5 -p hello --json "$TMP/j" "$TINY"
check "--temp after --preset overrides its temperature" grep -q '"temperature":[[:space:]]*0,' "$TMP/j"
works "--list-presets lists a preset of sampling" run --list-presets
check "--list-presets prints a preset in the words of the options" grep -qx 'warm  *ar temp=0.7 top-k=40 top-p=0.95 seed=18446744073709551615' "$TMP/out"
preset warm '{"policy": "ar", "top-p": 2}'
refuses "a preset with a number out of its bounds is refused" 2 '--preset warm: --top-p 2' run --preset warm "$TINY"
rm "$XDG_CONFIG_HOME/specscope/presets/warm.json"
works "bench takes a preset" bench --preset quick --repeat 2 -n 5 -p hello --csv "$TMP/csv" "$TINY"
check "bench measures the preset and ar" grep -q '^layerskip,"gamma=3 exit_layer=2"' "$TMP/csv"
works "--list-presets works with a broken preset" bench --list-presets
check "--list-presets prints a preset in a line" grep -qx 'quick  *layerskip gamma=3 exit_layer=2' "$TMP/out"
check "--list-presets prints the fault of a broken preset" grep -q '^broken  *cannot be used: .*"set" must be a list' "$TMP/out"
refuses "a broken preset is refused in one line" 2 '--preset broken: .*broken.json: "set" must be' run --preset broken "$TINY"
refuses "an unknown preset is refused with the list of presets" 2 'there are broken, quick' run --preset slow "$TINY"
refuses "--preset with a path is refused" 2 'is no name for a preset' run --preset ../config "$TINY"
preset policy '{"policy": "magic"}'
refuses "a preset with an unknown policy is refused" 2 'magic is not known' run --preset policy "$TINY"
preset knob '{"policy": "layerskip", "set": ["tau=0.7"]}'
refuses "a preset with an unknown knob is refused" 2 "no knob 'tau'" run --preset knob "$TINY"
finish
