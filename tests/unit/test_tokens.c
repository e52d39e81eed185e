/*
 * The estimate of tokens beside what two public vocabularies make of texts of
 * several kinds (counts of cl100k_base and o200k_base by gpt-tokenizer 3),
 * and what must hold for any bytes.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "gateway/turn/tokens.h"

/* Texts as they stand in JSON. */
static const struct {
	const char *name;
	int cl100k, o200k;
	const char *text;
} samples[] = {
	{ "english", 157, 155,
	    "Good morning, this is Harriet Colvin. I am calling about "
	    "the delivery that was supposed to arrive last Thursday. "
	    "The driver left a note saying that nobody was at home, althoug"
	    "h my neighbour had been sitting in the garden the whole "
	    "afternoon and would gladly have taken the parcel. I tried "
	    "the number on the note twice, but it only plays music and "
	    "then hangs up. What I would like is a new appointment, prefera"
	    "bly on a weekday after five o'clock, and if that is not "
	    "possible then please tell me where I can pick the parcel "
	    "up myself. It contains medicine, so I really don't want "
	    "it to lie in a warm van for another week. My customer number "
	    "should be on the first page of your letter; if you need "
	    "anything else from me, just ask." },
	{ "german", 199, 152,
	    "Guten Tag, hier spricht Friederike Achternbusch. Ich rufe "
	    "wegen der Heizungswartung an, die eigentlich schon vergangene "
	    "Woche hätte stattfinden sollen. Ihr Monteur hatte mir telefoni"
	    "sch zugesichert, dass er zwischen acht und zehn Uhr vorbeikomm"
	    "t, erschienen ist allerdings niemand, und auch eine Rückmeldun"
	    "g habe ich bis heute nicht bekommen. Inzwischen ist das "
	    "Warmwasser vollständig ausgefallen, was mit zwei kleinen "
	    "Kindern natürlich äußerst unangenehm ist. Könnten Sie bitte "
	    "überprüfen, ob der Auftrag in Ihrem System überhaupt hinterleg"
	    "t wurde? Für einen Ersatztermin wäre ich spätestens bis "
	    "Freitagnachmittag dankbar; notfalls übernehme ich auch die "
	    "Zusatzkosten für den Bereitschaftsdienst, sofern diese vorher "
	    "schriftlich bestätigt werden." },
	{ "code", 328, 330,
	    "static int\\nread_lines(const char *path, struct line_list "
	    "*out, struct error *e)\\n{\\n\\tFILE *f = fopen(path, "
	    "\\\"re\\\");\\n\\t"
	    "char *line = NULL;\\n\\tsize_t cap = 0;\\n\\tssize_t n;\\n\\tint "
	    "rc = 0;\\n\\n\\tif (f == NULL)\\n\\t\\treturn fail_errno(e, "
	    "\\\"%s: "
	    "cannot be opened\\\", path);\\n\\twhile (rc == 0 && (n = getline(&"
	    "line, &cap, f)) >= 0) {\\n\\t\\tif (n > 0 && line[n - 1] == "
	    "'\\\\n')\\n\\t\\t\\tline[--n] = '\\\\0';\\n\\t\\tif (n == 0 || "
	    "line[0] "
	    "== '#')\\n\\t\\t\\tcontinue; /* nothing, or a comment "
	    "*/\\n\\t\\trc "
	    "= list_append(out, line, (size_t)n, e);\\n\\t}\\n\\tif (rc == "
	    "0 && ferror(f))\\n\\t\\trc = fail_errno(e, \\\"%s: line %zu\\\", "
	    "path, out->n + 1);\\n\\tfree(line);\\n\\tfclose(f);\\n\\treturn "
	    "rc;\\n}\\n\\ndef summarise(rows, key=lambda r: r[\\\"name\\\"], "
	    "limit=20):\\n    \\\"\\\"\\\"Group rows by key and return the "
	    "largest"
	    " groups first.\\\"\\\"\\\"\\n    groups = "
	    "collections.defaultdict(lis"
	    "t)\\n    for row in rows:\\n        groups[key(row)].append(row)"
	    "\\n    ranked = sorted(groups.items(), key=lambda kv: (-len(kv["
	    "1]), kv[0]))\\n    return [(name, len(members), sum(m.get(\\\"byt"
	    "es\\\", 0) for m in members) / 1024.0)\\n            for name, "
	    "members in ranked[:limit]]" },
	{ "json", 239, 242,
	    "{\\\"order\\\":{\\\"id\\\":\\\"A-20417-77\\\",\\\"created\\\":"
	    "\\\"2026-03-14T09:"
	    "26:53Z\\\",\\\"customer\\\":{\\\"name\\\":\\\"Ines "
	    "Valverde\\\",\\\"phone\\\":\\\""
	    "+34 600 112 "
	    "233\\\",\\\"tier\\\":\\\"silver\\\"},\\\"lines\\\":[{\\\"sku\\\":"
	    "\\\"L"
	    "MP-0042\\\",\\\"title\\\":\\\"Desk lamp, brushed "
	    "steel\\\",\\\"quantity\\\":"
	    "2,\\\"unit_price\\\":39.9,\\\"tax_rate\\\":0.21},{\\\"sku\\\":"
	    "\\\"CBL-1177\\\""
	    ",\\\"title\\\":\\\"USB-C cable 2 "
	    "m\\\",\\\"quantity\\\":5,\\\"unit_price\\\":7"
	    ".25,\\\"tax_rate\\\":0.21},{\\\"sku\\\":\\\"CHR-0330\\\","
	    "\\\"title\\\":\\\"Swive"
	    "l "
	    "chair\\\",\\\"quantity\\\":1,\\\"unit_price\\\":189.0,\\\"tax_"
	    "rate\\\":0.2"
	    "1,\\\"backordered\\\":true}],\\\"shipping\\\":{\\\"method\\\":"
	    "\\\"courier\\\","
	    "\\\"address\\\":{\\\"street\\\":\\\"Calle del Olmo "
	    "18\\\",\\\"zip\\\":\\\"28012\\\""
	    ",\\\"city\\\":\\\"Madrid\\\",\\\"country\\\":\\\"ES\\\"},"
	    "\\\"window\\\":{\\\"from\\\":"
	    "\\\"17:00\\\",\\\"to\\\":\\\"20:00\\\"}},\\\"totals\\\":{"
	    "\\\"net\\\":305.05,\\\"tax\\\""
	    ":64.06,\\\"gross\\\":369.11},\\\"flags\\\":[\\\"gift\\\",\\\"no_"
	    "signature\\\"]"
	    ",\\\"notes\\\":null}}" },
	{ "chinese", 266, 178,
	    "您好，我姓陈，想咨询一下上个月的电费账单。这个月的金额比平时高"
	    "出将近一倍，可是我们家最近两个星期都在外地旅行，基本上没有用电"
	    "。我怀疑是电表读数出了问题，或者账单里包含了别人的用量。请您帮"
	    "我查一下最近三个月的读数记录，如果可以的话，安排一位工程师上门"
	    "检查电表。我星期三下午和星期五上午都在家，其他时间需要提前一天"
	    "通知。另外，在问题解决之前，能不能先暂停自动扣款？我担心银行会"
	    "直接把这笔钱扣掉。我的客户编号在您寄来的信上，如果还需要身份证"
	    "明或者其他文件，我可以用电子邮件发给您。谢谢您的帮助，希望能尽"
	    "快得到答复。" },
	{ "japanese", 278, 184,
	    "お世話になっております。先週の土曜日に予約した会議室の件でお電"
	    "話しました。当初は十名の予定でしたが、参加者が十五名に増えたた"
	    "め、もう少し広い部屋に変更していただけないでしょうか。プロジェ"
	    "クターとホワイトボードは引き続き必要です。開始時間は午前九時半"
	    "のままで構いませんが、準備のために三十分前から入室できると助か"
	    "ります。また、昼食の弁当を十五人分お願いしたいのですが、二人は"
	    "卵のアレルギーがありますので、別のメニューをご用意いただけます"
	    "か。変更にともなう追加料金が発生する場合は、事前にメールでお知"
	    "らせください。よろしくお願いいたします。" },
	{ "korean", 254, 145,
	    "안녕하세요, 지난주에 주문한 세탁기 배송 문제로 전화드렸습니다."
	    " 원래 어제 오후에 도착하기로 되어 있었는데 아직 아무 연락도 "
	    "받지 못했습니다. 배송 조회 화면에는 이미 배달이 완료되었다고 "
	    "나오지만 경비실에도 없고 이웃집에도 확인해 보았지만 받은 "
	    "사람이 없었습니다. 혹시 다른 주소로 잘못 배달된 것은 아닌지 "
	    "확인해 주실 수 있을까요? 저는 이번 주 금요일까지 집에 있을 "
	    "예정이고 그 다음 주에는 출장을 가야 합니다. 가능하면 금요일 "
	    "오전에 다시 배송해 주시면 좋겠습니다. 기존 세탁기를 수거하는 "
	    "비용도 미리 알려 주세요." },
	{ "russian", 230, 125,
	    "Здравствуйте, меня зовут Алевтина Сергеевна. Я звоню по "
	    "поводу записи к врачу, которую вы перенесли на следующий "
	    "вторник. К сожалению, в этот день я не смогу приехать, потому "
	    "что сопровождаю дочь на экзамен. Можно ли выбрать другое "
	    "время, желательно утром в среду или в четверг после обеда? "
	    "Кроме того, мне нужно повторное направление на анализ крови, "
	    "так как срок действия старого уже закончился. Если врач "
	    "в отпуске, я готова прийти к его заместителю, но прошу заранее"
	    " предупредить, какие документы взять с собой." },
	{ "log", 371, 367,
	    "2026-11-30T03:14:15.926Z INFO turn: done session=ses_4k2m9q "
	    "turn=turn_8x1b7c seq=12 route=support target=main/model-a "
	    "attempts=2 status=200 first_token_ms=417 total_ms=2310 bytes=1"
	    "843\\n2026-11-30T03:14:16.004Z WARN upstream: reset host=10.20."
	    "30.41 port=8443 after_bytes=0 errno=104\\n2026-11-30T03:14:16.1"
	    "20Z INFO http: 192.168.7.23 \\\"POST /v1/chat/completions "
	    "HTTP/1.1\\\" 200 5120 0.231s ua=\\\"client/2.17.0\\\"\\n| month "
	    "   | calls  | answered | share  |\\n|----------|--------|------"
	    "----|--------|\\n| January  | 18,204 | 17,990   | 98.8 % "
	    "|\\n| February | 16,771 | 16,502   | 98.4 % |\\n| March   "
	    " | 19,350 | 19,101   | 98.7 % |\\nhttps://example.org/a/b/c?id="
	    "83921&token=Zm9vYmFyYmF6&lang=en-GB#section-4\\n0x7ffde4a31b90 "
	    "3fa85f64-5717-4562-b3fc-2c963f66afa6 sha256:9f86d081884c7d659a"
	    "2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" },
	{ "markdown", 153, 148,
	    "# Returning an item\\n\\nYou can return **most** items within "
	    "30 days. Here's how it works:\\n\\n1. Open *My orders* and "
	    "choose the item.\\n2. Print the label (or show the QR code "
	    "at the counter).\\n3. Hand the parcel in; we'll e-mail you "
	    "once it's arrived.\\n\\n> Note: opened software, gift cards "
	    "& earphones can't be returned.\\n\\n- Refunds take 3–5 working "
	    "days.\\n- If it's been longer, write to `returns@example.com` "
	    "with your order number.\\n\\n| Item     | Window  | Fee   "
	    "|\\n|----------|---------|-------|\\n| Clothing | 60 days "
	    "| none  |\\n| Phones   | 14 days | €4.99 |" },
	{ "chat", 79, 69,
	    "lol ok 😂😂 so u free 2nite?? 🎉 gonna b at Mikes place "
	    "~8ish, bring ur own drinks 🍻 ... also did u c what @jenny_k "
	    "posted?! omg i cant even 🙈🙈🙈 anyway lmk asap, my phones "
	    "at 4% 🔋 ttyl xx ❤️" },
};

