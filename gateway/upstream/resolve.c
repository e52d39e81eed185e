/*
 * One lookup per name at a time, shared by all calls that want it; answers
 * are kept for 30 s, failures for 2 s, and an answer up to ten minutes old
 * serves when a new lookup fails.  Loop thread.
 */
#include <config.h>

#include "gateway/upstream/resolve.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include <event2/dns.h>
#include <event2/util.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

#define KEEP_GOOD_US (30 * 1000000LL)
#define KEEP_BAD_US (2 * 1000000LL)
#define KEEP_STALE_US (600 * 1000000LL)
#define HOSTS_FILE "/etc/hosts"
#define RESOLV_FILE "/etc/resolv.conf"

struct hf_resolve_wait {
	TAILQ_ENTRY(hf_resolve_wait) entry;
	struct name *name;
	hf_resolved_fn fn;
	void *arg;
};

TAILQ_HEAD(wait_list, hf_resolve_wait);

/* A name that was asked for once; kept until the resolver is freed, since
 * names come from the configuration. */
struct name {
	LIST_ENTRY(name) entry;
	struct hf_resolver *r; /* NULL: freed, the answer is not wanted */
	char *host;
	char *addr;	 /* last good answer, or NULL */
	int64_t good_us; /* when it came */
	int64_t bad_us;	 /* last failure after it; 0: none */
	const char *why;
	bool asking;
	struct wait_list waiting;
};

struct hf_resolver {
	struct event_base *base;
	struct evdns_base *dns;
	struct event *work; /* hands out what is known */
	LIST_HEAD(, name) names;
	struct timespec hosts_mtime, resolv_mtime;
	bool fixed; /* a test's server */
};

static void hand_out(evutil_socket_t fd, short what, void *arg);

static void
dns_says(int warn, const char *text)
{
	static struct hf_log_limit limit;

	if (warn)
		hf_log_limited(&limit, 10000, HF_LOG_WARN,
		    "upstream: resolver-says text=\"%s\"", text);
}

static bool
file_changed(const char *path, struct timespec *seen)
{
	struct stat st;

	if (stat(path, &st) < 0)
		memset(&st, 0, sizeof(st));
	if (st.st_mtim.tv_sec == seen->tv_sec &&
	    st.st_mtim.tv_nsec == seen->tv_nsec)
		return false;
	*seen = st.st_mtim;
	return true;
}

/* Follow edits of the two files, as libc does. */
static void
refresh(struct hf_resolver *r)
{
	if (file_changed(HOSTS_FILE, &r->hosts_mtime)) {
		evdns_base_clear_host_addresses(r->dns);
		evdns_base_load_hosts(r->dns, HOSTS_FILE);
	}
	if (!r->fixed && file_changed(RESOLV_FILE, &r->resolv_mtime)) {
		evdns_base_clear_nameservers_and_suspend(r->dns);
		/* Without servers lookups fail, which is an answer too. */
		(void)evdns_base_resolv_conf_parse(r->dns,
		    DNS_OPTION_SEARCH | DNS_OPTION_NAMESERVERS |
			DNS_OPTION_MISC,
		    RESOLV_FILE);
		evdns_base_resume(r->dns);
	}
}

int
hf_resolver_new(
    struct hf_resolver **out, struct event_base *base, struct hf_error *e)
{
	struct hf_resolver *r = hf_xcalloc(1, sizeof(*r));

