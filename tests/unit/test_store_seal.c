/*
 * Sealed rows cannot be moved, swapped or lost without being noticed, and the
 * damage of one session is that session's only.
 */
#include <config.h>

#include <sodium.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "store/auth.h"
#include "store/seal.h"
#include "tests/unit/store_fixture.h"

/* Two sessions of two turns each; then damage one with 'sql'. */
static void
damaged(struct fx *f, const char *sql, const char *want)
{
	fx_open(f);
	fx_say(f, 1, "s", "one", "1");
	fx_say(f, 1, "s", "two", "2");
	fx_say(f, 1, "other", "eins", "I");
	fx_say(f, 1, "other", "zwei", "II");
	if (sql != NULL)
		fx_sql(f, sql);
	assert_string_equal(fx_history(f, 1, "s"), want);
	/* The other one is served all the same. */
	assert_string_equal(fx_history(f, 1, "other"),
	    "user:eins|assistant:I|user:zwei|assistant:II");
	fx_say(f, 1, "other", "drei", "III");
	fx_close(f);
}

#define IN_S(table, what)                                              \
	"id = (SELECT min(x.id) FROM " table " x JOIN turn"            \
	" t ON t.id = x.turn JOIN session s ON s.id = t.session WHERE" \
	" s.name = 's' AND " what ")"

static void
undamaged_is_whole(void **state)
{
	struct fx f;

	(void)state;
	damaged(&f, NULL, "user:one|assistant:1|user:two|assistant:2");
}

static void
other_bytes(void **state)
{
	struct fx f;

	(void)state;
	damaged(&f,
	    "UPDATE item SET body_sealed ="
	    " zeroblob(length(body_sealed)) WHERE " IN_S("item", "t.seq = 2"),
	    "ECORRUPT");
	assert_non_null(strstr(f.e.text, "turn 2: item 0"));
}

static void
empty_body(void **state)
{
	struct fx f;

	(void)state;
	damaged(&f,
	    "UPDATE item SET body_sealed = x'' WHERE " IN_S(
		"item", "t.seq = 2"),
	    "ECORRUPT");
}

static void
missing_item(void **state)
{
	struct fx f;

	(void)state;
	damaged(&f,
	    "DELETE FROM item WHERE " IN_S("item", "t.seq = 1 AND x.idx = 0"),
	    "ECORRUPT");
	assert_non_null(strstr(f.e.text, "turn 1: item 0"));
	damaged(&f,
	    "DELETE FROM item WHERE " IN_S("item", "t.seq = 2 AND x.idx = 1"),
	    "ECORRUPT");
	assert_non_null(strstr(f.e.text, "turn 2: item 1"));
}

/* The count was "repaired" as well: the chain tells. */
static void
missing_item_and_count(void **state)
{
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_say(&f, 1, "s", "one", "1");
	fx_say(&f, 1, "s", "two", "2");
	fx_sql(&f, "DELETE FROM item WHERE idx = 1 AND turn = 1");
	fx_sql(&f, "UPDATE turn SET n_items = 1 WHERE id = 1");
	assert_string_equal(fx_history(&f, 1, "s"), "ECORRUPT");
	fx_close(&f);
}

static void
missing_turn(void **state)
{
	struct fx f;

	(void)state;
	damaged(&f,
	    "DELETE FROM turn WHERE seq = 1 AND session ="
	    " (SELECT id FROM session WHERE name = 's')",
	    "ECORRUPT");
	assert_non_null(strstr(f.e.text, "turn 2"));
}

/* A turn that follows itself, or a younger one, has no root. */
static void
parent_is_no_older(void **state)
{
	struct fx f;

	(void)state;
	damaged(&f,
	    "UPDATE turn SET parent = id WHERE seq = 1 AND session ="
	    " (SELECT id FROM session WHERE name = 's')",
	    "ECORRUPT");
	assert_non_null(strstr(f.e.text, "turn 1"));
	damaged(&f,
	    "UPDATE turn SET parent = id + 1 WHERE seq = 1 AND session ="
	    " (SELECT id FROM session WHERE name = 's')",
	    "ECORRUPT");
}

