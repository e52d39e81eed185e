#!/bin/sh
# Sizes: functions of at most 80 lines and McCabe 20, files of at most 700
# lines (tables, *.def, are exempt).  Prints TAP.
max_lines=80
max_mccabe=20
max_file=700
top=${HF_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}

if ! command -v pmccabe >/dev/null 2>&1; then
	echo "1..0 # SKIP pmccabe is missing"
	exit 0
fi
tmp=$(mktemp -d "${TMPDIR:-/tmp}/hf-limits.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT

sources() {
	for room in base store gateway workers ctl bench; do
		[ -d "$1/$room" ] && find "$1/$room" -name '*.[ch]'
	done | sort
}

# pmccabe: modified, traditional, statements, first line, lines, name.
functions() {
	sources "$1" | grep '\.c$' | while read -r f; do pmccabe "$f"; done |
	    awk -F '\t' -v l=$max_lines -v m=$max_mccabe '
		$5 > l { printf "%s: %d lines\n", $6, $5 }
		$1 > m { printf "%s: McCabe %d\n", $6, $1 }'
}

long_files() {
	sources "$1" | while read -r f; do
		n=$(wc -l <"$f")
		[ "$n" -gt $max_file ] && echo "$f: $n lines"
	done
	true
}

n=0
bad=0
ok() {	# ok FILE-WITH-FINDINGS NAME
	n=$((n + 1))
	if [ -s "$1" ]; then
		echo "not ok $n - $2"
		sed "s|$top/||; s/^/#   /" "$1"
		bad=1
	else
		echo "ok $n - $2"
	fi
}
planted() {	# planted FILE-WITH-FINDINGS PATTERN NAME
	n=$((n + 1))
	if grep -q "$2" "$1"; then
		echo "ok $n - $3"
	else
		echo "not ok $n - $3"
		bad=1
	fi
}

mkdir -p "$tmp/bad/base"
{
	echo "int long_one(int a)"
	echo "{"
	i=0
	while [ $i -lt 80 ]; do echo "	a++;"; i=$((i + 1)); done
	echo "	return a;"
	echo "}"
	echo "int tangled(int a)"
	echo "{"
	i=0
	while [ $i -lt 21 ]; do echo "	if (a == $i) a++;"; i=$((i + 1)); done
	echo "	return a;"
	echo "}"
} >"$tmp/bad/base/a.c"
i=0
while [ $i -le $max_file ]; do echo "/* x */"; i=$((i + 1)); done \
	>"$tmp/bad/base/b.h"
functions "$tmp/bad" >"$tmp/f"
long_files "$tmp/bad" >"$tmp/l"
planted "$tmp/f" 'long_one: 8[0-9] lines' "a planted long function is found"
planted "$tmp/f" 'tangled: McCabe' "a planted tangled function is found"
planted "$tmp/l" 'b.h: 701 lines' "a planted long file is found"

functions "$top" >"$tmp/f"
long_files "$top" >"$tmp/l"
ok "$tmp/f" "functions have at most $max_lines lines and McCabe $max_mccabe"
ok "$tmp/l" "files have at most $max_file lines"
echo "1..$n"
exit $bad
