/*
 * Requests of both dialects from any history and any parameters: what the
 * strict rules of the providers ask for holds, or the build says no.
 *
 * Input: {"p":PARAMS,"i":[{"k":KIND,"r":ROLE,"t":TURN,"b":BODY},...],
 *	"w":WAY of prefill, "f":1 to prefill, "n":INSTRUCTION}
 */
#include <config.h>

#include "gateway/provider/history.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "build";

#define ITEMS 64

static bool
is_id(struct hf_json id, size_t max)
{
	size_t i;

	if (id.type != HF_JSON_STRING || id.raw.size < 3 ||
	    id.raw.size - 2 > max)
		return false;
	for (i = 1; i < id.raw.size - 1; i++)
		if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
			   "XYZ0123456789_-",
			id.raw.p[i]) == NULL)
			return false;
	return true;
}

/* Calls waiting for their results, in order. */
struct open {
	struct hf_str id[ITEMS];
	unsigned n, next;
};

static void
add_open(struct open *o, struct hf_json id, size_t max)
{
	unsigned i;

	FUZZ_CHECK(is_id(id, max));
	for (i = 0; i < o->n; i++)
		FUZZ_CHECK(!hf_str_eq(o->id[i], id.raw));
	o->id[o->n++] = id.raw;
}

/* --- openai --------------------------------------------------------------- */

static void
check_openai_message(struct hf_json m, struct open *o)
{
	struct hf_json role = hf_json_get(m, "role");
	struct hf_json content = hf_json_get(m, "content"), c;
	struct hf_json calls = hf_json_get(m, "tool_calls");
	size_t pos = 0;

	if (hf_json_string_is(role, "tool")) {
		FUZZ_CHECK(o->next < o->n &&
		    hf_str_eq(
			o->id[o->next++], hf_json_get(m, "tool_call_id").raw));
		FUZZ_CHECK(content.type != HF_JSON_NULL);
	} else {
		FUZZ_CHECK(o->next == o->n);
	}
	FUZZ_CHECK(content.type == HF_JSON_STRING ||
	    content.type == HF_JSON_ARRAY ||
	    (content.type == HF_JSON_NULL && calls.type == HF_JSON_ARRAY));
	FUZZ_CHECK(
	    calls.type == HF_JSON_NONE || hf_json_string_is(role, "assistant"));
	while (hf_json_next_element(calls, &pos, &c)) {
		add_open(o, hf_json_get(c, "id"), 40);
		FUZZ_CHECK(
		    hf_json_path(c, "function", "arguments", NULL).raw.size >
		    2);
	}
}

/* The last message is the one to go on with, and only it says so. */
static void
check_openai_prefill(
    const struct hf_payload_input *in, struct hf_json v, struct hf_json last)
{
	int way = in->prefill ? in->target->call.prefill : HF_PREFILL_NONE;

	FUZZ_CHECK(!in->prefill ||
	    hf_json_string_is(hf_json_get(last, "role"), "assistant"));
	FUZZ_CHECK((hf_json_get(last, "prefix").type == HF_JSON_TRUE) ==
	    (way == HF_PREFILL_MISTRAL || way == HF_PREFILL_DEEPSEEK));
	FUZZ_CHECK((hf_json_get(last, "partial").type == HF_JSON_TRUE) ==
	    (way == HF_PREFILL_PARTIAL));
	FUZZ_CHECK((hf_json_get(v, "continue_final_message").type ==
		       HF_JSON_TRUE) == (way == HF_PREFILL_VLLM));
	FUZZ_CHECK((hf_json_get(v, "add_generation_prompt").type ==
		       HF_JSON_FALSE) == (way == HF_PREFILL_VLLM));
}

