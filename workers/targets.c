/*
 * The file of target rows.
 */
#include <config.h>

#include "workers/targets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/target_save.h"

#define EVERY_MS 500
#define MOST ((size_t)8 * 1024 * 1024)

static char *
path_of(const char *database, const char *ending)
{
	struct hf_buf b;

	hf_buf_init(&b, 8192);
	hf_buf_printf(&b, "%s%s", database, ending);
	return hf_buf_ok(&b) ? hf_buf_take(&b, NULL) : NULL;
}

/* --- reading ---------------------------------------------------------------
 */

static bool
read_file(const char *path, struct hf_buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char piece[65536];
	ssize_t n = -1;

	if (fd < 0)
		return false;
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		hf_buf_put(out, piece, (size_t)n);
	close(fd);
	return n == 0 && hf_buf_ok(out);
}

static void
take_up(struct hf_targets_file *f)
{
	struct hf_buf text;
	int n;

	hf_buf_init(&text, MOST);
	if (read_file(f->path, &text)) {
		n = hf_targets_load(
		    f->shm, hf_buf_str(&text), hf_now_us(), hf_wall_us());
		if (n < 0)
			hf_log(HF_LOG_WARN,
			    "keeper: what was known of targets is not whole "
			    "or too old, and is forgotten file=%s",
			    f->path);
		else
			hf_log(HF_LOG_INFO, "keeper: targets known n=%d", n);
	} else if (errno != ENOENT) {
		hf_log(HF_LOG_WARN, "keeper: cannot be read file=%s error=%s",
		    f->path, strerror(errno));
	}
	hf_buf_free(&text);
}

/* --- writing ---------------------------------------------------------------
 */

static bool
write_all(int fd, struct hf_str s)
{
	while (s.size > 0) {
		ssize_t n = write(fd, s.p, s.size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		s.p += n;
		s.size -= (size_t)n;
	}
	return true;
}

static bool
write_file(const struct hf_targets_file *f, struct hf_str text)
{
	int fd = open(f->new_path,
	    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool ok;

	if (fd < 0)
		return false;
	ok = write_all(fd, text);
	if (close(fd) < 0 || !ok)
		return false;
	return rename(f->new_path, f->path) == 0;
}

static void
save(struct hf_targets_file *f)
{
	static struct hf_log_limit limit;
	uint64_t digest = hf_targets_digest(f->shm);
	struct hf_buf text;

	if (digest == f->saved)
		return;
	hf_buf_init(&text, MOST);
	hf_targets_save(f->shm, hf_now_us(), hf_wall_us(), &text);
	if (!hf_buf_ok(&text) || !write_file(f, hf_buf_str(&text)))
		hf_log_limited(&limit, 60000, HF_LOG_WARN,
		    "keeper: what is known of targets cannot be written, and "
		    "will be forgotten at the end file=%s error=%s",
		    f->path, strerror(errno));
	else
		f->saved = digest;
	hf_buf_free(&text);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	save(arg);
}

int
hf_targets_open(struct hf_targets_file *f, struct hf_shm *shm,
    const char *database, bool first, struct event_base *base,
    struct hf_error *e)
{
	const struct timeval every = { 0, EVERY_MS * 1000 };

	*f = (struct hf_targets_file){ .shm = shm };
	f->path = path_of(database, ".targets");
	f->new_path = path_of(database, ".targets.new");
	f->timer = event_new(base, -1, EV_PERSIST, on_timer, f);
	if (f->path == NULL || f->new_path == NULL || f->timer == NULL ||
	    event_add(f->timer, &every) < 0)
		return hf_fail(e, HF_ENOMEM, "targets: out of memory");
	if (first)
		take_up(f);
	f->saved = hf_targets_digest(shm);
	return 0;
}

void
hf_targets_close(struct hf_targets_file *f)
{
	if (f->timer != NULL) {
		save(f);
		event_free(f->timer);
	}
	free(f->path);
	free(f->new_path);
	*f = (struct hf_targets_file){ 0 };
}
