#!/bin/sh
# Runs the one file of `make static` in foreign root file systems: one with busybox alone (no libraries, no locale, no
# terminfo, no /proc, read-only), and one of another release of Debian. Prints TAP. Needs root, busybox-static, tmux,
# mmdebstrap.
# usage: tests/release/static.sh [SUITE]   (another Debian: trixie). KEEP=FOLDER stores the screens there.
cd "$(dirname "$0")/../.." || exit 1
SUITE=${1:-trixie}
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP a root file system of its own needs root"; exit 0; }
for program in busybox tmux mmdebstrap; do
    command -v $program >/dev/null 2>&1 || { echo "1..0 # SKIP there is no $program"; exit 0; }
done
WORK=${KEEP:-$(mktemp -d)}
mkdir -p "$WORK"
WORK=$(cd "$WORK" && pwd)
SOCKET=$WORK/tmux
end() {
    tmux -S "$SOCKET" kill-server 2>/dev/null
    rm -rf "$WORK/bare" "$WORK/other"
    [ -n "${KEEP:-}" ] || rm -rf "$WORK"
}
trap end EXIT
trap 'exit 1' INT TERM
. tests/release/checks.sh
check "the static program is built" make -s static
check "the static program needs no library" sh -c "! ldd build/static/specscope"

BARE=$WORK/bare
mkdir -p "$BARE/bin" "$BARE/dev"
cp "$(command -v busybox)" "$BARE/bin/busybox"
ln -s busybox "$BARE/bin/sh"
cp build/static/specscope "$BARE/specscope"
mknod "$BARE/dev/null" c 1 3
mknod "$BARE/dev/tty" c 5 0
in_bare() { chroot "$BARE" /bin/busybox env -i PATH=/bin "$@"; }
check "the static program runs on a bare system" in_bare /specscope run -n 16 -p hello
cp "$WORK/said" "$WORK/text"
check "the static program generates the other program's text" sh -c "build/specscope run -n 16 -p hello >'$WORK/said2' 2>/dev/null && head -n 1 '$WORK/said2' | cut -c1-40 | grep -qF -f - '$WORK/text'"
check "all policies find the model's files" in_bare /specscope bench -n 12 --repeat 1
check "the static program contains the themes" in_bare /specscope --theme cividis --help
check "a GPU is refused in a line" sh -c "chroot '$BARE' /specscope run -n 1 --backend cuda 2>&1 | grep -q 'static one'"
check "a figure as PNG is refused in a line" sh -c "chroot '$BARE' /bin/busybox sh -c 'mkdir -p /tmp && cd /tmp && /specscope run -n 8 --trace t >/dev/null && ! /specscope plot t layers -o l.png'"
rm -rf "$BARE/tmp"

# The scope, on a terminal type that only the program knows there.
scope_in() { # ROOT, TERM, file for the screen, environment
    tmux -S "$SOCKET" -f /dev/null new-session -d -x 140 -y 40 -s s "env -i TERM=$2 ${4:-} $(command -v chroot) '$1' /specscope --pace 0 -n 40 2>'$WORK/err'"
    tries=600
    while [ $((tries -= 1)) -gt 0 ]; do
        sleep 0.5
        tmux -S "$SOCKET" capture-pane -e -p -t s >"$3" 2>/dev/null
        grep -q 'knobs' "$3" && grep -q 'rounds' "$3" && break
    done
    tmux -S "$SOCKET" send-keys -t s q
    sleep 0.5
    tmux -S "$SOCKET" kill-session -t s 2>/dev/null
    grep -q knobs "$3"
}
for type in tmux-256color xterm-256color screen linux vt100 alacritty xterm-kitty foot; do
    check "the scope opens on a bare system as $type" scope_in "$BARE" $type "$WORK/screen-$type"
done
check "the scope draws ASCII if there is no room for a temporary locale" sh -c "! grep -q '─' '$WORK/screen-linux'"
mkdir "$BARE/tmp"
check "the scope opens in UTF-8 if there is room for a temporary locale" scope_in "$BARE" tmux-256color "$WORK/screen-utf8"
check "the scope draws lines and blocks in UTF-8" grep -q '─' "$WORK/screen-utf8"
check "the temporary locale is removed" [ -z "$(ls -A "$BARE/tmp")" ]
check "the scope opens on an unknown type of a terminal that answers" scope_in "$BARE" nonesuch "$WORK/screen-unknown"
check "the scope opens with 24-bit colours" scope_in "$BARE" tmux-256color "$WORK/screen-colours" COLORTERM=truecolor
check "the scope sends 24-bit colours" grep -q '38;2;' "$WORK/screen-colours"

check "another Debian is made ($SUITE)" mmdebstrap --quiet --variant=extract "$SUITE" "$WORK/other"
cp build/static/specscope "$WORK/other/specscope"
check "the static program runs on another Debian" chroot "$WORK/other" /specscope run -n 16 -p hello
check "the scope opens on another Debian" scope_in "$WORK/other" xterm-256color "$WORK/screen-other"
check "doctor finds nothing bad on another Debian" chroot "$WORK/other" /specscope doctor
sed 's/^/# /' "$WORK/said"
echo "1..$checks"
exit $status