/* The instruction is the last thing that is said. */
static void
check_instruction(
    const struct hf_payload_input *in, struct hf_json last, struct hf_json text)
{
	struct hf_buf b;

	if (in->instruction.size == 0)
		return;
	FUZZ_CHECK(hf_json_string_is(hf_json_get(last, "role"), "user"));
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_json_decode(text, &b);
	FUZZ_CHECK(hf_str_eq(hf_buf_str(&b), in->instruction));
	hf_buf_free(&b);
}

static void
check_openai(const struct hf_payload_input *in, struct hf_json v)
{
	struct hf_json messages = hf_json_get(v, "messages");
	struct hf_json last = { HF_JSON_NONE, HF_STR(""), NULL }, m;
	struct open o = { .n = 0 };
	size_t pos = 0;

	FUZZ_CHECK(messages.type == HF_JSON_ARRAY);
	while (hf_json_next_element(messages, &pos, &m)) {
		check_openai_message(m, &o);
		last = m;
	}
	FUZZ_CHECK(o.next == o.n);
	check_openai_prefill(in, v, last);
	check_instruction(in, last, hf_json_get(last, "content"));
}

/* --- anthropic ------------------------------------------------------------ */

static void
check_block(struct hf_json b, bool user, unsigned *place, struct open *o)
{
	struct hf_json type = hf_json_get(b, "type");

	if (hf_json_string_is(type, "text")) {
		FUZZ_CHECK(!hf_text_blank(hf_json_get(b, "text")));
		FUZZ_CHECK(!user || o->next == o->n);
		*place = 1;
	} else if (hf_json_string_is(type, "tool_use")) {
		FUZZ_CHECK(!user);
		FUZZ_CHECK(hf_json_get(b, "input").type == HF_JSON_OBJECT);
		add_open(o, hf_json_get(b, "id"), 64);
	} else {
		FUZZ_CHECK(hf_json_string_is(type, "tool_result"));
		FUZZ_CHECK(user && *place == 0 && o->next < o->n);
		FUZZ_CHECK(hf_str_eq(
		    o->id[o->next++], hf_json_get(b, "tool_use_id").raw));
	}
}

/* The text to go on with may not end in white space. */
static void
check_stripped(struct hf_json text)
{
	struct hf_buf want;

	hf_buf_init(&want, HF_BUF_NOCAP);
	hf_text_put_stripped(&want, text);
	FUZZ_CHECK(hf_str_eq(hf_buf_str(&want), text.raw));
	FUZZ_CHECK(text.raw.size > 2 && text.raw.p[text.raw.size - 2] != ' ');
	hf_buf_free(&want);
}

/* 'm' is the last message, 'text' that of its last block. */
static void
check_anthropic_end(
    const struct hf_payload_input *in, struct hf_json m, struct hf_json text)
{
	struct hf_json raw = { HF_JSON_STRING, HF_STR_NONE, NULL };
	struct hf_buf b;

	FUZZ_CHECK(hf_json_string_is(
	    hf_json_get(m, "role"), in->prefill ? "assistant" : "user"));
	if (in->prefill)
		check_stripped(text);
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_json_put_string(&b, in->instruction);
	raw.raw = hf_buf_str(&b);
	if (!hf_text_blank(raw))
		check_instruction(in, m, text);
	hf_buf_free(&b);
}

static void
check_anthropic(const struct hf_payload_input *in, struct hf_json v)
{
	struct hf_json messages = hf_json_get(v, "messages");
	struct hf_json last = { HF_JSON_NONE, HF_STR(""), NULL };
	struct hf_json text = last, m, b;
	struct open o = { .n = 0 };
	size_t pos = 0, at;
	bool user = false;
	unsigned place;
	int64_t n;

	while (hf_json_next_element(messages, &pos, &m)) {
		last = m;
		user = !user;
		FUZZ_CHECK(hf_json_string_is(
		    hf_json_get(m, "role"), user ? "user" : "assistant"));
		FUZZ_CHECK(user || o.next == o.n);
		at = place = 0;
		while (
		    hf_json_next_element(hf_json_get(m, "content"), &at, &b)) {
			check_block(b, user, &place, &o);
			text = hf_json_get(b, "text");
		}
		FUZZ_CHECK(at > 0);
		FUZZ_CHECK(!user || o.next == o.n);
	}
	check_anthropic_end(in, last, text);
	FUZZ_CHECK(hf_json_int(hf_json_get(v, "max_tokens"), &n) && n > 0);
}

