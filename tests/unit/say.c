#include <config.h>

#include "tests/unit/say.h"

#include "gateway/json/scan.h"
#include "gateway/turn/chars.h"

static void
put_event(const struct say *s, const char *name, const char *head,
    const char *text, const char *tail, struct hf_buf *out)
{
	if (s->dialect == HF_DIALECT_ANTHROPIC)
		hf_buf_printf(out, "event: %s%s", name, s->eol);
	hf_buf_printf(
	    out, "data: %s%s%s%s%s", head, text, tail, s->eol, s->eol);
}

static void
openai_begin(const struct say *s, struct hf_buf *out)
{
	put_event(s, "",
	    "{\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\","
	    "\"content\":\"\"},\"finish_reason\":null}]}",
	    "", "", out);
}

static void
openai_end(const struct say *s, struct hf_buf *out)
{
	put_event(s, "",
	    "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":"
	    "\"stop\"}]}",
	    "", "", out);
	put_event(s, "",
	    "{\"choices\":[],\"usage\":{\"prompt_tokens\":3,"
	    "\"completion_tokens\":4}}",
	    "", "", out);
	put_event(s, "", "[DONE]", "", "", out);
}

static void
anthropic_begin(const struct say *s, struct hf_buf *out)
{
	put_event(s, "message_start",
	    "{\"type\":\"message_start\",\"message\":{\"type\":\"message\","
	    "\"content\":[],\"usage\":{\"input_tokens\":3}}}",
	    "", "", out);
	put_event(s, "content_block_start",
	    "{\"type\":\"content_block_start\",\"index\":0,"
	    "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}",
	    "", "", out);
	put_event(s, "ping", "{\"type\": \"ping\"}", "", "", out);
}

static void
anthropic_end(const struct say *s, struct hf_buf *out)
{
	put_event(s, "content_block_stop",
	    "{\"type\":\"content_block_stop\",\"index\":0}", "", "", out);
	put_event(s, "message_delta",
	    "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
	    "\"end_turn\"},\"usage\":{\"output_tokens\":4}}",
	    "", "", out);
	put_event(
	    s, "message_stop", "{\"type\":\"message_stop\"}", "", "", out);
}

static void
put_piece(const struct say *s, const char *string, struct hf_buf *out)
{
	if (s->dialect == HF_DIALECT_ANTHROPIC)
		put_event(s, "content_block_delta",
		    "{\"type\":\"content_block_delta\",\"index\":0,"
		    "\"delta\":{\"type\":\"text_delta\",\"text\":",
		    string, "}}", out);
	else
		put_event(s, "",
		    "{\"choices\":[{\"index\":0,\"delta\":{\"content\":",
		    string, "},\"finish_reason\":null}]}", out);
}

/* As a JSON string in ASCII. */
static void
put_escaped(struct hf_str text, struct hf_buf *out)
{
	struct hf_char c;
	uint32_t v;

	hf_buf_putc(out, '"');
	for (size_t at = 0; at < text.size; at += c.size) {
		c = hf_char_at(text, at);
		v = c.cp - 0x10000;
		if (c.cp >= 0x10000)
			hf_buf_printf(out, "\\u%04x\\u%04x", 0xd800 + (v >> 10),
			    0xdc00 + (v & 0x3ff));
		else if (c.cp >= 0x80 || c.cp < 0x20 || c.cp == '"' ||
		    c.cp == '\\')
			hf_buf_printf(out, "\\u%04x", c.cp);
		else
			hf_buf_putc(out, (char)c.cp);
	}
	hf_buf_putc(out, '"');
}

/* 1 to 15 bytes, whole characters, the same for the same place. */
static size_t
piece_size(struct hf_str left)
{
	size_t n = 1 + (left.size * 2654435761u >> 7) % 15;

	if (n >= left.size)
		return left.size;
	while (n < left.size && ((unsigned char)left.p[n] & 0xc0) == 0x80)
		n++;
	return n;
}

void
say_stream(const struct say *s, struct hf_str text, struct hf_buf *out)
{
	bool anthropic = s->dialect == HF_DIALECT_ANTHROPIC;
	struct hf_str piece;
	struct hf_buf string;

	hf_buf_init(&string, HF_BUF_NOCAP);
	(anthropic ? anthropic_begin : openai_begin)(s, out);
	while (text.size > 0) {
		piece = (struct hf_str){ text.p, piece_size(text) };
		hf_buf_reset(&string);
		if (s->escaped)
			put_escaped(piece, &string);
		else
			hf_json_put_string(&string, piece);
		put_piece(s, string.data, out);
		text.p += piece.size;
		text.size -= piece.size;
	}
	(anthropic ? anthropic_end : openai_end)(s, out);
	hf_buf_free(&string);
}
