#!/bin/sh
# Completions for bash, zsh and fish, and the manual's list of options, which are made from one table of options.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh

for shell in bash zsh fish; do
    works "completions prints a script for $shell" completions $shell
    cp "$TMP/out" "$TMP/specscope.$shell"
done
refuses "completions without a shell is refused" 2 'which shell' completions
refuses "completions for an unknown shell is refused" 2 'csh' completions csh
check "completions offers the three shells, and no internal word" [ "$(printf '%s\n' specscope completions '' | "$PROGRAM" completions words | tr '\n' ' ')" = 'none bash zsh fish ' ]
refuses "completions for two shells is refused" 2 'one shell' completions bash zsh

PATH=$BUILD:$PATH # the scripts ask the program for words

group 'bash, as in a terminal: COMP_WORDS are also cut at "="'
cat >"$TMP/complete.bash" <<'EOS'
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_specscope
printf '%s\n' "${COMPREPLY[@]}"
EOS
offers() { # sentence, the words that are offered, the command line as bash cuts it
    sentence=$1 wanted=$2
    shift 2
    bash --norc "$TMP/complete.bash" "$TMP/specscope.bash" specscope "$@" 2>&1 | tr '\n' ' ' | sed 's/ *$//' >"$TMP/out"
    check "bash completes $sentence" [ "$(cat "$TMP/out")" = "$wanted" ]
}
offers_among() { # sentence, one of the words that are offered, the command line
    sentence=$1 wanted=$2
    shift 2
    bash --norc "$TMP/complete.bash" "$TMP/specscope.bash" specscope "$@" >"$TMP/out" 2>&1
    check "bash completes $sentence" grep -qxe "$wanted" "$TMP/out"
}
if command -v bash >/dev/null 2>&1; then
    check "bash accepts its completion script" bash -n "$TMP/specscope.bash"
    offers "a command" 'replay' rep
    offers "all options of a command" '--theme --script --follow --help --version' replay --
    offers "an option of the scope" '--quit-at-end' --qui
    offers "an option after a model" '--temp' run model.gguf --te
    offers "no option of another command" '' run --gri
    offers "policies" 'del' run --policy de
    offers "policies after =" 'del' run --policy = de
    offers "the default policy's knobs" 'tau=' run --set ta
    offers "another policy's knobs" 'exit_layer= gamma= draft_vocab=' run --policy layerskip --set ''
    offers "knobs after --policy = and --set =" 'gamma=' --policy = layerskip --set = ga
    offers "the last policy's knobs in run" 'omega=' run --policy layerskip --policy del --set om
    offers "every named policy's knobs in bench" 'gamma=' bench --policy layerskip --policy del --set ga
    offers "choices of a knob, by name" 'length=dynamic length=tpl' run --policy del --set len
    offers "choices of a knob after its =" 'dynamic' run --policy del --set length = dy
    offers "no value of a knob that is a number" '' run --set tau = ''
    offers "nothing for a prompt" '' run --prompt ''
    offers "the values of --probe" 'off policy all' --probe ''
    offers "backends" 'cpu cuda' run --backend c
    offers "the shapes of synthetic models" 'TinyLlama-1.1B,' info --synth Tiny
    offers "the files that train can write" 'heads eagle accept profile' train ''
    offers_among "kinds of figures" 'reliability' plot some/trace ''
    offers_among "traces to draw" 'cli' plot ''
    offers "measures of a grid" 'etpl' plot --measure et
    offers "kinds of heads" 'full' train heads --kind fu
    offers "the options of train profile" '--companion' train profile --com
    offers "no option of another kind of training" '' train heads --com
    offers_among "files for the models of train" 'cli' train accept --draft ''
    offers "the names of shells" 'fish' completions f
    offers "info's switch --json" '--json' info --js
    mkdir "$TMP/files" "$TMP/files/folder" && : >"$TMP/files/a model.gguf" && : >"$TMP/files/dull"
    cd "$TMP/files" || exit 1
    offers_among "files in place of a model" 'a model.gguf' run ''
    offers_among "folders in place of a model" 'folder' info ''
    offers_among "files for --script" 'dull' --script du
    offers "only folders in place of a trace" 'folder' replay ''
    offers_among "the names of themes" 'dark' --theme d
    offers "the one theme with that beginning" 'light' --theme li
    offers_among "theme files" 'dull' --theme d
    cd - >/dev/null || exit 1
    if command -v script >/dev/null 2>&1; then
        : >"$TMP/screen"
        {
            wait_until grep -q '[$#]' "$TMP/screen"
            printf '%s\n' "PS1='> '; source '$TMP/specscope.bash'; echo read''y"
            wait_until grep -q '^ready' "$TMP/screen"
            printf 'specscope ru\t--ign\t--policy lay\t--set exi\t3 #\n'
            wait_until grep -q '3 #' "$TMP/screen"
            printf 'exit\n'
        } | TERM=dumb timeout 600 script -qfec "bash --norc --noprofile" /dev/null >"$TMP/screen" 2>&1
        check "Tab in a terminal completes a command line" grep -q 'specscope run --ignore-eos --policy layerskip --set exit_layer=3 #' "$TMP/screen"
    else
        skip "Tab in a terminal completes a command line" "there is no script(1)"
    fi
