# Tests of the built programs; each runs its own daemon and providers.
EXTRA_DIST += tests/run.sh .ci/run \
	tests/harness/campaign.py tests/harness/chromium.py \
	tests/harness/client.py tests/harness/ctl.py tests/harness/daemon.py \
	tests/harness/dialect.py tests/harness/provider.py \
	tests/harness/schema.py tests/harness/stalls.py \
	tests/harness/tap.py tests/harness/validate.py tests/harness/wait.py
REGRESS_TESTS = \
	tests/regress/00-harness.t tests/regress/01-health.t \
	tests/regress/02-chat-plain.t tests/regress/03-chat-stream.t \
	tests/regress/04-sessions.t tests/regress/05-failover.t \
	tests/regress/06-tools.t tests/regress/07-concurrency.t \
	tests/regress/08-isolation.t tests/regress/09-ctl.t \
	tests/regress/10-config.t tests/regress/11-bad-input.t \
	tests/regress/12-storage.t tests/regress/13-translation.t \
	tests/regress/14-field-reports.t tests/regress/15-retries.t \
	tests/regress/17-continue.t tests/regress/18-hedge.t \
	tests/regress/19-sweep.t tests/regress/20-deadlines.t \
	tests/regress/24-long-streams.t tests/regress/25-leaving.t \
	tests/regress/19-heard.t tests/regress/20-client-gone.t \
	tests/regress/21-timeline.t tests/regress/25-last-resort.t tests/regress/26-errors.t \
	tests/regress/27-failback.t tests/regress/27-rolling.t \
	tests/regress/28-prefill.t tests/regress/28-warm.t \
	tests/regress/23-fault-wall.t \
	tests/regress/26-breaker.t \
	tests/regress/27-take-up.t \
	tests/regress/28-selftest.t tests/regress/28-any-gateway.t \
	tests/regress/28-operators.t \
	tests/regress/35-report.t tests/regress/36-judge.t \
	tests/regress/28-window.t \
	tests/regress/28-quota.t \
	tests/regress/16-leaks.t \
	tests/regress/14-ctl-more.t tests/regress/21-suites.t \
	tests/crash/20-kill-tree.t tests/crash/21-kill-worker.t \
	tests/crash/22-fault-points.t tests/crash/23-hung-worker.t \
	tests/crash/24-hedge-kill.t tests/crash/25-breaker-kill.t \
	tests/crash/26-known-targets.t \
	tests/crash/30-handover.t tests/crash/31-heirs.t \
	tests/crash/32-adopt.t \
	tests/crash/33-flat.t
TESTS += $(REGRESS_TESTS)
EXTRA_DIST += $(REGRESS_TESTS)
