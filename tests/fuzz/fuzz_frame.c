/*
 * Control frames, and their text on a terminal: the same frames whether the
 * bytes come at once or in pieces, encoding them again gives the bytes back,
 * and no escaped text holds a control character.
 */
#include <config.h>

#include "base/frame.h"
#include "ctl/escape.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "frame";

static void
check_escaped(struct hf_str s)
{
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_ctl_escape(&b, s);
	FUZZ_CHECK(hf_buf_ok(&b));
	for (size_t i = 0; i < b.size; i++) {
		unsigned char c = (unsigned char)b.data[i];

		FUZZ_CHECK(c >= 0x20 && c != 0x7f);
		/* C1 controls are c2 80 to c2 9f. */
		FUZZ_CHECK(c != 0xc2 ||
		    (i + 1 < b.size && (unsigned char)b.data[i + 1] >= 0xa0));
	}
	FUZZ_CHECK(hf_ctl_width(hf_buf_str(&b)) <= b.size);
	hf_buf_free(&b);
}

/* Take all frames off 'in'; the encoded frames and how it ended go to
 * 'out'. */
static ssize_t
drain(struct hf_buf *in, struct hf_buf *out)
{
	struct hf_str payload;
	ssize_t n;

	while ((n = hf_frame_decode(hf_buf_str(in), HF_FRAME_MAX_REQUEST,
		    &payload, NULL)) > 0) {
		FUZZ_CHECK(payload.size >= 1 &&
		    (size_t)n == payload.size + HF_FRAME_HEADER);
		check_escaped(payload);
		hf_frame_encode(out, payload);
		hf_buf_consume(in, (size_t)n);
	}
	return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t size)
{
	struct hf_buf whole, pieces, a, b;
	uint32_t seed = 1 + (uint32_t)size;
	size_t at = 0, n;
	ssize_t end_whole, end_pieces = 0;

	hf_buf_init(&whole, HF_BUF_NOCAP);
	hf_buf_init(&pieces, HF_BUF_NOCAP);
	hf_buf_init(&a, HF_BUF_NOCAP);
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_put(&whole, p, size);
	end_whole = drain(&whole, &a);
	while (at < size && end_pieces == 0) {
		char *piece =
		    fuzz_piece(&seed, (const char *)p + at, size - at, &n);

		hf_buf_put(&pieces, piece, n);
		free(piece);
		at += n;
		end_pieces = drain(&pieces, &b);
	}
	FUZZ_CHECK(end_whole == end_pieces);
	FUZZ_CHECK(hf_str_eq(hf_buf_str(&a), hf_buf_str(&b)));
	FUZZ_CHECK(
	    a.size <= size && (a.size == 0 || memcmp(a.data, p, a.size) == 0));
	check_escaped((struct hf_str){ (const char *)p, size });
	hf_buf_free(&whole);
	hf_buf_free(&pieces);
	hf_buf_free(&a);
	hf_buf_free(&b);
	return 0;
}