/* The parent was left out: the chain tells. */
static void
shortened_path(void **state)
{
	struct fx f;

	(void)state;
	damaged(&f,
	    "UPDATE turn SET parent = 0 WHERE seq = 2 AND session ="
	    " (SELECT id FROM session WHERE name = 's')",
	    "ECORRUPT");
	assert_non_null(strstr(f.e.text, "turn 2: item 0"));
	/* A path that leads into another session. */
	damaged(&f,
	    "UPDATE turn SET session = (SELECT id FROM session WHERE"
	    " name = 'other'), seq = 9 WHERE seq = 1 AND session ="
	    " (SELECT id FROM session WHERE name = 's')",
	    "ECORRUPT");
	assert_non_null(strstr(f.e.text, "not of this session"));
}

static void
moved_within_the_session(void **state)
{
	struct fx f;

	(void)state;
	/* Contents of turn 1 in turn 2, with digests and all. */
	damaged(&f,
	    "UPDATE item SET (digest, body_sealed) = (SELECT digest,"
	    " body_sealed FROM item WHERE " IN_S(
		"item", "t.seq = 1") ")"
				     " WHERE " IN_S("item", "t.seq = 2"),
	    "ECORRUPT");
	/* Only the sealed body. */
	damaged(&f,
	    "UPDATE item SET body_sealed = (SELECT body_sealed FROM"
	    " item WHERE " IN_S(
		"item", "t.seq = 1 AND x.idx = 1") ") WHERE " IN_S("item",
		"t.seq = 1 AND x.idx = 0"),
	    "ECORRUPT");
}

static void
moved_between_sessions(void **state)
{
	struct fx f;

	(void)state;
	damaged(&f,
	    "UPDATE item SET body_sealed = (SELECT i.body_sealed FROM"
	    " item i JOIN turn t ON t.id = i.turn JOIN session s ON s.id ="
	    " t.session WHERE s.name = 'other' AND t.seq = 1 AND i.idx = 0)"
	    " WHERE " IN_S("item", "t.seq = 1"),
	    "ECORRUPT");
}

static void
session_key_of_another(void **state)
{
	struct hf_head h;
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_say(&f, 1, "s", "one", "1");
	fx_say(&f, 1, "other", "eins", "I");
	fx_sql(&f,
	    "UPDATE session SET wrapped = (SELECT wrapped FROM session"
	    " WHERE name = 'other') WHERE name = 's'");
	assert_int_equal(
	    hf_store_head(f.st[1], "acme", HF_STR("s"), &h, &f.e), HF_ECORRUPT);
	assert_string_equal(
	    fx_history(&f, 1, "other"), "user:eins|assistant:I");
	fx_close(&f);
}

static void
session_of_another_tenant(void **state)
{
	struct hf_head h;
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_say(&f, 1, "s", "one", "1");
	fx_sql(&f, "INSERT INTO tenant (name, created_us) VALUES ('evil', 0)");
	fx_sql(&f,
	    "UPDATE session SET tenant = (SELECT id FROM tenant WHERE"
	    " name = 'evil')");
	assert_int_equal(
	    hf_store_head(f.st[1], "evil", HF_STR("s"), &h, &f.e), HF_ECORRUPT);
	fx_close(&f);
}

/* A key that was unwrapped before is found by all that it was unwrapped from,
 * and by nothing less. */
