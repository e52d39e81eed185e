#!/bin/sh
# Install the client libraries of package-lock.json, in exact versions.
#
#   install.sh DIRECTORY	# DIRECTORY/node_modules, DIRECTORY/bin/node
#
# Does nothing if they are there already.  Needs npm and any node; if that
# node is older than 20 (Debian 12 has 18), one is installed beside the
# libraries.  On failure the reason is the last line of stderr, exit 1.
set -u
node_version=20.20.2
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:?usage: install.sh DIRECTORY}

fail() {
	echo "$*" >&2
	exit 1
}
for program in node npm; do
	command -v $program >/dev/null 2>&1 || fail "no $program in PATH"
done
mkdir -p "$dir" || fail "cannot create $dir"
dir=$(cd "$dir" && pwd)

# Several tests may ask at once: one installs, the others wait.
if [ -z "${HF_CLIENTS_LOCKED:-}" ]; then
	HF_CLIENTS_LOCKED=1
	export HF_CLIENTS_LOCKED
	exec flock "$dir/lock" sh "$here/install.sh" "$dir"
fi

want=$(cat "$here/package.json" "$here/package-lock.json" | cksum)
[ "$(cat "$dir/installed" 2>/dev/null)" = "$want $node_version" ] && exit 0
rm -f "$dir/installed"

mkdir -p "$dir/bin" || fail "cannot create $dir/bin"
major=$(node --version | sed -n 's/^v\([0-9]*\)\..*/\1/p')
if [ "${major:-0}" -ge 20 ]; then
	ln -sf "$(command -v node)" "$dir/bin/node"
else
	case $(uname -m) in
	x86_64) arch=x64 ;;
	aarch64) arch=arm64 ;;
	*) fail "no node 20 for $(uname -m)" ;;
	esac
	name=node-linux-$arch
	npm install --prefix "$dir/node" --no-save --no-package-lock \
	    --ignore-scripts --no-audit --no-fund --loglevel=error \
	    --fetch-retries=1 --fetch-timeout=60000 \
	    "$name@$node_version" >"$dir/npm.log" 2>&1 </dev/null ||
	    fail "npm install $name: $(grep -v '^$' "$dir/npm.log" | head -1)"
	ln -sf "../node/node_modules/$name/bin/node" "$dir/bin/node"
fi

cp "$here/package.json" "$here/package-lock.json" "$dir/" ||
    fail "cannot write to $dir"
(cd "$dir" && npm ci --ignore-scripts --no-audit --no-fund --prefer-offline \
    --fetch-retries=1 --fetch-timeout=60000 --loglevel=error) \
    >"$dir/npm.log" 2>&1 </dev/null ||
    fail "npm ci: $(grep -v '^$' "$dir/npm.log" | head -1)"
"$dir/bin/node" --version >/dev/null || fail "$dir/bin/node does not run"
echo "$want $node_version" >"$dir/installed"
