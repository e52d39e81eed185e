/*
 * Many calls at once through curl's multi interface.  Finished easy handles
 * are kept for later calls; connections are reused.
 *
 * curl by itself repeats a request when a reused connection turns out to be
 * dead.  Where retries are counted it must not: the body is then given through
 * a callback that cannot be rewound, so that curl fails instead.
 */
#include <config.h>

#include "bench/client.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"

#define PAUSE_MS 50 /* before the first retry; doubled */
#define MAX_PAUSE_MS 1000

struct call {
	struct hf_client *client;
	CURL *easy;
	struct curl_slist *headers;
	char *body;
	size_t size, sent; /* of the body */
	int64_t began_us, first_us;
	int64_t text_us, silence_us; /* last text; longest pause */
	int64_t due_us;		     /* of the next try, while it waits */
	struct hf_answer_reader reader;
	struct hf_call_result result;
	hf_called_fn fn;
	void *arg;
	size_t leave_at;
	unsigned leave_ms;
	bool plain;
	struct call *next; /* spare or waiting */
};

struct hf_client {
	struct hf_client_conf conf;
	CURLM *multi;
	char *url;
	struct call *spare;
	struct call *waiting; /* to be tried again */
	unsigned active;      /* with those that wait */
	void (*tick)(void *arg);
	void *tick_arg;
	int64_t tick_every_us, tick_us;
	int watch_fd; /* -1: none */
	void (*watch)(void *arg);
	void *watch_arg;
};

struct hf_client *
hf_client_new(const struct hf_client_conf *conf)
{
	struct hf_client *c = hf_xcalloc(1, sizeof(*c));

	HF_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
	c->conf = *conf;
	c->watch_fd = -1;
	c->multi = curl_multi_init();
	HF_CHECK(c->multi != NULL);
	HF_CHECK(asprintf(&c->url, "%s/chat/completions", conf->url) > 0);
	return c;
}

void
hf_client_free(struct hf_client *c)
{
	struct call *k;

	if (c == NULL)
		return;
	while ((k = c->spare) != NULL) {
		c->spare = k->next;
		curl_easy_cleanup(k->easy);
		free(k);
	}
	curl_multi_cleanup(c->multi);
	curl_global_cleanup();
	free(c->url);
	free(c);
}

static size_t
on_data(char *p, size_t size, size_t n, void *arg)
{
	struct call *k = arg;
	size_t before = k->reader.text.size;
	int64_t now = hf_now_us();

	if (hf_reader_data(&k->reader, (struct hf_str){ p, size * n }) &&
	    k->first_us == 0)
		k->first_us = now;
	if (k->reader.text.size > before) {
		if (k->text_us != 0 && now - k->text_us > k->silence_us)
			k->silence_us = now - k->text_us;
		k->text_us = now;
	}
	if (k->leave_at > 0 && k->reader.text.size >= k->leave_at) {
		k->result.left = true;
		return 0; /* ends the transfer */
	}
	return size * n;
}

static void
add_header(struct call *k, const char *name, const char *value)
{
	char line[512];

	snprintf(line, sizeof(line), "%s: %s", name, value);
	k->headers = curl_slist_append(k->headers, line);
	HF_CHECK(k->headers != NULL);
}

static size_t
on_read(char *to, size_t size, size_t n, void *arg)
{
	struct call *k = arg;
	size_t left = k->size - k->sent;

	n = size * n < left ? size * n : left;
	memcpy(to, k->body + k->sent, n);
	k->sent += n;
	return n;
}

/* The first try, or one more. */
static void
send_call(struct call *k)
{
	k->sent = 0;
	k->text_us = k->silence_us = 0;
	hf_reader_init(&k->reader, k->client->conf.stream && !k->plain);
	HF_CHECK(curl_multi_add_handle(k->client->multi, k->easy) == CURLM_OK);
}

static void
set_options(struct call *k)
{
	struct hf_client *c = k->client;
	CURL *easy = k->easy;

	curl_easy_setopt(easy, CURLOPT_URL, c->url);
	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)k->size);
	if (c->conf.retries > 0) {
		curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
		curl_easy_setopt(easy, CURLOPT_READDATA, k);
	} else {
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, k->body);
	}
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, k->headers);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, k);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, k);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
	    k->leave_ms > 0 ? (long)k->leave_ms : c->conf.timeout_ms);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
	if (c->conf.local)
		curl_easy_setopt(easy, CURLOPT_PROXY, "");
}

