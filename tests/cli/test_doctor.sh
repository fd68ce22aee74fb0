#!/bin/sh
# specscope doctor: its findings are true, and what it calls bad would fail.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
unset HF_HOME HF_HUB_CACHE HUGGINGFACE_HUB_CACHE XDG_CACHE_HOME OLLAMA_MODELS LLAMA_CACHE COLORTERM TMUX

says() { grep -q -e "$1" "$TMP/out"; }
lines_are_findings() { # each a level, a topic and more; the last one counts them
    awk 'END { if (!/^[0-9]+ ok, [0-9]+ to note, [0-9]+ bad$/ || $1 != n["ok"] + 0 || $3 != n["note"] + 0 || $6 != n["bad"] + 0 || NR < 10) exit 1 }
         { n[$1]++; if (NF < 3) exit 1 }' "$TMP/out"
}
works "doctor ends with status 0 where nothing is bad" doctor
check "doctor prints each finding in a line, and counts them" lines_are_findings
check "doctor accepts that there is no terminal" says '^note  terminal .*no terminal'
check "doctor finds the bundled model and all that belongs to it" says '^ok    bundled .*16 layers, with heads, auxiliary models and themes'
check "doctor accepts that there is no config file" says "^ok    config .*$XDG_CONFIG_HOME/specscope/config.json"
kernels=$(awk '$2 == "kernels" { sub(",", "", $3); sub(";", "", $3); print $3 }' "$TMP/out")
check "doctor names the kernels that a run uses" sh -c \
    "'$PROGRAM' run -n 1 -p a --json - '$TINY' 2>/dev/null | grep -q '$kernels x'"
check "doctor makes no file" [ ! -e "$XDG_STATE_HOME" ]
if command -v taskset >/dev/null 2>&1 && [ "$(getconf _NPROCESSORS_ONLN)" -gt 1 ]; then
    taskset -c 0 "$PROGRAM" doctor >"$TMP/out" 2>"$TMP/err" </dev/null
    check "doctor reports processors that may not be used" says "^note  threads .*1 of $(getconf _NPROCESSORS_ONLN) .*-t 1"
else
    skip "doctor reports processors that may not be used" "there is one, or no taskset"
fi

(unset XDG_CONFIG_HOME XDG_STATE_HOME && HOME='' "$PROGRAM" doctor >"$TMP/out" 2>&1 </dev/null)
check "doctor treats an empty HOME as absent" says '^note  config .*neither HOME nor XDG_CONFIG_HOME'
refuses "doctor refuses two models" 2 'one model is enough' doctor here there
refuses "doctor refuses a model that does not exist" 1 'here' doctor here
works "doctor checks a model" doctor "$TINY"
check "doctor prints what a model's steps cost" says '^ok    costs .*tokens/s by plain decoding; a probe of all tokens costs [0-9.]* layers'
check "doctor prints a forecast of each policy that runs alone" sh -c "for p in layerskip fsm dv del specbound ngram suffix; do grep -Eq \"^(ok  |note)  \$p +[0-9.]+× ±[0-9.]+ by forecast\" '$TMP/out' || exit 1; done"
check "doctor does not check the machine if there is a model" sh -c "! grep -q '^ok    processor' '$TMP/out'"
works "doctor forecasts policies with trained heads, if the model has some" doctor models/fables-q8_0.gguf
check "doctor has one forecast of each policy of a model with trained heads" [ "$(grep -c 'specbound.*by forecast' "$TMP/out")" -eq 1 ]
mkdir -p "$XDG_CONFIG_HOME/specscope" "$XDG_STATE_HOME/specscope"
echo '{"theme": "light"}' >"$XDG_CONFIG_HOME/specscope/config.json"
printf 'one\ntwo\n' >"$XDG_STATE_HOME/specscope/prompts"
works "doctor works with a valid config file" doctor
check "doctor calls a valid config file valid" says '^ok    config .*config.json is valid'
check "doctor names the history" says '^ok    history .*prompts are in'
echo '{"them": "light"}' >"$XDG_CONFIG_HOME/specscope/config.json"
specscope doctor
check "doctor calls a config file that stops every run bad" [ "$status" -eq 1 ]
check "doctor prints the line that a run with this config file prints" sh -c "grep -q '^bad   config .*\"them\" is no option.*; correct it' '$TMP/out'"
"$PROGRAM" run -n 1 "$TINY" >/dev/null 2>"$TMP/err" </dev/null
check "a run with an unknown option in its config file names the option" grep -q '"them" is no option' "$TMP/err"
rm "$XDG_CONFIG_HOME/specscope/config.json"

