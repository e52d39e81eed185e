#!/bin/sh
# The manuals are correct mdoc.  Prints TAP.
top=${HF_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}

if ! command -v mandoc >/dev/null 2>&1; then
	echo "1..0 # SKIP mandoc is missing"
	exit 0
fi
tmp=$(mktemp -d "${TMPDIR:-/tmp}/hf-man.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT

# Findings of a page; other pages need not be installed where this runs.
lint() {
	mandoc -Tlint -W warning "$1" 2>&1 |
	    grep -v -e 'referenced manual not found' -e 'outdated mandoc.db'
}

cat >"$tmp/bad.8" <<'PAGE'
.Dd November 29, 2026
.Dt BAD 8
.Os
.Sh NAME
.Nm bad
.Nd has a fault
.Sh DESCRIPTION
.Bl -tag
.It Fl x
An unclosed list of an unknown macro:
.Xy z
PAGE
n=1
bad=0
if [ -n "$(lint "$tmp/bad.8")" ]; then
	echo "ok 1 - a planted bad page is found"
else
	echo "not ok 1 - a planted bad page is found"
	bad=1
fi
pages=$(find "$top/docs/man" -name '*.[1-8]' 2>/dev/null | sort)
n=$((n + 1))
if [ -n "$pages" ]; then
	echo "ok $n - there are manuals"
else
	echo "not ok $n - there are manuals"
	bad=1
fi
for page in $pages; do
	n=$((n + 1))
	found=$(lint "$page")
	if [ -z "$found" ]; then
		echo "ok $n - ${page#"$top"/}"
	else
		echo "not ok $n - ${page#"$top"/}"
		echo "$found" | sed "s|$top/||; s/^/#   /"
		bad=1
	fi
done
echo "1..$n"
exit $bad
