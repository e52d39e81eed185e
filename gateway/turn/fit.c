/*
 * Fitting a history into a window.  Linear.
 */
#include <config.h>

#include "gateway/turn/fit.h"

static bool
is_user(const struct hf_fit_item *i)
{
	return i->kind == HF_ITEM_MESSAGE && i->role == HF_ROLE_USER;
}

static bool
is_system(const struct hf_fit_item *i)
{
	return i->kind == HF_ITEM_MESSAGE &&
	    (i->role == HF_ROLE_SYSTEM || i->role == HF_ROLE_DEVELOPER);
}

/* The first item that must stay together with item i and those before it. */
static uint32_t
reach(const struct hf_fit_item *item, uint32_t i)
{
	const struct hf_fit_item *it = &item[i], *prev = i > 0 ? it - 1 : NULL;

	if (it->kind == HF_ITEM_TOOL_RESULT && it->call < i)
		return it->call;
	/* Neighbouring calls of a turn are one answer, as is its text. */
	if (it->kind == HF_ITEM_TOOL_CALL && prev != NULL &&
	    prev->turn == it->turn && prev->role == HF_ROLE_ASSISTANT)
		return i - 1;
	return i;
}

/* Groups are ranges, from the end to the beginning. */
static void
make_groups(struct hf_fit_item *item, uint32_t n)
{
	uint32_t end = n, low, i;

	while (end > 0) {
		low = reach(item, end - 1);
		for (i = end - 1; i > low; i--)
			if (reach(item, i - 1) < low)
				low = reach(item, i - 1);
		for (i = low; i < end; i++)
			item[i].group = low;
		end = low;
	}
}

/* Does a turn begin with item i?  'any': the user has spoken before. */
static bool
begins(const struct hf_fit_item *item, uint32_t i, bool any)
{
	return any && is_user(&item[i]) && item[i].group == i &&
	    (!is_user(&item[i - 1]) || item[i - 1].turn != item[i].turn);
}

/* Turns are ranges of groups; what stands before the first word of the user is
 * a part of that turn. */
static void
make_units(struct hf_fit_item *item, uint32_t n)
{
	uint32_t unit = 0;
	bool any = false;

	for (uint32_t i = 0; i < n; i++) {
		if (begins(item, i, any))
			unit = i;
		item[i].unit = unit;
		any = any || is_user(&item[i]);
	}
}

static void
keep(struct hf_fit_item *it, struct hf_fit *out)
{
	if (!it->keep)
		out->tokens += it->tokens;
	it->keep = true;
}

static void
keep_group(struct hf_fit_item *item, uint32_t n, uint32_t i, struct hf_fit *out)
{
	uint32_t group = item[i].group;

	for (i = group; i < n && item[i].group == group; i++)
		keep(&item[i], out);
}

/* What must be there, whatever the room is. */
static void
keep_least(struct hf_fit_item *item, uint32_t n, struct hf_fit *out)
{
	uint32_t last = n;

	for (uint32_t i = 0; i < n; i++) {
		item[i].keep = false;
		last = is_user(&item[i]) ? i : last;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (is_system(&item[i]))
			keep(&item[i], out);
		if (item[i].pinned || i == last || i == n - 1)
			keep_group(item, n, i, out);
	}
	out->minimum = out->tokens;
}

/* Tokens of the range that are not kept yet. */
static int64_t
missing(const struct hf_fit_item *item, uint32_t from, uint32_t to)
{
	int64_t tokens = 0;

	for (uint32_t i = from; i < to; i++)
		tokens += item[i].keep ? 0 : item[i].tokens;
	return tokens;
}

/* From the end on: whole turns, of the newest one whole groups. */
static void
keep_newest(
    struct hf_fit_item *item, uint32_t n, int64_t room, struct hf_fit *out)
{
	uint32_t newest = item[n - 1].unit, from, end = n;

	while (end > 0) {
		from = end > newest ? item[end - 1].group : item[end - 1].unit;
		if (out->tokens + missing(item, from, end) > room)
			return;
		for (uint32_t i = from; i < end; i++)
			keep(&item[i], out);
		end = from;
	}
}

static void
count_omitted(const struct hf_fit_item *item, uint32_t n, struct hf_fit *out)
{
	uint32_t newest = item[n - 1].unit, last = n;

	for (uint32_t i = 0; i < n; i++) {
		if (item[i].keep)
			continue;
		out->items++;
		out->turns += item[i].unit != newest && item[i].unit != last;
		last = item[i].unit;
	}
}

void
hf_fit(struct hf_fit_item *item, uint32_t n, int64_t room, struct hf_fit *out)
{
	*out = (struct hf_fit){ 0 };
	if (n == 0) {
		out->fits = room >= 0;
		return;
	}
	make_groups(item, n);
	make_units(item, n);
	keep_least(item, n, out);
	out->fits = out->minimum <= room;
	if (out->fits)
		keep_newest(item, n, room, out);
	count_omitted(item, n, out);
}
