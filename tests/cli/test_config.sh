#!/bin/sh
# The config file contains defaults, and options override them; a broken file is refused in one line.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

config() { # JSON
    mkdir -p "$XDG_CONFIG_HOME/specscope"
    printf '%s' "$1" >"$XDG_CONFIG_HOME/specscope/config.json"
}

config '{"policy": "layerskip", "tokens": 7, "set": ["gamma=3"], "ignore-eos": true, "theme": "light", "pace": 9}'
works "defaults come from the config file" run --json "$TMP/j" -p hello "$TINY"
check "the config file sets the policy" grep -q '"policy":.*"layerskip"' "$TMP/j"
check "the config file sets the number of tokens" grep -q '^layerskip: 7 tokens' "$TMP/err"
check "the config file sets a knob" grep -q '"gamma":.*"3"' "$TMP/j"
works "options override the config file" run --json "$TMP/j" -p hello -n 5 --policy ar "$TINY"
check "--policy overrides the config file's policy and its knobs" grep -q '"policy":.*"ar"' "$TMP/j"
check "-n overrides the config file's number of tokens" grep -q '^ar: 5 tokens' "$TMP/err"
works "--set overrides the config file's value of the knob" run --json "$TMP/j" --set gamma=4 -p hello "$TINY"
check "the overridden knob has the option's value" grep -q '"gamma":.*"4"' "$TMP/j"
check "a knob that is set twice is printed once" [ "$(grep -c '"gamma"' "$TMP/j")" -eq 1 ]
config '{"tokens": 6, "theme": "light", "trace": 3, "script": "x"}'
works "run ignores other commands' defaults in the config file" bench --repeat 1 --policy ar -p hello "$TINY"

config '{"prompts": "/none.jsonl", "policy": "layerskip", "tokens": 6}'
works "a given prompt overrides a list of prompts in the config file" run -p hello --json "$TMP/j" "$TINY"
check "a given prompt runs without the config file's list" sh -c "! grep -q '\"results\"' '$TMP/j'"
works "bench --speed ignores the config file's policy without a message" bench --speed -n 4 --repeat 1 "$TINY"

config '{"tokens": 6, '
refuses "a broken config file is refused" 2 'config.json: not valid JSON in line 1' run "$TINY"
config '{"tokens": 6,
 "temp": 0},
 "theme": "light"}'
refuses "a config file with text after the end of its JSON is refused" 2 'config.json: not valid JSON in line 2' run "$TINY"
config '{"tokens": 6}
'
works "a config file may end in a newline" run "$TINY"
config '[1]'
refuses "a config file that is a JSON list is refused" 2 'config.json' run "$TINY"
config '{"tokns": 6}'
refuses "a config file with an unknown name is refused" 2 '"tokns" is no option' run "$TINY"
config '{"tokens": "many"}'
refuses "a config file with a bad value is refused" 2 'config.json: --tokens many' run "$TINY"
config '{"tokens": true}'
refuses "a config file with a value of a wrong type is refused" 2 '"tokens" must be' run "$TINY"
config '{"ignore-eos": 1}'
refuses "a switch in the config file that is neither true nor false is refused" 2 'true or false' run "$TINY"
config '{"help": true}'
refuses "a command in the config file is refused" 2 '"help" is no option' run "$TINY"
config '{"policy": "magic"}'
refuses "an unknown policy in the config file is refused" 2 'magic' run "$TINY"
config "$(printf '{"tok\\u001b[2Jens": 1}')"
refuses "a name with escape sequences in the config file is refused harmlessly" 2 'is no option' run "$TINY"
config '{"seed": 18446744073709551615}'
specscope run -n 3 "$TINY"
check "a seed that a JSON number cannot hold is refused or taken as it is, never changed" [ "$status" -eq 2 ]
config '{"seed": "18446744073709551615"}'
works "a seed in the config file may be a string" run -n 3 --json "$TMP/j" "$TINY"
check "a seed of 20 digits is used to its last digit" grep -q '18446744073709551615' "$TMP/j"
works "info ignores a config file that is not valid" info "$TINY"
rm -rf "$XDG_CONFIG_HOME"
works "run works without a config file" run -n 3 "$TINY"
unset XDG_CONFIG_HOME
mkdir -p "$HOME/.config/specscope"
printf '{"tokens": 4}' >"$HOME/.config/specscope/config.json"
works "run works with a config file in ~/.config" run --ignore-eos "$TINY"
check "run uses the config file in ~/.config if XDG_CONFIG_HOME is not set" grep -q ': 4 tokens' "$TMP/err"
finish
