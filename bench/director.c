/*
 * Killing at named moments.
 */
#include <config.h>

#include "bench/director.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"

void
hf_director_init(
    struct hf_director *d, struct hf_launch *l, struct hf_killer *k)
{
	memset(d, 0, sizeof(*d));
	d->launch = l;
	d->killer = k;
	d->token = hf_launch_path(l, "fault.token");
	d->points = hf_launch_has_points(l);
}

void
hf_director_free(struct hf_director *d)
{
	free(d->token);
}

static void
restart(struct hf_director *d)
{
	struct hf_error e;

	hf_killer_kill_tree(d->killer);
	d->restarts++;
	if (hf_launch_restart(d->launch, d->point, d->token, &e) != 0) {
		fprintf(stderr, "continuitybench: %s\n", e.text);
		d->broken = true;
	}
	d->killer->gateway = d->launch->gateway;
}

/* 'port': of the connection to a provider whose worker is meant, or 0. */
static void
kill_victim(struct hf_director *d, unsigned port)
{
	if (d->done || d->broken)
		return;
	d->done = true;
	d->kills++;
	/* A gateway of one process is all of them. */
	switch (
	    d->launch->proxy != NULL ? HF_KILL_TREE : d->play->c->kill.victim) {
	case HF_KILL_WORKER:
		hf_killer_kill_worker(d->killer, port);
		break;
	case HF_KILL_MASTER:
		hf_killer_kill_master(d->killer);
		restart(d);
		break;
	case HF_KILL_TREE:
		restart(d);
		break;
	case HF_KILL_NOBODY:
		break;
	}
}

/* One of its processes will die there by itself. */
static bool
at_point(const struct hf_director *d)
{
	return d->points && d->play->c->kill.point != NULL;
}

void
hf_director_before(struct hf_director *d, const struct hf_play *p)
{
	const char *point = p->c->kill.point;
	int fd;

	d->play = p;
	d->done = false;
	if (!at_point(d))
		return;
	if (d->point == NULL || strcmp(d->point, point) != 0) {
		d->point = point;
		restart(d);
	}
	fd = open(d->token, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	HF_CHECK(fd >= 0);
	close(fd);
}

void
hf_director_after(struct hf_director *d, const struct hf_play *p)
{
	HF_CHECK(d->play == p);
	/* An alarm at the end comes as soon as the answer. */
	hf_director_alarm(d);
	hf_director_tick(d);
	if (p->c->kill.moment == HF_AT_ANSWER)
		kill_victim(d, 0);
	if (!d->done) {
		fprintf(stderr, "continuitybench: %s: nobody was killed\n",
		    p->user);
		d->missed++;
		unlink(d->token);
	}
	d->play = NULL;
}

void
hf_director_tick(struct hf_director *d)
{
	if (d->play == NULL || d->done)
		return;
	if (d->play->c->kill.moment == HF_AT_SENT) {
		kill_victim(d, 0);
	} else if (at_point(d) && access(d->token, F_OK) != 0) {
		/* The process that got there is dead; the others follow it. */
		if (d->play->c->kill.victim == HF_KILL_WORKER) {
			d->done = true;
			d->kills++;
		} else {
			kill_victim(d, 0);
		}
	}
}

void
hf_director_alarm(struct hf_director *d)
{
	char text[4096], user[80], *line, *rest = text;
	ssize_t n = read(d->launch->alarm, text, sizeof(text) - 1);
	unsigned port;

	if (n <= 0)
		return;
	text[n] = '\0';
	while ((line = strsep(&rest, "\n")) != NULL)
		if (sscanf(line, "%79s %u", user, &port) == 2 &&
		    d->play != NULL && strcmp(d->play->user, user) == 0 &&
		    d->play->c->kill.moment == HF_AT_PROVIDER && !at_point(d))
			kill_victim(d, port);
}
