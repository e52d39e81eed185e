#!/bin/sh
# Sources are formatted as clang-format 14 with .clang-format does it, so that
# nobody argues.  Prints TAP.
top=${HF_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}

# Another version formats otherwise.
if ! clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
	echo "1..0 # SKIP clang-format 14 is missing"
	exit 0
fi
tmp=$(mktemp -d "${TMPDIR:-/tmp}/hf-format.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT

# Names of the files below $1 that are not as they should be.
findings() {
	for room in base store gateway workers ctl bench tests; do
		[ -d "$1/$room" ] && find "$1/$room" -name '*.[ch]'
	done | sort | while read -r f; do
		clang-format --style="file:$top/.clang-format" \
		    --dry-run -Werror "$f" 2>/dev/null || echo "$f"
	done
}

echo "1..2"
mkdir "$tmp/base"
printf 'int f(void) {return 0;}\n' >"$tmp/base/planted.c"
if [ "$(findings "$tmp")" = "$tmp/base/planted.c" ]; then
	echo "ok 1 - a planted fault is found"
else
	echo "not ok 1 - a planted fault is found"
fi
findings "$top" >"$tmp/found"
if [ -s "$tmp/found" ]; then
	echo "not ok 2 - sources are formatted"
	sed 's/^/# /' "$tmp/found"
	exit 1
fi
echo "ok 2 - sources are formatted"
