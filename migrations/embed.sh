#!/bin/sh
# Print the migrations of folder $1 as C: text and the checksum that SUMS
# promises for it.  A step that SUMS does not name is an error.
set -eu
dir=$1
printf '%s\n' '/* Made from migrations/ by embed.sh. */' '#include <config.h>' \
    '' '#include "store/migrate.h"' '' \
    'const struct hf_migration hf_migrations[] = {'
n=0
for f in "$dir"/[0-9][0-9][0-9][0-9]_*.sql; do
	name=${f##*/}
	sum=$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\$/\1/p" "$dir/SUMS")
	n=$((n + 1))
	if [ -z "$sum" ] || [ "${name%%_*}" != "$(printf %04d $n)" ]; then
		echo "migrations: $name: not in SUMS or out of order" >&2
		exit 1
	fi
	printf '\t{ .step = %d, .name = "%s",\n\t  .sum = "%s",\n\t  .sql =\n' \
	    "$n" "$name" "$sum"
	sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/	"/' -e 's/$/\\n"/' "$f"
	printf '\t},\n'
done
printf '%s\n' '};' '' "const unsigned hf_n_migrations = $n;"