else
    skip "bash completes command lines" "there is no bash"
fi

group "zsh and fish: the line before the cursor, and all offered words"
cat >"$TMP/zsh-child" <<'EOS'
PROMPT= RPROMPT=
autoload -Uz compinit && compinit -u -D
compadd() { # what completers only try out is left to them
    local -a offered
    local word
    for word in "$@"; do
        case $word in
        -|--) break ;;
        -[OAD]*) builtin compadd "$@"; return ;;
        esac
    done
    builtin compadd -A offered "$@"
    ((!$#offered)) || print -rl -- $offered >>$HERE/offered
    builtin compadd "$@"
}
offer() {
    zle complete-word
    BUFFER=
    print done >$HERE/done
}
zle -N offer
bindkey '^I' offer
source $HERE/specscope.zsh
compdef _specscope specscope
print ready >$HERE/done
EOS
cat >"$TMP/complete.zsh" <<'EOS'
arrived() {
    local i
    for ((i = 0; i < 6000; i++)); do
        [[ -s $HERE/done ]] && rm $HERE/done && return
        sleep 0.05
    done
    return 1
}
zmodload zsh/zpty || exit 1
zpty child 'zsh -f -i'
zpty -w child "source $HERE/zsh-child"
arrived || exit 1
while IFS= read -r line; do
    : >$HERE/offered
    zpty -w -n child "$line"$'\t'
    arrived || exit 1
    print -r -- "$line=>${(j: :)${(uof)"$(<$HERE/offered)"}}"
done
zpty -d child
EOS
cat >"$TMP/lines" <<'EOS'
specscope rep=>replay
specscope run --policy de=>del
specscope run --policy=layerskip --set ga=>gamma=
specscope run --set ta=>tau=
specscope run --policy layerskip --set =>exit_layer= gamma=
specscope run --policy del --set len=>length=dynamic length=tpl
specscope run --policy layerskip --policy del --set om=>omega=
specscope bench --policy layerskip --policy del --set ga=>gamma=
specscope run --gri=>
specscope bench --gri=>--grid
specscope run model.gguf --te=>--temp
specscope replay --th=>--theme
specscope info --js=>--json
specscope run --backend c=>cpu cuda
specscope info --synth Tiny=>TinyLlama-1.1B,
specscope --probe =>all off policy
specscope train =>accept eagle heads profile
specscope train heads --kind =>affine full
specscope train profile --com=>--companion
specscope train heads --com=>
specscope plot --measure et=>etpl
specscope diff --js=>--json
specscope completions f=>fish
EOS
sed 's/=>.*//' "$TMP/lines" >"$TMP/asked"

shell_offers() { # shell, what it answered
    while IFS= read -r wanted; do
        check "$1 offers ${wanted##*=>} after '${wanted%=>*}'" grep -qxFe "$wanted" "$2"
    done <"$TMP/lines"
}

if command -v zsh >/dev/null 2>&1; then
    check "zsh accepts its completion script" zsh -n "$TMP/specscope.zsh"
    HERE=$TMP timeout 600 zsh -f "$TMP/complete.zsh" <"$TMP/asked" >"$TMP/answers" 2>"$TMP/err"
    shell_offers zsh "$TMP/answers"
else
    skip "zsh completes command lines" "there is no zsh"
fi
if command -v fish >/dev/null 2>&1; then
    check "fish accepts its completion script" fish -n "$TMP/specscope.fish"
    # What stands before the last = of a word is offered with the word, and a description behind a tab.
    while IFS= read -r line; do
        words=$(fish -N -c "source '$TMP/specscope.fish'; complete -C '$line'" 2>&1 | cut -f 1 | sort | tr '\n' ' ')
        printf '%s=>%s\n' "$line" "${words% }"
    done <"$TMP/asked" >"$TMP/answers"
    shell_offers fish "$TMP/answers"
else
    skip "fish completes command lines" "there is no fish"
fi
for option in $("$PROGRAM" bench --help | grep -o ' --[a-z][a-z-]* ' | tr -d ' ' | sort -u); do
    check "completions offers bench $option" sh -c "printf '%s\\n' specscope bench - | '$PROGRAM' completions words | grep -q -e '^$option'"
done

for theme in themes/*.json; do
    theme=$(basename "$theme" .json)
    check "completions offers --theme $theme" sh -c "printf '%s\\n' specscope --theme '' | '$PROGRAM' completions words | grep -qx '$theme'"
done

group "the manual"
"$PROGRAM" completions mdoc >"$TMP/options.mdoc"
sed -n '/^\.\\" Made by/,/^\.\\" So far/{//!p}' docs/specscope.1 >"$TMP/manual.mdoc"
check "the manual lists the options of the table (else: make man)" diff "$TMP/manual.mdoc" "$TMP/options.mdoc"
finish