mkdir -p "$HOME/.lmstudio/models/a/b"
head -c 1000 "$TINY" >"$HOME/.lmstudio/models/a/b/broken.gguf"
works "doctor works with a broken model of another program" doctor
check "doctor notes a broken model of another program with the reason" says '^note  models .*1 in the caches.*none of which runs; the first: .*damaged.*specscope models'
cp "$TINY" "$HOME/.lmstudio/models/a/b/tiny.gguf"
works "doctor works with models of other programs" doctor
check "doctor counts models of other programs, and those that run" says '^ok    models .*2 in the caches of other programs, of which 1 run.*specscope models'
rm -r "$HOME/.lmstudio"

echo 'no library' >"$TMP/broken.so"
SPECSCOPE_CUDA_PLUGIN=$TMP/broken.so "$PROGRAM" doctor >"$TMP/out" 2>"$TMP/err" </dev/null
status=$?
check "doctor calls a plug-in that can't be loaded bad" [ "$status" -eq 1 ]
check "doctor names a plug-in that can't be loaded, with the reason" says "^bad   plug-in .*broken.so can't be loaded"

group "libraries that crash or hang while they are loaded"
library() { # file, what it does when it is loaded
    printf '#include <signal.h>\n__attribute__((constructor)) static void begin(void) { %s; }\n' "$2" | ${CC:-cc} -shared -fPIC -x c - -o "$1"
}
library "$TMP/crash.so" 'raise(SIGSEGV)'
SPECSCOPE_CUDA_PLUGIN=$TMP/crash.so "$PROGRAM" doctor >"$TMP/out" 2>"$TMP/err" </dev/null
status=$?
check "doctor calls a plug-in that crashes bad, and completes its report" sh -c '[ "$1" -eq 1 ] && tail -n 1 "$2" | grep -q "[0-9] bad$"' sh "$status" "$TMP/out"
check "doctor names the signal by which a plug-in crashes" says '^bad   plug-in .*signal 11 '
mkdir "$TMP/bin"
cp "$PROGRAM" "$TMP/bin/specscope"
for event in 'raise(SIGSEGV):signal 11 ' 'raise(SIGALRM):did not finish within 30 s'; do # the alarm is that of the time limit
    library "$TMP/bin/specscope-blas.so" "${event%%:*}"
    "$TMP/bin/specscope" doctor >"$TMP/out" 2>"$TMP/err" </dev/null
    check "doctor reports a BLAS: ${event#*:}" says "^note  BLAS .*training cannot multiply.*${event#*:}.*memory"
    "$TMP/bin/specscope" train heads --model "$TINY" --text README.md --out "$TMP/heads" >"$TMP/out" 2>"$TMP/err" </dev/null
    status=$?
    check "train refuses a BLAS: ${event#*:}" refused_as 1
done

group "an OpenBLAS that does not know this processor"
openblas() { # what its products are multiplied by if the kernels named $1 are chosen
    ${CC:-cc} -shared -fPIC -x c - -o "$TMP/bin/specscope-blas.so" <<EOF
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
static const char *core = "Prescott";
__attribute__((constructor)) static void begin(void) {
    const char *set = getenv("OPENBLAS_CORETYPE");
    if (set != NULL && (strcmp(set, "Haswell") == 0 || strcmp(set, "Nehalem") == 0))
        core = set;
}
const char *openblas_get_corename(void) { return core; }
const char *openblas_get_config(void) { static char t[64]; snprintf(t, sizeof t, "OpenBLAS 0.3.21 %s", core); return t; }
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                 int ldb, float beta, float *c, int ldc) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += (double)(ta == 112 ? a[l * lda + i] : a[i * lda + l]) * (tb == 112 ? b[j * ldb + l] : b[l * ldb + j]);
            c[i * ldc + j] = (float)sum * (strcmp(core, "$1") == 0 ? 1.01f : 1);
        }
}
EOF
}
if grep -q avx2 /proc/cpuinfo; then
    openblas none
    "$TMP/bin/specscope" doctor >"$TMP/out" 2>"$TMP/err" </dev/null
    check "doctor uses better kernels than those that OpenBLAS chooses" says '^ok    BLAS .*0.3.21 Haswell; .*for Prescott are not used'
    OPENBLAS_CORETYPE=Nehalem "$TMP/bin/specscope" doctor >"$TMP/out" 2>"$TMP/err" </dev/null
    check "doctor notes kernels that the user has set as outdated" says '^note  BLAS .*0.3.21 Nehalem: .*; unset OPENBLAS_CORETYPE'
    openblas Haswell
    "$TMP/bin/specscope" doctor >"$TMP/out" 2>"$TMP/err" </dev/null
    check "doctor does not use better kernels whose products are wrong" says '^note  BLAS .*0.3.21 Prescott: .*; install a newer'
    openblas Prescott
    "$TMP/bin/specscope" doctor >"$TMP/out" 2>"$TMP/err" </dev/null
    check "doctor avoids wrong products of the usual kernels" says '^ok    BLAS .*0.3.21 Haswell; .*for Prescott are not used'
    OPENBLAS_CORETYPE=Prescott "$TMP/bin/specscope" train heads --model "$TINY" --text README.md --out "$TMP/heads" >"$TMP/out" 2>"$TMP/err" </dev/null
    status=$?
    check "train refuses a BLAS with wrong products" sh -c '[ "$1" = 1 ] && grep -q "for Prescott are wrong on this processor; install" "$2"' sh "$status" "$TMP/err"
