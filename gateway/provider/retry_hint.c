/*
 * How long a provider asks to wait.  Strict: what does not match a known form
 * as a whole is no hint at all.
 */
#include <config.h>

#include "gateway/provider/provider.h"

#include <strings.h>

#include "gateway/provider/headers.h"
#include "gateway/provider/hint.h"

#define HINT_MAX_MS ((int64_t)3600000)

static int64_t
clamp(int64_t ms)
{
	return ms < 0 ? 0 : ms > HINT_MAX_MS ? HINT_MAX_MS : ms;
}

static bool
is_digit(const char *p, const char *end)
{
	return p < end && *p >= '0' && *p <= '9';
}

/* The digits behind the point, in milliseconds, rounded up so that nobody
 * comes back too early. */
static int64_t
parse_fraction(const char **p, const char *end, int64_t unit)
{
	int64_t ms = 0;
	bool more = false;

	for (; is_digit(*p, end); (*p)++) {
		if (unit % 10 == 0) {
			unit /= 10;
			ms += unit * (**p - '0');
		} else if (**p != '0') {
			more = true;
		}
	}
	return ms + more;
}

/* [-]digits[.digits] times 'unit' milliseconds; -1: not a number. */
int64_t
hf_hint_decimal(struct hf_str s, int64_t unit)
{
	const char *p = s.p, *end = p + s.size;
	bool minus = p < end && *p == '-';
	int64_t ms = 0;

	p += minus;
	if (!is_digit(p, end))
		return -1;
	for (; is_digit(p, end); p++)
		if (ms <= HINT_MAX_MS)
			ms = ms * 10 + (*p - '0');
	ms = ms > HINT_MAX_MS ? HINT_MAX_MS : ms * unit;
	if (p < end && *p == '.') {
		p++;
		if (!is_digit(p, end))
			return -1;
		ms += parse_fraction(&p, end, unit);
	}
	if (p != end)
		return -1;
	return minus ? 0 : clamp(ms);
}

/* --- HTTP dates (RFC 9110 5.6.7) --------------------------------------- */

struct cursor {
	const char *p, *end;
};

static bool
take(struct cursor *c, const char *z)
{
	size_t n = strlen(z);

	if ((size_t)(c->end - c->p) < n || memcmp(c->p, z, n) != 0)
		return false;
	c->p += n;
	return true;
}

static bool
take_digits(struct cursor *c, unsigned n, int *out)
{
	*out = 0;
	for (; n > 0; n--, c->p++) {
		if (c->p == c->end || *c->p < '0' || *c->p > '9')
			return false;
		*out = *out * 10 + (*c->p - '0');
	}
	return true;
}

/* One of 'n' words; its place in the list, or -1. */
static int
take_word(struct cursor *c, const char *const *word, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (take(c, word[i]))
			return i;
	return -1;
}

static const char *const day_short[] = { "Mon", "Tue", "Wed", "Thu", "Fri",
	"Sat", "Sun" };
static const char *const day_long[] = { "Monday", "Tuesday", "Wednesday",
	"Thursday", "Friday", "Saturday", "Sunday" };
