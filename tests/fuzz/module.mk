# Fuzz targets.  `make check` replays their corpora with any compiler; real
# fuzzing, with clang: tests/fuzz/run.sh
FUZZ_LIBS = libgateway.a $(BASE_LIBS) $(JANSSON_LIBS)
FUZZ_COMMON = tests/fuzz/fuzz.h tests/fuzz/piece.c
EXTRA_DIST += tests/fuzz/corpus tests/fuzz/run.sh docs/design/testing.md

check_PROGRAMS += tests/fuzz/replay_json
TESTS += tests/fuzz/replay_json
tests_fuzz_replay_json_SOURCES = tests/fuzz/fuzz_json.c tests/fuzz/replay.c \
	$(FUZZ_COMMON)
tests_fuzz_replay_json_LDADD = $(FUZZ_LIBS)

check_PROGRAMS += tests/fuzz/replay_sse
TESTS += tests/fuzz/replay_sse
tests_fuzz_replay_sse_SOURCES = tests/fuzz/fuzz_sse.c tests/fuzz/replay.c \
	$(FUZZ_COMMON)
tests_fuzz_replay_sse_LDADD = $(FUZZ_LIBS)

check_PROGRAMS += tests/fuzz/replay_openai
TESTS += tests/fuzz/replay_openai
tests_fuzz_replay_openai_SOURCES = tests/fuzz/fuzz_openai.c tests/fuzz/replay.c \
	$(FUZZ_COMMON) tests/fuzz/decoder_check.c
tests_fuzz_replay_openai_LDADD = $(FUZZ_LIBS)

check_PROGRAMS += tests/fuzz/replay_anthropic
TESTS += tests/fuzz/replay_anthropic
tests_fuzz_replay_anthropic_SOURCES = tests/fuzz/fuzz_anthropic.c tests/fuzz/replay.c \
	$(FUZZ_COMMON) tests/fuzz/decoder_check.c
tests_fuzz_replay_anthropic_LDADD = $(FUZZ_LIBS)

check_PROGRAMS += tests/fuzz/replay_retry_hint
TESTS += tests/fuzz/replay_retry_hint
tests_fuzz_replay_retry_hint_SOURCES = tests/fuzz/fuzz_retry_hint.c tests/fuzz/replay.c \
	$(FUZZ_COMMON)
tests_fuzz_replay_retry_hint_LDADD = $(FUZZ_LIBS)

check_PROGRAMS += tests/fuzz/replay_build
TESTS += tests/fuzz/replay_build
tests_fuzz_replay_build_SOURCES = tests/fuzz/fuzz_build.c tests/fuzz/replay.c \
	$(FUZZ_COMMON)
tests_fuzz_replay_build_LDADD = $(FUZZ_LIBS)

check_PROGRAMS += tests/fuzz/replay_conf
TESTS += tests/fuzz/replay_conf
tests_fuzz_replay_conf_SOURCES = tests/fuzz/fuzz_conf.c tests/fuzz/replay.c \
	$(FUZZ_COMMON)
tests_fuzz_replay_conf_LDADD = $(BASE_LIBS)

check_PROGRAMS += tests/fuzz/replay_frame
TESTS += tests/fuzz/replay_frame
tests_fuzz_replay_frame_SOURCES = tests/fuzz/fuzz_frame.c tests/fuzz/replay.c \
	$(FUZZ_COMMON)
tests_fuzz_replay_frame_LDADD = $(CTL_LIBS)

check_PROGRAMS += tests/fuzz/replay_head
TESTS += tests/fuzz/replay_head
tests_fuzz_replay_head_SOURCES = tests/fuzz/fuzz_head.c tests/fuzz/replay.c \
	$(FUZZ_COMMON)
tests_fuzz_replay_head_LDADD = $(FUZZ_LIBS)

check_PROGRAMS += tests/fuzz/replay_splice
TESTS += tests/fuzz/replay_splice
tests_fuzz_replay_splice_SOURCES = tests/fuzz/fuzz_splice.c tests/fuzz/replay.c \
	$(FUZZ_COMMON)
tests_fuzz_replay_splice_LDADD = $(FUZZ_LIBS)

if FUZZERS
noinst_PROGRAMS += tests/fuzz/fuzz_json
tests_fuzz_fuzz_json_SOURCES = tests/fuzz/fuzz_json.c $(FUZZ_COMMON)
tests_fuzz_fuzz_json_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
tests_fuzz_fuzz_json_LDADD = $(FUZZ_LIBS)
noinst_PROGRAMS += tests/fuzz/fuzz_sse
tests_fuzz_fuzz_sse_SOURCES = tests/fuzz/fuzz_sse.c $(FUZZ_COMMON)
tests_fuzz_fuzz_sse_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
tests_fuzz_fuzz_sse_LDADD = $(FUZZ_LIBS)
noinst_PROGRAMS += tests/fuzz/fuzz_openai
tests_fuzz_fuzz_openai_SOURCES = tests/fuzz/fuzz_openai.c $(FUZZ_COMMON) tests/fuzz/decoder_check.c
tests_fuzz_fuzz_openai_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
tests_fuzz_fuzz_openai_LDADD = $(FUZZ_LIBS)
noinst_PROGRAMS += tests/fuzz/fuzz_anthropic
tests_fuzz_fuzz_anthropic_SOURCES = tests/fuzz/fuzz_anthropic.c $(FUZZ_COMMON) tests/fuzz/decoder_check.c
tests_fuzz_fuzz_anthropic_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
tests_fuzz_fuzz_anthropic_LDADD = $(FUZZ_LIBS)
noinst_PROGRAMS += tests/fuzz/fuzz_retry_hint
tests_fuzz_fuzz_retry_hint_SOURCES = tests/fuzz/fuzz_retry_hint.c $(FUZZ_COMMON)
tests_fuzz_fuzz_retry_hint_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
tests_fuzz_fuzz_retry_hint_LDADD = $(FUZZ_LIBS)
noinst_PROGRAMS += tests/fuzz/fuzz_build
tests_fuzz_fuzz_build_SOURCES = tests/fuzz/fuzz_build.c $(FUZZ_COMMON)
tests_fuzz_fuzz_build_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
tests_fuzz_fuzz_build_LDADD = $(FUZZ_LIBS)
noinst_PROGRAMS += tests/fuzz/fuzz_conf
tests_fuzz_fuzz_conf_SOURCES = tests/fuzz/fuzz_conf.c $(FUZZ_COMMON)
tests_fuzz_fuzz_conf_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
tests_fuzz_fuzz_conf_LDADD = $(BASE_LIBS)
noinst_PROGRAMS += tests/fuzz/fuzz_frame
tests_fuzz_fuzz_frame_SOURCES = tests/fuzz/fuzz_frame.c $(FUZZ_COMMON)
tests_fuzz_fuzz_frame_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
tests_fuzz_fuzz_frame_LDADD = $(CTL_LIBS)
noinst_PROGRAMS += tests/fuzz/fuzz_head
tests_fuzz_fuzz_head_SOURCES = tests/fuzz/fuzz_head.c $(FUZZ_COMMON)
tests_fuzz_fuzz_head_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
tests_fuzz_fuzz_head_LDADD = $(FUZZ_LIBS)
noinst_PROGRAMS += tests/fuzz/fuzz_splice
tests_fuzz_fuzz_splice_SOURCES = tests/fuzz/fuzz_splice.c $(FUZZ_COMMON)
tests_fuzz_fuzz_splice_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
tests_fuzz_fuzz_splice_LDADD = $(FUZZ_LIBS)
endif
