#!/bin/sh
# Create the root filesystem of the image in a folder.
#
#   deploy/rootfs.sh FOLDER             everything: Stowplan, a Python interpreter, their libraries (Linux, glibc)
#   deploy/rootfs.sh --app-only FOLDER  only Stowplan; deploy/Containerfile adds it to an image with Python
#
# PYTHON is the interpreter that installs and, without --app-only, is copied (default: python3; 3.11 or later). pip uses
# its configured package index. In the result only /tmp is writable.
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

# --- Stowplan: its packages, and one program with two names

app=$root/usr/lib/stowplan
mkdir -p "$app" "$root/usr/bin"
"$python" -m pip install --quiet --disable-pip-version-check --no-compile --only-binary=:all: --no-binary=stowplan \
    --constraint "$here/../constraints.txt" --target "$app" "$here/.."
# Remove the tests of packages, and their scripts, which need a shell.
rm -rf "$app/bin"
find "$app" -type d -name tests -prune -exec rm -rf {} +
# Compile now, because the files are read-only later. Do not compare times: a copy may change those of the sources.
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

# --- libraries: those that the loader would use on this machine, in one folder; the usual names link to it

ln -s usr/bin "$root/bin"
ln -s usr/lib "$root/lib"
ln -s usr/lib "$root/lib64"
ln -s lib "$root/usr/lib64"
find "$root" -type f \( -name '*.so' -o -name '*.so.*' -o -name "$version" \) -exec ldd {} + 2>/dev/null |
    sed -n -e 's/.*=> \(\/[^ ]*\) (0x.*/\1/p' -e 's/^[[:space:]]*\(\/[^ ]*\) (0x.*/\1/p' | sort -u |
    while read -r library; do
        case $library in
            "$root"/*) ;;  # part of a package
            *) cp -L "$library" "$root/usr/lib/" ;;
        esac
    done
# Libraries that are loaded at run time, so ldd does not list them: host names, by file and by DNS.
for library in libnss_files.so.2 libnss_dns.so.2 libresolv.so.2; do
    found=$(ldconfig -p 2>/dev/null | sed -n "s/.*$library .*=> //p" | head -n 1)
    if [ -n "$found" ]; then cp -L "$found" "$root/usr/lib/"; fi
done

# --- the rest: a user other than root, mount points

mkdir -p "$root/etc/ssl/certs" "$root/etc/stowplan" "$root/home/nonroot" \
    "$root/tmp" "$root/proc" "$root/dev" "$root/sys" "$root/run" "$root/var"
ln -s ../run "$root/var/run"  # where the token of the service account is mounted
chmod 1777 "$root/tmp"
cat >"$root/etc/passwd" <<END
root:x:0:0:root:/:/sbin/nologin
nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin
END
printf 'root:x:0:\nnonroot:x:65532:\n' >"$root/etc/group"
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
if [ -f /etc/ssl/certs/ca-certificates.crt ]; then cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"; fi
find "$root" ! -type l ! -path "$root" ! -path "$root/tmp" -exec chmod a-w {} +
