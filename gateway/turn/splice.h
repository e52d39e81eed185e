/*
 * Splicing: the text of an answer that another target continues.  What the
 * client has (the delivered text P) ends at a word's end; the continuation Q
 * may go on exactly there (after a prefill), repeat the end of P, or begin the
 * whole answer again.  Bytes in, bytes out, in any split; pure.
 *
 * After a prefill nothing is trimmed and nothing is put between.  Otherwise,
 * once the beginning of Q is known (HF_SPLICE_HEAD bytes, or its end):
 *   - a Q that begins with the whole of P (white space folded) is P said
 *     again: that much is cut;
 *   - else the longest end of P that Q begins with (white space folded) is cut
 *     if it is at least 12 bytes and 3 distinct words; it ends and begins at
 *     word boundaries on both sides;
 *   - a leading ellipsis of Q is cut; then one space is put between P and Q
 *     unless one is there, or Q begins with closing punctuation, or P ends
 *     with opening punctuation or a line's end.
 * Words are never glued and never lost; UTF-8 sequences are never cut.
 */
#ifndef HF_GATEWAY_TURN_SPLICE_H
#define HF_GATEWAY_TURN_SPLICE_H

#include "base/buf.h"
#include "base/hf.h"

enum hf_splice_mode {
	HF_SPLICE_PREFILL,	/* Q goes on from P's last byte */
	HF_SPLICE_INSTRUCTION,	/* asked to go on; may repeat the end of P */
	HF_SPLICE_HIDDEN	/* not told of P: Q is a whole answer */
};

#define HF_SPLICE_HEAD	((size_t)400)	/* bytes of Q that are looked at */

struct hf_splice {
	enum hf_splice_mode mode;
	struct hf_str	 before;	/* P; borrowed, must not move */
	struct hf_buf	 head;		/* of Q, until it is decided */
	bool		 decided;
};

/* 'before' must outlive the splice. */
void	hf_splice_init(struct hf_splice *s, enum hf_splice_mode mode,
	    struct hf_str before);
void	hf_splice_free(struct hf_splice *s);
/* More of Q; what may go on to the client is appended to 'out'. */
void	hf_splice_feed(struct hf_splice *s, struct hf_str text,
	    struct hf_buf *out);
/* Q is over: the rest. */
void	hf_splice_end(struct hf_splice *s, struct hf_buf *out);

/*
 * The release gate before the client: text passes up to a boundary, the rest
 * is held until more comes, so that what was delivered always ends where a
 * continuation may begin.  WORD holds an unfinished last word (at most 32
 * bytes, then it passes; text without spaces between words, such as Chinese,
 * passes at every character); CLAUSE holds up to the last . ! ? ; : , or line
 * end that white space follows (at most 400 bytes, then as WORD).
 */
enum hf_release_mode { HF_RELEASE_TOKEN, HF_RELEASE_WORD, HF_RELEASE_CLAUSE };

/* How many bytes of 'text' (all that is held, newest last) may pass. */
size_t	hf_release_pass(enum hf_release_mode mode, struct hf_str text);

#endif
