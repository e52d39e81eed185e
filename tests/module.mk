# Each area's tests are listed in a file of their own.
include tests/unit/base.mk
include tests/unit/conf.mk
include tests/unit/store.mk
include tests/unit/wire.mk
include tests/unit/http.mk
include tests/unit/turn.mk
include tests/unit/workers.mk
include tests/unit/bench.mk
include tests/fuzz/module.mk
include tests/regress/module.mk
include tests/clients/module.mk
include tests/lint/module.mk