static void
keys_unwrapped_lately(void **state)
{
	enum { MANY = 600 }; /* more than are kept */
	static uint8_t wrapped[MANY][HF_WRAPPED_SIZE];
	static struct hf_session_key key[MANY];
	static struct hf_id id[MANY];
	const uint8_t master[HF_MASTER_SIZE] = { 1 };
	struct hf_seal_opened *o = hf_seal_opened_new();
	struct hf_seal_key k, plain;
	struct hf_seal s;
	struct hf_str w;

	(void)state;
	hf_seal_init(&s, master);
	s.key_id = 5;
	for (unsigned i = 0; i < MANY; i++) {
		hf_store_new_session_key(&key[i]);
		hf_id_make(&id[i], "ses_");
		hf_seal_wrap(&s, &key[i], 7, &id[i], wrapped[i]);
	}
	for (unsigned i = 0; i < 2 * MANY; i++) {
		unsigned n = i % MANY;

		w = (struct hf_str){ (char *)wrapped[n], HF_WRAPPED_SIZE };
		assert_int_equal(hf_seal_unwrap(&s, o, w, 5, 7, &id[n], &k), 0);
		assert_int_equal(
		    hf_seal_unwrap(&s, NULL, w, 5, 7, &id[n], &plain), 0);
		assert_memory_equal(k.digest.k, key[n].k, sizeof(key[n].k));
		assert_memory_equal(k.seal, plain.seal, sizeof(k.seal));
		assert_int_equal(k.tenant, 7);
		/* It is kept now. */
		assert_int_equal(
		    hf_seal_unwrap(&s, o, w, 5, 8, &id[n], &k), HF_ECORRUPT);
		assert_int_equal(
		    hf_seal_unwrap(&s, o, w, 6, 7, &id[n], &k), HF_ECORRUPT);
		assert_int_equal(
		    hf_seal_unwrap(&s, o, w, 5, 7, &id[(n + 1) % MANY], &k),
		    HF_ECORRUPT);
		w.size--;
		assert_int_equal(
		    hf_seal_unwrap(&s, o, w, 5, 7, &id[n], &k), HF_ECORRUPT);
	}
	w = (struct hf_str){ (char *)wrapped[0], HF_WRAPPED_SIZE };
	for (unsigned i = 0; i < HF_WRAPPED_SIZE; i++) {
		assert_int_equal(hf_seal_unwrap(&s, o, w, 5, 7, &id[0], &k), 0);
		wrapped[0][i] ^= 0x10;
		assert_int_equal(
		    hf_seal_unwrap(&s, o, w, 5, 7, &id[0], &k), HF_ECORRUPT);
		wrapped[0][i] ^= 0x10;
	}
	hf_seal_opened_free(o);
	hf_seal_opened_free(NULL);
	hf_seal_clear(&s);
}

static void
seal_binds_every_part_of_the_place(void **state)
{
	struct hf_seal_at at = { HF_SEAL_BODY, 3, 4 }, other;
	struct hf_seal_key k = { .tenant = 1, .session = 2 }, k2;
	const uint8_t master[HF_MASTER_SIZE] = { 1 };
	struct hf_arena a;
	struct hf_buf buf;
	struct hf_seal s;
	struct hf_str out;

	(void)state;
	hf_seal_init(&s, master);
	hf_store_new_session_key(&k.digest);
	hf_seal_derive(&k);
	hf_buf_init(&buf, HF_BUF_NOCAP);
	hf_arena_init(&a, 0);
	assert_int_equal(hf_seal_put(&s, &k, at, HF_STR("text"), &buf), 0);
	assert_int_equal(hf_seal_open(&k, at, hf_buf_str(&buf), &a, &out), 0);
	assert_true(hf_str_is(out, "text"));
	other = at;
	other.kind = HF_SEAL_HEARD;
	assert_int_equal(
	    hf_seal_open(&k, other, hf_buf_str(&buf), &a, &out), HF_ECORRUPT);
	other = at;
	other.seq++;
	assert_int_equal(
	    hf_seal_open(&k, other, hf_buf_str(&buf), &a, &out), HF_ECORRUPT);
	other = at;
	other.idx++;
	assert_int_equal(
	    hf_seal_open(&k, other, hf_buf_str(&buf), &a, &out), HF_ECORRUPT);
	k2 = k;
	k2.tenant++;
	assert_int_equal(
	    hf_seal_open(&k2, at, hf_buf_str(&buf), &a, &out), HF_ECORRUPT);
	k2 = k;
	k2.session++;
	assert_int_equal(
	    hf_seal_open(&k2, at, hf_buf_str(&buf), &a, &out), HF_ECORRUPT);
	k2 = k;
	k2.digest.k[0] ^= 1;
	hf_seal_derive(&k2);
	assert_int_equal(
	    hf_seal_open(&k2, at, hf_buf_str(&buf), &a, &out), HF_ECORRUPT);
	/* The same text never seals to the same bytes. */
	{
		struct hf_buf again;

		hf_buf_init(&again, HF_BUF_NOCAP);
		assert_int_equal(
		    hf_seal_put(&s, &k, at, HF_STR("text"), &again), 0);
		assert_memory_not_equal(again.data, buf.data, again.size);
		hf_buf_free(&again);
	}
	hf_arena_free(&a);
	hf_buf_free(&buf);
	hf_seal_clear(&s);
}