/* What the header says of its error. */
static void
test_error(void **state)
{
	(void)state;
	for (size_t i = 0; i < hf_countof(samples); i++) {
		int64_t n = hf_tokens(hf_str(samples[i].text));
		int most = samples[i].cl100k > samples[i].o200k ?
		    samples[i].cl100k :
		    samples[i].o200k;

		if (n * 100 < most * 95 || n * 100 > most * 120)
			fail_msg("%s: %lld for %d", samples[i].name,
			    (long long)n, most);
	}
}

static int64_t
tokens(const char *text)
{
	return hf_tokens(hf_str(text));
}

static void
test_escapes(void **state)
{
	static const char *const same[][2] = {
		{ "a\\u0062c", "abc" },
		{ "one\\ntwo", "one\ntwo" },
		{ "say \\\"it\\\"", "say \"it\"" },
		{ "\\u4e2d\\u6587", "\xe4\xb8\xad\xe6\x96\x87" },
		{ "\\ud83d\\ude00!", "\xf0\x9f\x98\x80!" },
		{ "f\\u00fcr", "f\xc3\xbcr" },
	};

	(void)state;
	for (size_t i = 0; i < hf_countof(same); i++)
		assert_int_equal(tokens(same[i][0]), tokens(same[i][1]));
}

static void
test_small(void **state)
{
	(void)state;
	assert_int_equal(hf_tokens(HF_STR_NONE), 0);
	assert_int_equal(tokens(""), 0);
	assert_int_equal(tokens("hello"), 1);
	assert_int_equal(tokens("hello there you"), 3);
	assert_int_equal(tokens("123456789"), 3);
	assert_int_equal(tokens("1234567890"), 4);
	/* A thousand blanks are not a thousand tokens. */
	assert_true(tokens("                                        x") <= 3);
}

