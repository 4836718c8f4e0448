#!/bin/sh
# Builds the recorder into a cache folder outside the repository.
#
#   build.sh [FOLDER]     default: ${XDG_CACHE_HOME:-$HOME/.cache}/stowplan/oracle
#
# Leaves FOLDER/recorder. The first build takes some minutes, a later one seconds.
set -eu
version=1.36.4
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/stowplan/oracle}
module=$folder/module
mkdir -p "$module"
rm -f "$module"/*.go
cp "$here"/*.go "$module"/
cd "$module"

# The staging modules are required at v0.0.0 and replaced by folders in the
# go.mod of k8s.io/kubernetes; here each is replaced by its published version.
if ! grep -qs "k8s.io/kubernetes v$version\$" go.mod; then
    gomod=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/^[[:space:]]*"GoMod": "\(.*\)",*$/\1/p')
    {
        echo "module oracle"
        echo
        sed -n '/^go [0-9]/p' "$gomod"
        echo
        echo "require k8s.io/kubernetes v$version"
        echo
        echo "replace ("
        sed -n "s|^[[:space:]]*\(k8s.io/[^ ]*\) => \./staging/.*|	\1 => \1 v0.${version#*.}|p" "$gomod"
        echo ")"
    } >go.mod
    rm -f go.sum
fi
nice -n 10 go mod tidy
nice -n 10 go build -p 2 -trimpath -ldflags "-s -w" -o "$folder/recorder" .
echo "$folder/recorder"
