dist_man_MANS += docs/man/holdfast.8 docs/man/holdfast.conf.5 \
	docs/man/holdfastctl.1
EXTRA_DIST += docs/report.md docs/report.schema.json
EXTRA_DIST += docs/examples/holdfast.conf docs/examples/holdfast.service \
	docs/examples/holdfast.sysusers docs/examples/holdfast.tmpfiles
EXTRA_DIST += docs/results/2026-11-30-gateways.md