/* One that was used before, or a new one. */
static struct call *
take_call(struct hf_client *c)
{
	struct call *k = c->spare;
	CURL *easy;

	if (k != NULL) {
		c->spare = k->next;
		easy = k->easy;
		curl_easy_reset(easy);
	} else {
		k = hf_xcalloc(1, sizeof(*k));
		easy = curl_easy_init();
		HF_CHECK(easy != NULL);
	}
	*k = (struct call){ .client = c, .easy = easy };
	return k;
}

static void
add_headers(struct call *k, const struct hf_call_request *rq)
{
	const char *api_key = k->client->conf.api_key;
	char value[480];

	add_header(k, "Content-Type", "application/json");
	if (rq->session != NULL)
		add_header(k, "X-Holdfast-Session", rq->session);
	if (rq->key != NULL)
		add_header(k, "Idempotency-Key", rq->key);
	if (rq->full)
		add_header(k, "X-Holdfast-History", "full");
	if (rq->retry)
		add_header(k, "X-Stainless-Retry-Count", "1");
	for (unsigned i = 0; i < rq->n_header; i++) {
		k->headers = curl_slist_append(k->headers, rq->header[i]);
		HF_CHECK(k->headers != NULL);
	}
	if (api_key != NULL) {
		snprintf(value, sizeof(value), "Bearer %s", api_key);
		add_header(k, "Authorization", value);
	}
	/* No "Expect: 100-continue": it would cost a round trip. */
	add_header(k, "Expect", "");
}

static void
wait_until(struct call *k, int64_t due_us)
{
	k->due_us = due_us;
	k->next = k->client->waiting;
	k->client->waiting = k;
}

void
hf_client_call(struct hf_client *c, const struct hf_call_request *rq)
{
	struct call *k = take_call(c);

	k->fn = rq->fn;
	k->arg = rq->arg;
	k->leave_at = rq->leave_at;
	k->leave_ms = rq->leave_ms;
	k->plain = rq->plain;
	k->body = hf_xstrndup(rq->body.p, rq->body.size);
	k->size = rq->body.size;
	add_headers(k, rq);
	set_options(k);
	k->began_us = hf_now_us() + rq->after_ms * INT64_C(1000);
	c->active++;
	if (rq->after_ms == 0)
		send_call(k);
	else
		wait_until(k, k->began_us);
}

void
hf_client_tick(struct hf_client *c, unsigned ms, void (*fn)(void *), void *arg)
{
	c->tick = fn;
	c->tick_arg = arg;
	c->tick_every_us = ms * INT64_C(1000);
}

void
hf_client_watch(struct hf_client *c, int fd, void (*fn)(void *), void *arg)
{
	c->watch_fd = fd;
	c->watch = fn;
	c->watch_arg = arg;
}

/* The connection, not the request: sending it again may help. */
static bool
broke(CURLcode code)
{
	switch ((int)code) {
	case CURLE_COULDNT_CONNECT:
	case CURLE_SEND_ERROR:
	case CURLE_SEND_FAIL_REWIND: /* a reused connection was dead */
	case CURLE_RECV_ERROR:
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
		return true;
	default:
		return false;
	}
}

/* Puts a call whose connection broke in the queue; false: no more tries. */
static bool
try_again(struct call *k, int64_t now)
{
	struct hf_client *c = k->client;
	int64_t pause, most;

	k->result.broken++;
	if (k->result.retries == c->conf.retries)
		return false;
	most = c->conf.pause_ms > 0 ? c->conf.pause_ms : MAX_PAUSE_MS;
	pause = k->result.retries > 10 ? most :
					 (int64_t)PAUSE_MS << k->result.retries;
	k->result.retries++;
	hf_reader_free(&k->reader);
	wait_until(k, now + (pause > most ? most : pause) * INT64_C(1000));
	return true;
}

