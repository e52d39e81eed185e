/*
 * How far a stream got.
 */
#include <config.h>

#include "gateway/surface/progress.h"

#include "base/check.h"

struct mark {
	size_t written;
	struct hf_delivered to;
};

#define LOOK_AT (64 * sizeof(struct mark))

void
hf_progress_init(struct hf_progress *p)
{
	*p = (struct hf_progress){ .most = LOOK_AT };
	hf_buf_init(&p->marks, HF_BUF_NOCAP);
}

void
hf_progress_free(struct hf_progress *p)
{
	hf_buf_free(&p->marks);
}

void
hf_progress_add(struct hf_progress *p, size_t size, size_t backlog,
    const struct hf_delivered *to)
{
	struct mark m = { .to = *to };

	p->written += size;
	m.written = p->written;
	hf_buf_put(&p->marks, &m, sizeof(m));
	HF_CHECK(hf_buf_ok(&p->marks));
	if (p->marks.size < p->most)
		return;
	/* As many again may gather before it is worth the next look. */
	(void)hf_progress_given(p, backlog);
	p->most = 2 * p->marks.size + LOOK_AT;
}

struct hf_delivered
hf_progress_given(struct hf_progress *p, size_t left)
{
	size_t taken = left < p->written ? p->written - left : 0, at = 0;
	struct mark m;

	for (; at < p->marks.size; at += sizeof(m)) {
		memcpy(&m, p->marks.data + at, sizeof(m));
		if (m.written > taken)
			break;
		p->given = m.to;
	}
	hf_buf_consume(&p->marks, at);
	return p->given;
}