static const char *const month_name[] = { "Jan", "Feb", "Mar", "Apr", "May",
	"Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };

struct date {
	int year, month, day, hour, min, sec;
};

static bool
take_time(struct cursor *c, struct date *d)
{
	return take_digits(c, 2, &d->hour) && take(c, ":") &&
	    take_digits(c, 2, &d->min) && take(c, ":") &&
	    take_digits(c, 2, &d->sec);
}

static bool
take_month(struct cursor *c, struct date *d)
{
	d->month = take_word(c, month_name, 12) + 1;
	return d->month > 0;
}

/* Sun, 06 Nov 1994 08:49:37 GMT */
static bool
parse_imf(struct cursor c, struct date *d)
{
	return take_word(&c, day_short, 7) >= 0 && take(&c, ", ") &&
	    take_digits(&c, 2, &d->day) && take(&c, " ") && take_month(&c, d) &&
	    take(&c, " ") && take_digits(&c, 4, &d->year) && take(&c, " ") &&
	    take_time(&c, d) && take(&c, " GMT") && c.p == c.end;
}

/* Sunday, 06-Nov-94 08:49:37 GMT */
static bool
parse_rfc850(struct cursor c, struct date *d)
{
	return take_word(&c, day_long, 7) >= 0 && take(&c, ", ") &&
	    take_digits(&c, 2, &d->day) && take(&c, "-") && take_month(&c, d) &&
	    take(&c, "-") && take_digits(&c, 2, &d->year) && take(&c, " ") &&
	    take_time(&c, d) && take(&c, " GMT") && c.p == c.end;
}

/* Sun Nov  6 08:49:37 1994 */
static bool
parse_asctime(struct cursor c, struct date *d)
{
	return take_word(&c, day_short, 7) >= 0 && take(&c, " ") &&
	    take_month(&c, d) && take(&c, " ") &&
	    (take(&c, " ") ? take_digits(&c, 1, &d->day) :
			     take_digits(&c, 2, &d->day)) &&
	    take(&c, " ") && take_time(&c, d) && take(&c, " ") &&
	    take_digits(&c, 4, &d->year) && c.p == c.end;
}

/* Days since 1970-01-01 in the Gregorian calendar. */
static int64_t
days(int year, int month, int day)
{
	int64_t y = year - (month <= 2);
	int64_t era = y / 400, yoe = y - era * 400;
	int64_t doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;

	return era * 146097 + doe - 719468;
}

static int
days_of_month(int year, int month)
{
	static const int n[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30,
		31 };
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return n[month - 1] + (month == 2 && leap);
}

static bool
plausible(const struct date *d)
{
	return d->year >= 1601 && d->day >= 1 &&
	    d->day <= days_of_month(d->year, d->month) && d->hour <= 23 &&
	    d->min <= 59 && d->sec <= 60;
}

static int64_t
seconds(const struct date *d)
{
	return days(d->year, d->month, d->day) * 86400 + d->hour * 3600 +
	    d->min * 60 + d->sec;
}

static int64_t
parse_date(struct hf_str s, int64_t wall_us)
{
	struct cursor c = { s.p, s.p + s.size };
	struct date d = { 0 };
	int64_t now_ms = wall_us / 1000;

	if (parse_rfc850(c, &d)) {
		/* Two digits: the century that is not over 50 years ahead. */
		d.year += 2000;
		if (seconds(&d) * 1000 - now_ms >
		    (int64_t)50 * 365 * 86400 * 1000)
			d.year -= 100;
	} else if (!parse_imf(c, &d) && !parse_asctime(c, &d)) {
		return -1;
	}
	if (!plausible(&d))
		return -1;
	return clamp(seconds(&d) * 1000 - now_ms);
}

int64_t
hf_retry_hint(struct hf_str headers, int64_t wall_us)
{
	struct hf_str v;
	int64_t ms;

	v = hf_header_find(headers, "retry-after-ms");
	if (v.p != NULL && (ms = hf_hint_decimal(v, 1)) >= 0)
		return ms;
	v = hf_header_find(headers, "x-ms-retry-after-ms");
	if (v.p != NULL && (ms = hf_hint_decimal(v, 1)) >= 0)
		return ms;
	v = hf_header_find(headers, "retry-after");
	if (v.p == NULL)
		return -1;
	ms = hf_hint_decimal(v, 1000);
	return ms >= 0 ? ms : parse_date(v, wall_us);
}

/* --- resets of quotas ------------------------------------------------------
 */

/* "6m0s", "20ms", "1.5s": numbers with units, nothing between them; a bare
 * number is in seconds. */
int64_t
hf_hint_duration(struct hf_str s)
{
	static const struct {
		const char *name;
		int64_t ms;
	} unit[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 },
		{ "h", 3600000 }, { "d", 86400000 } };
	struct cursor c = { s.p, s.p + s.size };
	int64_t sum = 0, ms;
	bool minus;

	ms = hf_hint_decimal(s, 1000);
	if (ms >= 0 || s.size == 0)
		return ms;
	minus = take(&c, "-");
	if (c.p == c.end)
		return -1;
	while (c.p < c.end) {
		struct hf_str n = { c.p, 0 };
		size_t u = 0;

		while (c.p < c.end && (is_digit(c.p, c.end) || *c.p == '.'))
			c.p++;
		n.size = (size_t)(c.p - n.p);
		while (u < hf_countof(unit) && !take(&c, unit[u].name))
			u++;
		if (u == hf_countof(unit) || n.size == 0)
			return -1;
		ms = hf_hint_decimal(n, unit[u].ms);
		if (ms < 0)
			return -1;
		sum += ms;
	}
	return minus ? 0 : clamp(sum);
}

/* Z, or +02:00. */
static bool
take_zone(struct cursor *c, int64_t *zone_s)
{
	bool minus = c->p < c->end && *c->p == '-';
	int hour, min;

	*zone_s = 0;
	if (take(c, "Z") || take(c, "z"))
		return true;
	if ((!take(c, "+") && !take(c, "-")) || !take_digits(c, 2, &hour) ||
	    !take(c, ":") || !take_digits(c, 2, &min) || hour > 23 || min > 59)
		return false;
	*zone_s = (minus ? -1 : 1) * (hour * 3600 + min * 60);
	return true;
}