static void
finish(struct call *k, CURLcode code)
{
	struct hf_client *c = k->client;
	int64_t now = hf_now_us();
	curl_off_t retry_after = 0;
	bool told;
	long status = 0;

	curl_easy_getinfo(k->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(k->easy, CURLINFO_RETRY_AFTER, &retry_after);
	curl_multi_remove_handle(c->multi, k->easy);
	if (code != CURLE_OK && k->reader.stream && k->reader.done)
		code = CURLE_OK; /* clients read up to [DONE] */
	if (code == CURLE_OPERATION_TIMEDOUT && k->leave_ms > 0)
		k->result.left = true;
	if (broke(code) && try_again(k, now))
		return;
	k->result.status = (int)status;
	k->result.retry_after_s = retry_after > 3600 ? 3600 : (int)retry_after;
	k->result.total_ms = (double)(now - k->began_us) / 1000;
	k->result.first_ms =
	    k->first_us == 0 ? -1 : (double)(k->first_us - k->began_us) / 1000;
	if (code != CURLE_OK) {
		snprintf(k->result.error, sizeof(k->result.error), "%s",
		    curl_easy_strerror(code));
	} else {
		told = k->reader.failed || status != 200 || !k->reader.stream;
		k->result.answer = hf_reader_end(&k->reader, (int)status);
		k->result.silent = !told && k->result.answer == NULL;
		memcpy(
		    k->result.error, k->reader.error, sizeof(k->result.error));
	}
	k->result.text = k->reader.text.size > 0 ? k->reader.text.data : "";
	k->result.calls = k->reader.calls;
	k->result.model = k->reader.model;
	k->result.marks = k->reader.marks;
	k->result.silence_ms = (double)k->silence_us / 1000;
	c->active--;
	k->fn(k->arg, &k->result);
	free(k->result.answer);
	free(k->body);
	curl_slist_free_all(k->headers);
	hf_reader_free(&k->reader);
	k->next = c->spare;
	c->spare = k;
}

/* Sends what is due; milliseconds until something is. */
static int
run_timers(struct hf_client *c)
{
	int64_t now = hf_now_us(), next = now + 1000000;
	struct call **at = &c->waiting, *k;

	if (c->tick != NULL && c->tick_us <= now) {
		if (c->tick_us != 0)
			c->tick(c->tick_arg);
		c->tick_us = now + c->tick_every_us;
	}
	if (c->tick != NULL && c->tick_us < next)
		next = c->tick_us;
	while ((k = *at) != NULL) {
		if (k->due_us <= now) {
			*at = k->next;
			send_call(k);
			next = now;
			continue;
		}
		if (k->due_us < next)
			next = k->due_us;
		at = &k->next;
	}
	return (int)((next - now + 999) / 1000);
}

static CURLMcode
await(struct hf_client *c, int ms)
{
	struct curl_waitfd w = { .fd = c->watch_fd,
		.events = CURL_WAIT_POLLIN };
	CURLMcode rc =
	    curl_multi_poll(c->multi, &w, c->watch_fd >= 0, ms, NULL);

	if (rc == CURLM_OK && w.revents != 0)
		c->watch(c->watch_arg);
	return rc;
}

int
hf_client_run(struct hf_client *c, struct hf_error *e)
{
	while (c->active > 0) {
		int running, left, ms = run_timers(c);
		CURLMcode rc = curl_multi_perform(c->multi, &running);
		CURLMsg *msg;

		while ((msg = curl_multi_info_read(c->multi, &left)) != NULL) {
			struct call *k;

			if (msg->msg != CURLMSG_DONE)
				continue;
			curl_easy_getinfo(
			    msg->easy_handle, CURLINFO_PRIVATE, (char **)&k);
			finish(k, msg->data.result);
		}
		if (rc == CURLM_OK && c->active > 0)
			rc = await(c, ms);
		if (rc != CURLM_OK)
			return hf_fail(
			    e, HF_ESYS, "curl: %s", curl_multi_strerror(rc));
	}
	return 0;
}

static size_t
ignore(char *p, size_t size, size_t n, void *arg)
{
	(void)p;
	(void)arg;
	return size * n;
}

int
hf_client_get(const char *url)
{
	CURL *easy = curl_easy_init();
	long status = 0;

	HF_CHECK(easy != NULL);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 2000L);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
	if (curl_easy_perform(easy) == CURLE_OK)
		curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(easy);
	return (int)status;
}
