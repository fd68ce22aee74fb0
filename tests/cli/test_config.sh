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
works "other commands' defaults are passed over" bench --repeat 1 --policy ar -p hello "$TINY"

config '{"prompts": "/none.jsonl", "policy": "layerskip", "tokens": 6}'
works "a prompt that is given wins over a list in the config file" run -p hello --json "$TMP/j" "$TINY"
check "a given prompt runs without the config file's list" sh -c "! grep -q '\"results\"' '$TMP/j'"
works "--speed ignores the policy there without a message" bench --speed -n 4 --repeat 1 "$TINY"

config '{"tokens": 6, '
refuses "a broken config file is named" 2 'config.json: not valid JSON in line 1' run "$TINY"
config '{"tokens": 6,
 "temp": 0},
 "theme": "light"}'
refuses "text after its end is not skipped" 2 'config.json: not valid JSON in line 2' run "$TINY"
config '{"tokens": 6}
'
works "a newline there is skipped" run "$TINY"
config '[1]'
refuses "a list is no config" 2 'config.json' run "$TINY"
config '{"tokns": 6}'
refuses "an unknown name is named" 2 '"tokns" is no option' run "$TINY"
config '{"tokens": "many"}'
refuses "a bad value is named with its file" 2 'config.json: --tokens many' run "$TINY"
config '{"tokens": true}'
refuses "a wrong type is named" 2 '"tokens" must be' run "$TINY"
config '{"ignore-eos": 1}'
refuses "a switch wants true or false" 2 'true or false' run "$TINY"
config '{"help": true}'
refuses "commands are no defaults" 2 '"help" is no option' run "$TINY"
config '{"policy": "magic"}'
refuses "an unknown policy is named" 2 'magic' run "$TINY"
config "$(printf '{"tok\\u001b[2Jens": 1}')"
refuses "escape sequences in a name do no harm" 2 'is no option' run "$TINY"
config '{"seed": 18446744073709551615}'
specscope run -n 3 "$TINY"
check "a seed that a JSON number cannot hold is refused or taken as it is, never changed" [ "$status" -eq 2 ]
config '{"seed": "18446744073709551615"}'
works "as a string it is taken as it is" run -n 3 --json "$TMP/j" "$TINY"
check "a seed of 20 digits is used to its last digit" grep -q '18446744073709551615' "$TMP/j"
works "info and tokenize need no config" info "$TINY"
rm -rf "$XDG_CONFIG_HOME"
works "no config file is no error" run -n 3 "$TINY"
unset XDG_CONFIG_HOME
mkdir -p "$HOME/.config/specscope"
printf '{"tokens": 4}' >"$HOME/.config/specscope/config.json"
works "without XDG_CONFIG_HOME it is looked for in ~/.config" run --ignore-eos "$TINY"
check "the file in ~/.config is used" grep -q ': 4 tokens' "$TMP/err"
finish
