/*
 * Log lines on stderr, one write each.
 */
#include <config.h>

#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

static char log_role[32] = "holdfast";
static _Atomic int log_level = HF_LOG_INFO;

static const char *const level_name[] = { "error", "warn", "info", "debug" };

void
hf_log_init(const char *role, enum hf_log_level level)
{
	snprintf(log_role, sizeof(log_role), "%s", role);
	hf_log_set_level(level);
}

void
hf_log_set_level(enum hf_log_level level)
{
	atomic_store(&log_level, (int)level);
}

bool
hf_log_enabled(enum hf_log_level level)
{
	return (int)level <= atomic_load(&log_level);
}

int
hf_log_level_parse(const char *name, enum hf_log_level *out)
{
	for (size_t i = 0; i < hf_countof(level_name); i++) {
		if (strcmp(level_name[i], name) == 0) {
			*out = (enum hf_log_level)i;
			return 0;
		}
	}
	return HF_EINVAL;
}

static HF_PRINTF(3, 0) void emit(
    enum hf_log_level level, unsigned suppressed, const char *fmt, va_list ap)
{
	char line[1024], when[32];
	size_t n, room = sizeof(line) - 40;
	int w;

	hf_wall_format(hf_wall_us(), when);
	w = snprintf(line, sizeof(line), "%s %s %s[%d] ", when,
	    level_name[level], log_role, (int)getpid());
	n = w < 0 ? 0 : (size_t)w;
	w = vsnprintf(line + n, room - n, fmt, ap);
	if (w > 0)
		n += (size_t)w < room - n ? (size_t)w : room - n - 1;
	/* One line per event, whatever the text holds. */
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)line[i] < 0x20)
			line[i] = ' ';
	if (suppressed > 0)
		n += (size_t)snprintf(
		    line + n, sizeof(line) - n, " suppressed=%u", suppressed);
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		return; /* nowhere left to say so */
}

void
hf_log(enum hf_log_level level, const char *fmt, ...)
{
	va_list ap;

	if (!hf_log_enabled(level))
		return;
	va_start(ap, fmt);
	emit(level, 0, fmt, ap);
	va_end(ap);
}

void
hf_log_limited(struct hf_log_limit *l, int per_ms, enum hf_log_level level,
    const char *fmt, ...)
{
	int64_t now = hf_now_us();
	unsigned suppressed;
	va_list ap;

	if (!hf_log_enabled(level))
		return;
	if (l->last_us != 0 && now - l->last_us < (int64_t)per_ms * 1000) {
		l->suppressed++;
		return;
	}
	suppressed = l->suppressed;
	l->suppressed = 0;
	l->last_us = now;
	va_start(ap, fmt);
	emit(level, suppressed, fmt, ap);
	va_end(ap);
}
