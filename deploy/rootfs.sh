#!/bin/sh
# The image's root filesystem, put together in a folder.
#
#   deploy/rootfs.sh FOLDER             all of it: our files, a Python interpreter, the libraries of both (Linux, glibc)
#   deploy/rootfs.sh --app-only FOLDER  our files alone; deploy/Containerfile lays them over an image that has Python
#
# PYTHON names the interpreter that installs and, without --app-only, is copied (default: python3; 3.11 or later). pip
# takes packages from where it is set up to. In the end nobody may write to any of it but /tmp.
set -eu

app_only=
if [ "${1:-}" = --app-only ]; then app_only=yes; shift; fi
if [ $# -ne 1 ] || [ -z "$1" ]; then echo "usage: $0 [--app-only] FOLDER" >&2; exit 2; fi

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
root=$(cd "$1" && pwd)
if [ -n "$(ls -A "$root")" ]; then echo "$0: $root is not empty" >&2; exit 2; fi
python=${PYTHON:-python3}
umask 022

# --- our files: packages, and one program with two names

app=$root/usr/lib/stowplan
mkdir -p "$app" "$root/usr/bin"
"$python" -m pip install --quiet --disable-pip-version-check --no-compile --only-binary=:all: --no-binary=stowplan \
    --constraint "$here/../constraints.txt" --target "$app" "$here/.."
# Tests of packages are dead weight; scripts of packages are of no use without a shell.
rm -rf "$app/bin"
find "$app" -type d -name tests -prune -exec rm -rf {} +
# Compiled now: later nobody may write. Not compared with the sources' times, which a copy may change.
"$python" -m compileall -q -j 0 --invalidation-mode unchecked-hash "$app"
cp "$here/launcher.py" "$root/usr/bin/stowplan"
chmod 755 "$root/usr/bin/stowplan"
ln -s stowplan "$root/usr/bin/kube-scheduler"
if [ -n "$app_only" ]; then exit 0; fi

# --- Python: the interpreter and its standard library, at /usr

version=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
interpreter=$("$python" -c 'import os, sys; print(os.path.realpath(sys._base_executable))')
standard=$("$python" -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
dynload=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("DESTSHARED"))')

cp "$interpreter" "$root/usr/bin/$version"
ln -s "$version" "$root/usr/bin/python3"
mkdir -p "$root/usr/lib/$version/lib-dynload"
(cd "$standard" && tar -cf - \
    --exclude=__pycache__ --exclude=test --exclude=tests --exclude=site-packages --exclude=dist-packages \
    --exclude=lib-dynload --exclude=idlelib --exclude=tkinter --exclude=turtledemo --exclude=turtle.py \
    --exclude=ensurepip --exclude=lib2to3 --exclude=pydoc_data --exclude='config-*' .) |
    (cd "$root/usr/lib/$version" && tar -xf - --no-same-owner)
cp "$dynload"/*.so "$root/usr/lib/$version/lib-dynload/"
rm -f "$root/usr/lib/$version/lib-dynload"/_test* "$root/usr/lib/$version/lib-dynload"/_tkinter*
"$python" -m compileall -q -j 0 --invalidation-mode unchecked-hash "$root/usr/lib/$version"

# --- libraries: whatever the loader would take from this machine. All in one folder, which all the usual names point to

ln -s usr/bin "$root/bin"
ln -s usr/lib "$root/lib"
ln -s usr/lib "$root/lib64"
ln -s lib "$root/usr/lib64"
find "$root" -type f \( -name '*.so' -o -name '*.so.*' -o -name "$version" \) -exec ldd {} + 2>/dev/null |
    sed -n -e 's/.*=> \(\/[^ ]*\) (0x.*/\1/p' -e 's/^[[:space:]]*\(\/[^ ]*\) (0x.*/\1/p' | sort -u |
    while read -r library; do
        case $library in
            "$root"/*) ;;  # a package brought it
            *) cp -L "$library" "$root/usr/lib/" ;;
        esac
    done
# Looked up while running, so that ldd does not show them: names of hosts, by file and by DNS.
for library in libnss_files.so.2 libnss_dns.so.2 libresolv.so.2; do
    found=$(ldconfig -p 2>/dev/null | sed -n "s/.*$library .*=> //p" | head -n 1)
    if [ -n "$found" ]; then cp -L "$found" "$root/usr/lib/"; fi
done

# --- the rest: a user who is not root, places to mount on

mkdir -p "$root/etc/ssl/certs" "$root/etc/stowplan" "$root/home/nonroot" \
    "$root/tmp" "$root/proc" "$root/dev" "$root/sys" "$root/run" "$root/var"
ln -s ../run "$root/var/run"  # where a pod's account is mounted
chmod 1777 "$root/tmp"
cat >"$root/etc/passwd" <<END
root:x:0:0:root:/:/sbin/nologin
nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin
END
printf 'root:x:0:\nnonroot:x:65532:\n' >"$root/etc/group"
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
if [ -f /etc/ssl/certs/ca-certificates.crt ]; then cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"; fi
find "$root" ! -type l ! -path "$root" ! -path "$root/tmp" -exec chmod a-w {} +
