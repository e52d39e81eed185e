/*
 * Clocks, with an override for tests.
 */
#include <config.h>

#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t fake_mono, fake_wall;

static int64_t
read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t
hf_now_us(void)
{
	return fake_mono != 0 ? fake_mono : read_clock(CLOCK_MONOTONIC);
}

int64_t
hf_wall_us(void)
{
	return fake_wall != 0 ? fake_wall : read_clock(CLOCK_REALTIME);
}

void
hf_clock_set(int64_t mono_us, int64_t wall_us)
{
	fake_mono = mono_us;
	fake_wall = wall_us;
}

void
hf_wall_format(int64_t wall_us, char out[32])
{
	time_t sec = (time_t)(wall_us / 1000000);
	struct tm tm;
	char day[24];

	gmtime_r(&sec, &tm);
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out, 32, "%s.%03dZ", day, (int)(wall_us / 1000 % 1000));
}
