#!/bin/sh
# Make ./configure. Needs: autoconf automake autoconf-archive pkg-config.
set -e
cd "$(dirname "$0")"
for tool in autoconf automake pkg-config; do
	command -v "$tool" >/dev/null || {
		echo "autogen.sh: $tool is missing: apt-get install" \
		    "autoconf automake autoconf-archive pkg-config" >&2
		exit 1
	}
done
exec autoreconf --install --force
