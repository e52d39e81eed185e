/*
 * A raw TCP peer inside a test: bytes out, bytes in, on the test's own event
 * loop, so that no thread and no sleep is needed.  Every wait has a deadline
 * after which the test fails.
 */
#ifndef HF_TESTS_PEER_H
#define HF_TESTS_PEER_H

#include <event2/event.h>

#include "base/buf.h"

struct peer {
	struct event_base *base;
	int fd;
	struct event *ev;
	struct hf_buf in;
	bool eof;  /* the other side closed */
	int error; /* errno, e.g. ECONNRESET */
	bool reading;
};

/* A listening socket on 127.0.0.1 with a port from the kernel. */
int peer_listen(int backlog, int *port);
struct peer *peer_dial(struct event_base *base, int port);
struct peer *peer_accept(struct event_base *base, int listen_fd);
struct peer *peer_adopt(struct event_base *base, int fd);
void peer_read(struct peer *p, bool on);
/* Everything, however long it takes the other side to read. */
void peer_send(struct peer *p, const char *bytes, size_t size);
void peer_puts(struct peer *p, const char *z);
void peer_half_close(struct peer *p);
void peer_close(struct peer *p); /* frees it too */
void peer_reset(struct peer *p); /* RST, and frees it */

/* Run the loop until 'cond' holds; fails the test after ten seconds. */
typedef bool (*peer_cond)(void *arg);
void peer_until(
    struct event_base *base, peer_cond cond, void *arg, const char *what);
void peer_until_eof(struct peer *p);
void peer_until_text(struct peer *p, const char *text);
void peer_until_size(struct peer *p, size_t size);
bool peer_has(const struct peer *p, const char *text);
/* Wait for one whole HTTP response, take it out of 'in' and return its
 * status; its body (chunks joined) in 'body' when not NULL. */
int peer_response(struct peer *p, bool head, struct hf_buf *body);
void peer_drop(struct peer *p); /* forget what came in */

#endif