	*out = NULL;
	r->base = base;
	LIST_INIT(&r->names);
	evdns_set_log_fn(dns_says);
	r->dns = evdns_base_new(base, EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	r->work = event_new(base, -1, 0, hand_out, r);
	if (r->dns == NULL || r->work == NULL) {
		hf_resolver_free(r);
		return hf_fail(e, HF_ENOMEM, "resolver");
	}
	refresh(r);
	*out = r;
	return 0;
}

int
hf_resolver_use(struct hf_resolver *r, const char *server, struct hf_error *e)
{
	r->fixed = true;
	evdns_base_clear_nameservers_and_suspend(r->dns);
	evdns_base_resume(r->dns);
	if (evdns_base_nameserver_ip_add(r->dns, server) != 0)
		return hf_fail(e, HF_EINVAL, "name server %s", server);
	return 0;
}

static void
name_free(struct name *n)
{
	free(n->host);
	free(n->addr);
	free(n);
}

void
hf_resolver_free(struct hf_resolver *r)
{
	struct name *n;

	if (r == NULL)
		return;
	while ((n = LIST_FIRST(&r->names)) != NULL) {
		LIST_REMOVE(n, entry);
		HF_CHECK(TAILQ_EMPTY(&n->waiting));
		/* A lookup under way comes back once more: see resolved(). */
		n->r = NULL;
		if (!n->asking)
			name_free(n);
	}
	if (r->work != NULL)
		event_free(r->work);
	if (r->dns != NULL)
		evdns_base_free(r->dns, 1);
	free(r);
}

static struct name *
name_of(struct hf_resolver *r, const char *host)
{
	struct name *n;

	LIST_FOREACH (n, &r->names, entry)
		if (strcasecmp(n->host, host) == 0)
			return n;
	n = hf_xcalloc(1, sizeof(*n));
	n->r = r;
	n->host = hf_xstrdup(host);
	TAILQ_INIT(&n->waiting);
	LIST_INSERT_HEAD(&r->names, n, entry);
	return n;
}

/* What is known of 'n' now: a fresh answer, else, after a failure, one that is
 * not too old.  False: it has to be asked. */
static bool
known(const struct name *n, const char **addr)
{
	int64_t now = hf_now_us();

	*addr = NULL;
	if (n->addr != NULL && now - n->good_us < KEEP_GOOD_US) {
		*addr = n->addr;
		return true;
	}
	if (n->bad_us == 0 || now - n->bad_us >= KEEP_BAD_US)
		return false;
	if (n->addr != NULL && now - n->good_us < KEEP_STALE_US)
		*addr = n->addr;
	return true;
}

const char *
hf_resolve_cached(struct hf_resolver *r, const char *host)
{
	const char *addr;

	return known(name_of(r, host), &addr) ? addr : NULL;
}

static char *
print_addresses(const struct evutil_addrinfo *ai)
{
	char out[1024] = "", ip[INET6_ADDRSTRLEN];
	size_t n = 0;

	for (; ai != NULL && n + sizeof(ip) + 4 < sizeof(out);
	     ai = ai->ai_next) {
		const struct sockaddr_in *in = (void *)ai->ai_addr;
		const struct sockaddr_in6 *in6 = (void *)ai->ai_addr;
		bool six = ai->ai_family == AF_INET6;

		if (!six && ai->ai_family != AF_INET)
			continue;
		if (inet_ntop(ai->ai_family,
			six ? (const void *)&in6->sin6_addr :
			      (const void *)&in->sin_addr,
			ip, sizeof(ip)) == NULL)
			continue;
		n += (size_t)snprintf(out + n, sizeof(out) - n,
		    six ? "%s[%s]" : "%s%s", n == 0 ? "" : ",", ip);
	}
	return n == 0 ? NULL : hf_xstrdup(out);
}

/* May run from inside hf_resolve() (hosts file) or later. */
static void
resolved(int err, struct evutil_addrinfo *ai, void *arg)
{
	struct name *n = arg;
	char *addr = err == 0 ? print_addresses(ai) : NULL;

	if (ai != NULL)
		evutil_freeaddrinfo(ai);
	n->asking = false;
	if (n->r == NULL) {
		free(addr);
		name_free(n);
		return;
	}
	if (addr != NULL) {
		free(n->addr);
		n->addr = addr;
		n->good_us = hf_now_us();
		n->bad_us = 0;
	} else {
		n->bad_us = hf_now_us();
		n->why =
		    err == 0 ? "no usable address" : evutil_gai_strerror(err);
	}
	event_active(n->r->work, 0, 0);
}

static void
ask(struct name *n)
{
	struct evutil_addrinfo hints = { .ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = EVUTIL_AI_ADDRCONFIG };

	refresh(n->r);
	n->asking = true;
	(void)evdns_getaddrinfo(n->r->dns, n->host, NULL, &hints, resolved, n);
}

struct hf_resolve_wait *
hf_resolve(
    struct hf_resolver *r, const char *host, hf_resolved_fn fn, void *arg)
{
	struct hf_resolve_wait *w = hf_xcalloc(1, sizeof(*w));
	const char *addr;

	w->name = name_of(r, host);
	w->fn = fn;
	w->arg = arg;
	TAILQ_INSERT_TAIL(&w->name->waiting, w, entry);
	if (known(w->name, &addr))
		event_active(r->work, 0, 0);
	else if (!w->name->asking)
		ask(w->name);
	return w;
}

void
hf_resolve_cancel(struct hf_resolve_wait *w)
{
	if (w == NULL)
		return;
	TAILQ_REMOVE(&w->name->waiting, w, entry);
	free(w);
}

/* A callback may cancel other waits and start new ones, so start over after
 * each. */
static void
hand_out(evutil_socket_t fd, short what, void *arg)
{
	struct hf_resolver *r = arg;
	struct hf_resolve_wait *w;
	struct name *n;
	const char *addr;

	(void)fd;
	(void)what;
again:
	LIST_FOREACH (n, &r->names, entry) {
		w = TAILQ_FIRST(&n->waiting);
		if (w == NULL || n->asking)
			continue;
		if (!known(n, &addr)) {
			ask(n); /* the cache ran out meanwhile */
			continue;
		}
		TAILQ_REMOVE(&n->waiting, w, entry);
		w->fn(w->arg, addr, n->why);
		free(w);
		goto again;
	}
}
