/*
 * Control protocol framing.
 */
#include <config.h>

#include "base/frame.h"

ssize_t
hf_frame_decode(
    struct hf_str in, size_t max, struct hf_str *payload, struct hf_error *e)
{
	const unsigned char *p = (const unsigned char *)in.p;
	size_t size;

	if (in.size < HF_FRAME_HEADER)
		return 0;
	size = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 |
	    (size_t)p[3];
	if (size == 0 || size > max)
		return hf_fail(e, HF_EPROTO,
		    "frame of %zu bytes; 1 to %zu "
		    "are allowed",
		    size, max);
	if (in.size - HF_FRAME_HEADER < size)
		return 0;
	*payload = (struct hf_str){ in.p + HF_FRAME_HEADER, size };
	return (ssize_t)(HF_FRAME_HEADER + size);
}

void
hf_frame_encode(struct hf_buf *out, struct hf_str payload)
{
	unsigned char h[HF_FRAME_HEADER];

	h[0] = (unsigned char)(payload.size >> 24 & 0xff);
	h[1] = (unsigned char)(payload.size >> 16 & 0xff);
	h[2] = (unsigned char)(payload.size >> 8 & 0xff);
	h[3] = (unsigned char)(payload.size & 0xff);
	hf_buf_put(out, h, sizeof(h));
	hf_buf_putstr(out, payload);
}
