EXTRA_DIST += bench/demo.sh bench/deadlines.py bench/hedge.py bench/storm.py \
	docs/design/bench.md
dist_man_MANS += docs/man/continuitybench.1

# Gateways of others: "continuitybench compare".
profilesdir = $(pkgdatadir)/profiles
dist_profiles_DATA = bench/profiles/holdfast.conf.in \
	bench/profiles/holdfast.json bench/profiles/nginx.conf.in \
	bench/profiles/nginx.json bench/profiles/portkey.json \
	bench/profiles/portkey.sh

noinst_LIBRARIES += libbench.a
libbench_a_CPPFLAGS = $(AM_CPPFLAGS) \
	-DHF_PROFILES_DIR='"$(pkgdatadir)/profiles"' \
	-DHF_SOURCE_DIR='"$(abs_top_srcdir)"'
libbench_a_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(CURL_CFLAGS) \
	$(JANSSON_CFLAGS) $(SODIUM_CFLAGS)
libbench_a_SOURCES = \
	bench/audit.c bench/audit.h bench/audit_page.c bench/calibrate.c \
	bench/cmd_audit.c bench/cmd_calibrate.c bench/cmd_report.c \
	bench/embedded.h bench/gate.c bench/gate.h bench/html.c bench/html.h \
	bench/judge_plays.c bench/model_judge.c bench/model_judge.h \
	bench/option.c bench/option.h bench/progress.c bench/progress.h \
	bench/report_charts.c bench/report_csv.c bench/report_html.c \
	bench/report_page.h bench/report_tables.c bench/report_talk.c \
	bench/verdict.c bench/verdict.h \
	bench/answer.c bench/answer.h bench/anthropic.c bench/bleed.c \
	bench/check_anthropic.c bench/check_openai.c \
	bench/format.c bench/format.h \
	bench/gateway_conf.c bench/gateway_conf.h bench/job.c bench/job.h \
	bench/judge_answers.c bench/judge_history.c bench/judge_payload.c \
	bench/reader.h \
	bench/recital.c bench/recital.h bench/report_misses.c \
	bench/report_streams.c bench/resume.c bench/resume.h \
	bench/seam.c bench/seam.h bench/stream.c bench/stream.h \
	bench/suite_make.c bench/suite_make.h bench/suite_midstream.c \
	bench/suite_rolling.c bench/rules.c bench/rules.h \
	bench/oblique.h bench/play_body.c bench/suite_bargein.c \
	bench/suite_retries.c bench/suite_carriers.c bench/suite_crowd.c \
	bench/suite_failback.c bench/suite_oblique.c bench/suite_updates.c \
	bench/client.c bench/client.h bench/director.c bench/director.h \
	bench/suite_kill.c bench/suite_ivr.c bench/script.c bench/script.h \
	bench/script_words.c bench/suite_storm.c bench/knobs.c \
	bench/cmd_suites.c bench/report_storm.c bench/report_paper.c \
	bench/cmd.h bench/cmd_providers.c bench/cmd_run.c \
	bench/dialect.c bench/dialect.h bench/faults.c bench/faults.h \
	bench/gemini.c bench/gemini.h bench/check_gemini.c \
	bench/check_gemini_tools.c bench/job_fail.c \
	bench/judge.c bench/judge.h \
	bench/killer.c bench/killer.h bench/launch.c bench/launch.h \
	bench/manifest.c bench/manifest.h bench/openai.c \
	bench/play.c bench/play.h \
	bench/providers.c bench/providers.h bench/reader.c \
	bench/report.h bench/report_bounds.c bench/report_json.c \
	bench/report_plays.c bench/report_text.c \
	bench/rng.c bench/rng.h bench/run.h bench/run_options.c \
	bench/server.c bench/server.h bench/stats.c bench/stats.h \
	bench/suite.c bench/suite.h bench/suite_paper.c \
	bench/suite_published.c \
	bench/bugs.c bench/bugs.def bench/bugs.h \
	bench/child.c bench/child.h bench/cmd_compare.c \
	bench/cmd_proxy.c bench/compare.c bench/compare.h \
	bench/cmd_selftest.c bench/endpoint.c bench/endpoint.h \
	bench/fetch.c bench/fetch.h bench/fill.c bench/fill.h \
	bench/journal.c bench/journal.h \
	bench/launch_proxy.c bench/memory.c bench/memory.h \
	bench/throttle.c bench/throttle.h bench/room.c bench/room.h \
	bench/profile.c bench/profile.h bench/proxy.c bench/proxy.h \
	bench/proxy_out.c \
	bench/judge_fit.c bench/suite_window.c \
	bench/window.c bench/window.h \
	bench/suite_wall.c bench/wall.c bench/wall.h \
	bench/words.c bench/words.h
nodist_libbench_a_SOURCES = bench/embedded.c
EMBEDDED = bench/audit.js bench/calibration.json bench/report.css
EXTRA_DIST += $(EMBEDDED) bench/embed.sh
CLEANFILES += bench/embedded.c bench/embedded.c.tmp
bench/embedded.c: $(EMBEDDED) bench/embed.sh
	$(AM_V_GEN)$(MKDIR_P) bench && \
	$(SHELL) $(srcdir)/bench/embed.sh \
		hf_audit_js=$(srcdir)/bench/audit.js \
		hf_calibration_json=$(srcdir)/bench/calibration.json \
		hf_report_css=$(srcdir)/bench/report.css \
		> $@.tmp && mv $@.tmp $@
BENCH_LIBS = libbench.a libbase.a $(EVENT_LIBS) $(CURL_LIBS) \
	$(JANSSON_LIBS) $(SODIUM_LIBS) -lm

bin_PROGRAMS += continuitybench
continuitybench_CFLAGS = $(libbench_a_CFLAGS)
continuitybench_SOURCES = bench/main.c
continuitybench_LDADD = $(BENCH_LIBS)

# Throughput and latency against nginx; see docs/perf.md.
EXTRA_DIST += bench/perf/run.py bench/perf/machine.py bench/perf/targets.py \
	bench/perf/streams.py bench/perf/handover.py \
	docs/perf.md
noinst_PROGRAMS += bench/perf/perfmock bench/perf/perfload
bench_perf_perfmock_SOURCES = bench/perf/mock.c
bench_perf_perfload_SOURCES = bench/perf/load.c bench/perf/reader.c \
	bench/perf/reader.h
