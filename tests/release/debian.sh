#!/bin/sh
# The Debian packages, from nothing: the release's tarball (twice, the same bytes), dpkg-buildpackage of what is in it,
# lintian, and in a fresh Debian: installed, used, removed, purged, nothing left. Speaks TAP. Needs root, a network for
# Debian's packages, and: build-essential devscripts' lintian, debootstrap, debhelper and what debian/control asks for.
# usage: tests/release/debian.sh [SUITE]   (of the fresh Debian: bookworm). KEEP=FOLDER keeps packages and logs there;
# PACKAGES=FOLDER tries packages that are built; PROFILES=pkg.specscope.cuda builds and installs the plug-in, too.
cd "$(dirname "$0")/../.." || exit 1
SUITE=${1:-bookworm}
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP a root file system of its own needs root"; exit 0; }
for program in dpkg-buildpackage dh lintian debootstrap gzip; do
    command -v $program >/dev/null 2>&1 || { echo "1..0 # SKIP there is no $program"; exit 0; }
done
WORK=${KEEP:-$(mktemp -d)}
mkdir -p "$WORK"
WORK=$(cd "$WORK" && pwd)
ROOT=$WORK/root
end() {
    umount -l "$ROOT/proc" "$ROOT/dev/pts" 2>/dev/null
    rm -rf --one-file-system "$ROOT"
    [ -n "${KEEP:-}" ] || rm -rf "$WORK"
}
trap end EXIT
trap 'exit 1' INT TERM
. tests/release/checks.sh

if [ -z "${PACKAGES:-}" ]; then
group "the tarball"
version=$(dpkg-parsechangelog -S Version)
check "make dist makes a tarball" .ci/dist "$version" "$WORK/dist"
check "make dist makes a tarball in another time zone and with another mask" sh -c "umask 077; TZ=Asia/Tokyo LC_ALL=C .ci/dist '$version' '$WORK/again'"
check "both tarballs have the same bytes" cmp "$WORK/dist/specscope-$version.tar.gz" "$WORK/again/specscope-$version.tar.gz"
check "the tarball has its checksum" sh -c "cd '$WORK/dist' && sha256sum -c SHA256SUMS"

group "the packages"
tar -C "$WORK" -xf "$WORK/dist/specscope-$version.tar.gz"
build() {
    (cd "$WORK/specscope-$version" && DEB_BUILD_OPTIONS="parallel=$(nproc)" dpkg-buildpackage -us -uc -F ${PROFILES:+-P$PROFILES}) >"$WORK/build.log" 2>&1 ||
        { tail -n 25 "$WORK/build.log"; false; }
}
check "the packages are built" build
check "the packages are built without a warning of the compiler" sh -c "! grep -n 'warning:' '$WORK/build.log'"
check "lintian finds nothing" lintian --fail-on error,warning,info -i --tag-display-limit 0 "$WORK/specscope_${version}_$(dpkg --print-architecture).changes"
echo "# $(lintian --version); overrides: $(cat debian/*lintian-overrides debian/source/lintian-overrides 2>/dev/null | grep -vc '^#')"
PACKAGES=$WORK
fi

group "in a fresh Debian"
in_root() { chroot "$ROOT" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
files() { # all there are, but for what apt and dpkg keep for themselves and what the loader's cache is made of
    (cd "$ROOT" && find . -path ./proc -prune -o -print | grep -vE '^\./(var/(cache|log|lib/(apt|dpkg))|etc/ld\.so\.cache|tmp)(/|$)' | sort)
}
check "debootstrap makes a fresh $SUITE" debootstrap --variant=minbase "$SUITE" "$ROOT"
mount -t proc proc "$ROOT/proc" 2>/dev/null
mount -t devpts devpts "$ROOT/dev/pts" 2>/dev/null
mkdir "$ROOT/tmp/packages"
cp "$PACKAGES"/*.deb "$ROOT/tmp/packages/"
rm -f "$ROOT"/tmp/packages/*dbgsym*
in_root apt-get -qq update >/dev/null 2>&1
files >"$WORK/before"
check "the packages install" in_root sh -c 'apt-get -qq install -y --no-install-recommends /tmp/packages/*.deb'
check "the installed program runs" in_root specscope run -n 24 -p 'Three mice sat on a wall,'
check "the installed program drafts with trained heads and auxiliary models, losslessly" in_root specscope bench -n 24 --repeat 1 --policy specbound --policy sv
check "the installed program writes and compares a trace" in_root sh -c 'cd /tmp && specscope run -n 24 --trace t && specscope run -n 24 --policy layerskip --trace u && specscope diff t u'
check "the installed program draws a figure" in_root sh -c 'cd /tmp && specscope plot t layers -o layers.svg && [ -s layers.svg ]'
check "the installed program's doctor finds nothing bad" in_root specscope doctor
sed 's/^/# /' "$WORK/said"
check "a user without rights can run the installed program" in_root su nobody -s /bin/sh -c 'cd /tmp && specscope run -n 8 -p hello'
check "the scope opens in a terminal" in_root sh -c 'cd /tmp && printf ":wait idle\n:save-screen /tmp/screen.txt\n:quit\n" >s &&
    script -qec "stty rows 40 cols 140; TERM=xterm-256color specscope --script s -n 30" /dev/null </dev/null >/dev/null && grep -q knobs /tmp/screen.txt'
check "the packages contain completions" [ -s "$ROOT/usr/share/bash-completion/completions/specscope" ]
check "the packages are removed" in_root sh -c 'apt-get -qq purge -y --auto-remove $(dpkg-query -W -f "\${Package} " "specscope*")'
rm -rf "$ROOT"/root/.local "$ROOT"/root/.config
files >"$WORK/after"
check "removed packages leave nothing" diff "$WORK/before" "$WORK/after"
echo "1..$checks"
exit $status