fi

if [ "$(id -u)" != 0 ]; then
    mkdir "$TMP/closed" && chmod 500 "$TMP/closed"
    (cd "$TMP/closed" && "$PROGRAM" doctor >"$TMP/out" 2>&1 </dev/null)
    check "doctor reports a folder that cannot hold traces" says '^note  traces .*cannot be written'
fi
mkdir -p "$TMP/odd
name"
(cd "$TMP/odd
name" && XDG_CONFIG_HOME="$PWD" "$PROGRAM" doctor >"$TMP/out" 2>&1 </dev/null)
check "doctor prints odd names without breaking a line" lines_are_findings

if [ -n "$HAVE_PYTHON" ]; then
    specscope doctor --json
    check "doctor --json has all findings" json_holds "$TMP/out" "(j['bad'] == 0 and len(j['findings']) == j['ok'] + j['note'] and
        {'terminal', 'processor', 'kernels', 'threads', 'load', 'memory', 'huge pages', 'BLAS', 'servers', 'GPU', 'bundled', 'models', 'config', 'history',
         'traces'} <= {f['topic'] for f in j['findings']} and all(f['what'] and f['level'] in ('ok', 'note', 'bad') for f in j['findings']))"
fi
"$PROGRAM" doctor >/dev/full 2>"$TMP/err" </dev/null
status=$?
: >"$TMP/out"
check "doctor reports a full disk" refused_as 1

group "in a terminal"
if command -v script >/dev/null 2>&1; then
    doctor_in() { # TERM, columns, more environment
        TERM=$1 timeout 300 script -qec "stty rows 40 cols $2; ${3:-} '$PROGRAM' doctor" /dev/null </dev/null 2>&1 | tr -d '\r' >"$TMP/out"
    }
    doctor_in xterm-256color 140
    check "doctor names the terminal" says 'ok    terminal .*xterm-256color'
    check "doctor prints the size of the terminal" says 'ok    size .*140x40'
    check "doctor prints the colours of the terminal, and how to have more" says 'note  colours .*256.*COLORTERM=truecolor'
    check "doctor reports the mouse" says 'ok    mouse'
    check "doctor reports the characters" says 'ok    characters .*UTF-8'
    doctor_in xterm-256color 140 'COLORTERM=truecolor'
    check "doctor reports 24-bit colours of COLORTERM" says 'ok    colours .*24-bit (from COLORTERM'
    doctor_in screen 140 'TMUX=x'
    check "doctor names tmux's option for more colours" says 'note  colours .*8 of them.*default-terminal tmux-256color'
    doctor_in xterm 30
    check "doctor calls a terminal that is too small bad" says 'bad   size .*30x40 is too small'
    doctor_in vt100 100 'LC_ALL=C'
    check "doctor does not call a terminal without colours and mouse bad" says ', 0 bad'
    check "doctor notes a locale of ASCII alone" says 'note  characters .*ASCII alone; unset LC_ALL'
    doctor_in nonesuch 100
    check "doctor calls a type that terminfo does not have bad where the terminal does not answer" says 'bad   terminal .*"nonesuch" is not in terminfo'
else
    skip "doctor describes the terminal" "there is no script(1)"
fi
if [ -n "$HAVE_PYTHON" ]; then
    cat >"$TMP/answering.py" <<'PYTHON'
# A terminal that answers after some bytes of a question. Tests earlier keys, the terminal's settings, and its
# description.
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "doctor"])
seen = b""
while True:
    try:
        part = os.read(fd, 4096)
    except OSError:
        break
    if not part:
        break
    question = sys.argv[2].encode()
    if question in seen + part and question not in seen:
        os.write(fd, b"ab\033P1$r0;48:2:1:2:3m\033\\\033[?62;22c")
    seen += part
sys.stdout.buffer.write(seen.replace(b"\r", b""))
PYTHON
    TERM=xterm-256color timeout 300 python3 "$TMP/answering.py" "$PROGRAM" '$qm' >"$TMP/out"
    check "doctor reports 24-bit colours of a terminal that answers so" says "ok    colours .*24-bit (from the terminal's answer)"
    TERM=nonesuch timeout 300 python3 "$TMP/answering.py" "$PROGRAM" '[c' >"$TMP/out"
    check "doctor uses a terminal of an unknown type that answers as an xterm" says 'note  terminal .*"nonesuch" is not in terminfo'
    check "doctor reports the colours of a terminal of an unknown type that answers" says 'colours .*24-bit\|colours .*256'
fi
finish
