#!/bin/sh
# Installs Portkey's gateway from npm, in exact versions, unless it is there.
#
#   portkey.sh install DIRECTORY
#   portkey.sh version DIRECTORY
#
# Needs npm and node 18 or later.  On failure the reason is the last line.
set -u
gateway=1.15.2
# With 1.14.2 and later of this one each stream of the gateway ends in a 500.
server=1.14.1
dir=${2:?usage: portkey.sh install|version DIRECTORY}

fail() {
	echo "$*" >&2
	exit 1
}
if [ "$1" = version ]; then
	echo "@portkey-ai/gateway $gateway, @hono/node-server $server," \
	    "node $(node --version)"
	exit 0
fi
for program in node npm; do
	command -v $program >/dev/null 2>&1 || fail "no $program in PATH"
done
want="$gateway $server"
[ "$(cat "$dir/installed" 2>/dev/null)" = "$want" ] && exit 0
mkdir -p "$dir" || fail "cannot create $dir"
cat >"$dir/package.json" <<END
{"private": true,
 "dependencies": {"@portkey-ai/gateway": "$gateway",
  "@hono/node-server": "$server"},
 "overrides": {"@hono/node-server": "$server"}}
END
(cd "$dir" && npm install --ignore-scripts --no-audit --no-fund \
    --fetch-retries=1 --fetch-timeout=60000 --loglevel=error) </dev/null ||
    fail "npm install failed"
echo "$want" >"$dir/installed"