/* --- input ---------------------------------------------------------------- */

static int64_t
number(struct hf_json v, const char *key, int64_t lo, int64_t hi)
{
	int64_t n;

	if (!hf_json_int(hf_json_get(v, key), &n) || n < lo || n > hi)
		return lo;
	return n;
}

static unsigned
read_items(struct hf_json list, struct hf_item *item)
{
	struct hf_json v, body;
	size_t pos = 0;
	unsigned n = 0;

	while (n < ITEMS && hf_json_next_element(list, &pos, &v)) {
		body = hf_json_get(v, "b");
		item[n] = (struct hf_item){
			.kind = (enum hf_item_kind)number(v, "k", 1, 3),
			.role = (enum hf_role)number(v, "r", 1, 4),
			.turn_row = number(v, "t", 0, 9),
			.body = body.type == HF_JSON_OBJECT ? body.raw :
							      HF_STR("{}"),
		};
		if (item[n].kind == HF_ITEM_TOOL_CALL)
			item[n].role = HF_ROLE_ASSISTANT;
		else if (item[n].kind == HF_ITEM_TOOL_RESULT)
			item[n].role = HF_ROLE_TOOL;
		n++;
	}
	return n;
}

static void
build(enum hf_conf_dialect d, struct hf_payload_input *in,
    void (*check)(const struct hf_payload_input *in, struct hf_json v))
{
	struct hf_http_request rq;
	struct hf_error e = { 0 };
	struct hf_json v;

	hf_http_request_init(&rq);
	if (hf_dialect(d)->build(in, &rq, &e) == 0) {
		FUZZ_CHECK(!in->prefill ||
		    (in->instruction.size == 0 &&
			hf_prefill_refusal(in->target, in->params) == NULL));
		FUZZ_CHECK(
		    hf_json_check(hf_buf_str(&rq.body), &v, NULL, &e) == 0 ||
		    e.code == HF_ELIMIT);
		if (v.type == HF_JSON_OBJECT)
			check(in, v);
	} else {
		FUZZ_CHECK(e.code == HF_EINVAL && e.text[0] != '\0');
	}
	hf_http_request_free(&rq);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t size)
{
	struct hf_conf_provider provider = { 0 };
	static char model[] = "m";
	struct hf_conf_target target = { .model = model,
		.provider = &provider };
	struct hf_item item[ITEMS];
	struct hf_payload_input in = { .item = item, .target = &target };
	unsigned repairs = 0;
	struct hf_buf words;
	struct hf_json v;

	if (hf_json_check((struct hf_str){ (const char *)p, size }, &v,
		&repairs, NULL) != 0)
		return 0;
	in.params = hf_json_get(v, "p");
	in.n_item = read_items(hf_json_get(v, "i"), item);
	in.stream = size % 2 == 0;
	target.call.prefill =
	    (int)number(v, "w", HF_PREFILL_NONE, HF_PREFILL_PARTIAL);
	in.prefill = number(v, "f", 0, 1) == 1;
	hf_buf_init(&words, HF_BUF_NOCAP);
	hf_json_decode(hf_json_get(v, "n"), &words);
	in.instruction = hf_buf_str(&words);
	provider.dialect = HF_DIALECT_OPENAI;
	build(HF_DIALECT_OPENAI, &in, check_openai);
	provider.dialect = HF_DIALECT_ANTHROPIC;
	build(HF_DIALECT_ANTHROPIC, &in, check_anthropic);
	hf_buf_free(&words);
	return 0;
}