static void
digests_are_of_one_session(void **state)
{
	uint8_t a[HF_DIGEST_SIZE], b[HF_DIGEST_SIZE], zero[HF_DIGEST_SIZE];
	struct hf_session_key one, two;

	(void)state;
	hf_store_new_session_key(&one);
	hf_store_new_session_key(&two);
	hf_store_digest(&one, HF_STR("yes"), a);
	hf_store_digest(&two, HF_STR("yes"), b);
	assert_memory_not_equal(a, b, sizeof(a));
	hf_store_digest(&one, HF_STR("yes"), b);
	assert_memory_equal(a, b, sizeof(a));
	/* A chain of one item is not its digest, and order counts. */
	memset(zero, 0, sizeof(zero));
	hf_store_chain(&one, zero, a, b);
	assert_memory_not_equal(a, b, sizeof(a));
	hf_store_digest(&one, HF_STR_NONE, b);
	assert_memory_not_equal(b, zero, sizeof(b));
}

static void
secrets_have_a_form(void **state)
{
	struct hf_id id;

	(void)state;
	assert_int_equal(
	    hf_auth_parse(HF_STR("hfk_"
				 "0123456789abcdefghjkmnpqrs_"
				 "0123456789abcdefghjkmnpqrstvwxyz"),
		&id),
	    0);
	assert_string_equal(id.s, "key_0123456789abcdefghjkmnpqrs");
	assert_int_equal(
	    hf_auth_parse(HF_STR("hfk_"
				 "0123456789abcdefghjkmnpqrs_short"),
		&id),
	    HF_EPERM);
	assert_int_equal(
	    hf_auth_parse(HF_STR("sk-"
				 "0123456789abcdefghjkmnpqrs_"
				 "0123456789abcdefghjkmnpqrstvwxyzz"),
		&id),
	    HF_EPERM);
	assert_int_equal(
	    hf_auth_parse(HF_STR("hfk_"
				 "0123456789ABCDEFGHJKMNPQRS_"
				 "0123456789abcdefghjkmnpqrstvwxyz"),
		&id),
	    HF_EPERM);
	assert_int_equal(hf_auth_parse(HF_STR_NONE, &id), HF_EPERM);
}

static int
start(void **state)
{
	(void)state;
	return sodium_init() < 0 ? -1 : 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(undamaged_is_whole),
		cmocka_unit_test(other_bytes),
		cmocka_unit_test(empty_body),
		cmocka_unit_test(missing_item),
		cmocka_unit_test(missing_item_and_count),
		cmocka_unit_test(missing_turn),
		cmocka_unit_test(parent_is_no_older),
		cmocka_unit_test(shortened_path),
		cmocka_unit_test(moved_within_the_session),
		cmocka_unit_test(moved_between_sessions),
		cmocka_unit_test(session_key_of_another),
		cmocka_unit_test(session_of_another_tenant),
		cmocka_unit_test(keys_unwrapped_lately),
		cmocka_unit_test(seal_binds_every_part_of_the_place),
		cmocka_unit_test(digests_are_of_one_session),
		cmocka_unit_test(secrets_have_a_form),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
