#!/bin/sh
# Print the files NAME=FILE... as C texts of these names.
set -eu
printf '%s\n' '/* Made by embed.sh. */' '#include <config.h>' '' \
    '#include "bench/embedded.h"'
for pair in "$@"; do
	printf '\nconst char %s[] =\n' "${pair%%=*}"
	sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/?/\\?/g' -e 's/^/	"/' \
	    -e 's/$/\\n"/' "${pair#*=}"
	printf ';\n'
done
