/*
 * Who changed what through the control socket: a line in the log.  Never a
 * secret; names that are not plain are masked.
 */
#include <config.h>

#include "base/log.h"
#include "base/verbs.h"
#include "workers/verbs_int.h"

static bool
is_change(const char *verb)
{
	static const struct {
		const char *verb;
		unsigned flags;
	} row[] = {
#define HF_VERB(verb, words, flags, help) { verb, flags },
#include "base/verbs.def"
#undef HF_VERB
	};

	for (size_t i = 0; i < hf_countof(row); i++)
		if (strcmp(row[i].verb, verb) == 0)
			return (row[i].flags & HF_VERB_CHANGE) != 0;
	return false;
}

/* What is not plain may be anything, and is masked. */
static void
plain_text(const char *z, char *out, size_t size)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "._-/:@+";
	size_t i;

	for (i = 0; z[i] != '\0' && i + 1 < size; i++)
		out[i] = strchr(plain, z[i]) != NULL ? z[i] : '?';
	out[i] = '\0';
}

void
hf_verb_audit(
    const char *verb, const json_t *args, const struct hf_reply *reply, int rc)
{
	static const char *const named[] = { "name", "tenant", "prefix" };
	const struct hf_peer *peer = hf_reply_peer(reply);
	const char *what = "";
	char text[160];

	if (!is_change(verb))
		return;
	for (size_t i = 0; i < hf_countof(named); i++) {
		const char *z =
		    json_string_value(json_object_get(args, named[i]));

		what = z != NULL ? z : what;
	}
	plain_text(what, text, sizeof(text));
	hf_log(HF_LOG_WARN,
	    "control: audit verb=%s what=\"%s\" uid=%lld pid=%lld result=%s",
	    verb, text, (long long)peer->uid, (long long)peer->pid,
	    rc < 0 ? hf_err_name(rc) : "ok");
}