/* 2024-06-01T */
static bool
take_day(struct cursor *c, struct date *d)
{
	return take_digits(c, 4, &d->year) && take(c, "-") &&
	    take_digits(c, 2, &d->month) && d->month >= 1 && d->month <= 12 &&
	    take(c, "-") && take_digits(c, 2, &d->day) &&
	    (take(c, "T") || take(c, "t"));
}

/* 2024-06-01T00:00:10.5Z, or +02:00 instead of the Z (RFC 3339). */
int64_t
hf_hint_rfc3339(struct hf_str s, int64_t wall_us)
{
	struct cursor c = { s.p, s.p + s.size };
	struct date d = { 0 };
	int64_t ms = 0, zone_s;

	if (!take_day(&c, &d) || !take_time(&c, &d) || !plausible(&d))
		return -1;
	if (take(&c, ".")) {
		if (!is_digit(c.p, c.end))
			return -1;
		ms = parse_fraction(&c.p, c.end, 1000);
	}
	if (!take_zone(&c, &zone_s) || c.p != c.end)
		return -1;
	return clamp((seconds(&d) - zone_s) * 1000 + ms - wall_us / 1000);
}

/* What is counted, and where it is said. */
static const struct {
	const char *reset, *remaining;
	bool date; /* RFC 3339; else a duration */
} quotas[] = {
	{ "x-ratelimit-reset-requests", "x-ratelimit-remaining-requests",
	    false },
	{ "x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens", false },
	{ "anthropic-ratelimit-requests-reset",
	    "anthropic-ratelimit-requests-remaining", true },
	{ "anthropic-ratelimit-tokens-reset",
	    "anthropic-ratelimit-tokens-remaining", true },
	{ "anthropic-ratelimit-input-tokens-reset",
	    "anthropic-ratelimit-input-tokens-remaining", true },
	{ "anthropic-ratelimit-output-tokens-reset",
	    "anthropic-ratelimit-output-tokens-remaining", true },
};

int64_t
hf_reset_hint(struct hf_str headers, int64_t wall_us)
{
	int64_t spent = -1, least = -1, ms;
	struct hf_str v, left;

	for (size_t i = 0; i < hf_countof(quotas); i++) {
		v = hf_header_find(headers, quotas[i].reset);
		if (v.p == NULL)
			continue;
		ms = quotas[i].date ? hf_hint_rfc3339(v, wall_us) :
				      hf_hint_duration(v);
		/* A quota of a day is no reason to wait that long: what is
		 * used of it slides out long before. */
		if (ms < 0 || ms >= HINT_MAX_MS)
			continue;
		left = hf_header_find(headers, quotas[i].remaining);
		if (left.p != NULL && hf_hint_decimal(left, 1) == 0 &&
		    ms > spent)
			spent = ms;
		if (least < 0 || ms < least)
			least = ms;
	}
	return spent >= 0 ? spent : least;
}

/* --- google.rpc.RetryInfo --------------------------------------------------
 */

static bool
type_ends(struct hf_json detail, const char *name)
{
	struct hf_json type = hf_json_get(detail, "@type");
	size_t n = strlen(name);

	return type.type == HF_JSON_STRING && type.raw.size >= n + 2 &&
	    memcmp(type.raw.p + type.raw.size - 1 - n, name, n) == 0;
}

/* Does a violated quota count by the day? */
static bool
is_daily(struct hf_json failure)
{
	struct hf_json violation, id;
	size_t pos = 0;

	while (hf_json_next_element(
	    hf_json_get(failure, "violations"), &pos, &violation)) {
		id = hf_json_get(violation, "quotaId");
		if (id.type != HF_JSON_STRING)
			continue;
		for (size_t i = 0; i + 6 <= id.raw.size; i++)
			if (memcmp(id.raw.p + i, "PerDay", 6) == 0)
				return true;
	}
	return false;
}

int64_t
hf_retry_info(struct hf_json error)
{
	struct hf_json list = hf_json_get(error, "details"), detail, delay;
	int64_t ms = -1;
	size_t pos = 0;

	if (list.type != HF_JSON_ARRAY)
		return -1;
	while (hf_json_next_element(list, &pos, &detail)) {
		if (type_ends(detail, "google.rpc.QuotaFailure") &&
		    hf_json_get(detail, "violations").type == HF_JSON_ARRAY &&
		    is_daily(detail))
			return -1;
		if (!type_ends(detail, "google.rpc.RetryInfo"))
			continue;
		delay = hf_json_get(detail, "retryDelay");
		if (delay.type == HF_JSON_STRING && delay.raw.size >= 2)
			ms = hf_hint_duration((struct hf_str){
			    delay.raw.p + 1, delay.raw.size - 2 });
	}
	return ms;
}