/* Any bytes: never negative, never more than three a byte, and not fewer when
 * there is more of the same. */
static void
test_any_bytes(void **state)
{
	char text[600];

	(void)state;
	srandom(7);
	for (unsigned round = 0; round < 20000; round++) {
		size_t size = (size_t)random() % sizeof(text);
		int64_t n;

		for (size_t i = 0; i < size; i++)
			text[i] = (char)(random() % (round % 2 ? 256 : 128));
		n = hf_tokens((struct hf_str){ text, size });
		assert_in_range(n, 0, 3 * size + 1);
		assert_true(
		    hf_tokens((struct hf_str){ text, size / 2 }) <= n + 40);
	}
}

/* As many times the text as many times the tokens. */
static void
test_linear(void **state)
{
	const char *text = samples[0].text;
	size_t size = strlen(text);
	char *many = malloc(100 * size);
	int64_t one = tokens(text), n;

	(void)state;
	assert_non_null(many);
	for (unsigned i = 0; i < 100; i++)
		memcpy(many + i * size, text, size);
	n = hf_tokens((struct hf_str){ many, 100 * size });
	assert_in_range(n, one * 97, one * 101);
	free(many);
}

static void
test_item(void **state)
{
	struct hf_item item = { .kind = HF_ITEM_MESSAGE,
		.role = HF_ROLE_USER,
		.body = HF_STR("{\"content\":\"hello there you\"}") };

	(void)state;
	assert_in_range(hf_tokens_item(&item), 3 + 3, 3 + 8);
	item.heard = HF_STR("{\"content\":\"hello\"}");
	item.has_heard = true;
	assert_in_range(hf_tokens_item(&item), 1 + 3, 1 + 8);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_error),
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_linear),
		cmocka_unit_test(test_item),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
