/*
 * Splicing: the text of an answer that another target continues.  What the
 * client has (the delivered text P) ends at a word's end; the continuation Q
 * may go on exactly there (after a prefill), repeat the end of P, or begin the
 * whole answer again.  Bytes in, bytes out; any split of Q gives the same
 * text; pure.
 *
 * After a prefill, or without a P, nothing is put between and nothing is
 * trimmed, but for the white space that P ends with: it may not have reached
 * the model, and is cut where Q says it again.  Otherwise Q is held until it is
 * clear which of these it is, mostly a word or two, at most HF_SPLICE_HEAD
 * bytes:
 *   - white space and an ellipsis before Q's first word are not compared; the
 *     ellipsis is cut in any case;
 *   - a Q that begins with the whole of P (white space folded) is P said
 *     again: that much is cut.  Q is held as long as it says what P says,
 *     however long that is.  In the instruction form P must have the size
 *     that the next rule asks for, as the answer may be "ha ha ha" and P only
 *     "ha": a caller that gives up on a short P uses the hidden form;
 *   - else the longest end of P that Q begins with (white space folded) is cut
 *     if it is at least 12 bytes (with the white space that ends P as one) and
 *     3 distinct words (case aside); it begins and ends at word boundaries on
 *     both sides.  Each character of a script without spaces is a word.  A
 *     mark between letters, as in "3.14" or "isn't", is no boundary;
 *   - then one space is put between P and Q unless one is there, or Q begins
 *     with closing punctuation, or P ends with opening punctuation or a
 *     line's end, or either side of the seam is of a script without spaces.
 *     Where something was cut, the white space is what Q has after it.  No
 *     second blank is put after one that P ends with, but indentation after a
 *     line's end stays.
 * Words are never glued and never lost; UTF-8 sequences are never cut.
 */
#ifndef HF_GATEWAY_TURN_SPLICE_H
#define HF_GATEWAY_TURN_SPLICE_H

#include "base/buf.h"
#include "base/hf.h"

enum hf_splice_mode {
	HF_SPLICE_PREFILL,     /* Q goes on from P's last byte */
	HF_SPLICE_INSTRUCTION, /* asked to go on; may repeat the end of P */
	HF_SPLICE_HIDDEN       /* not told of P: Q is a whole answer */
};

#define HF_SPLICE_HEAD ((size_t)400) /* bytes of Q that are looked at */

struct hf_splice {
	enum hf_splice_mode mode;
	struct hf_str before; /* P; borrowed, must not move */
	struct hf_buf head;   /* of Q, until it is decided */
	bool decided;
	/* The rest is private. */
	bool again;	   /* Q may be P said again: */
	bool in_space;	   /* ... last matched white space */
	size_t before_at;  /* ... P and Q are the same up to */
	size_t head_at;	   /* ... here; 0 of Q: not begun */
	size_t before_end; /* of P without white space there */
	size_t start;	   /* ends of P from here may match */
	size_t stop;	   /* ... up to here; offsets in tail */
	size_t tail_size;
	char tail[HF_SPLICE_HEAD]; /* end of P, folded */
};

/* 'before' must outlive the splice. */
void hf_splice_init(
    struct hf_splice *s, enum hf_splice_mode mode, struct hf_str before);
void hf_splice_free(struct hf_splice *s);
/* More of Q; what may go on to the client is appended to 'out', which is
 * marked failed when there is no memory to hold Q. */
void hf_splice_feed(
    struct hf_splice *s, struct hf_str text, struct hf_buf *out);
/* Q is over: the rest. */
void hf_splice_end(struct hf_splice *s, struct hf_buf *out);

/*
 * The release gate before the client: text passes up to a boundary, the rest
 * is held until more comes, so that what was delivered always ends where a
 * continuation may begin.  TOKEN holds unfinished UTF-8 sequences only, and
 * no mode lets one pass.  WORD passes up to the last white space, and holds
 * the word after it, which may be a long link (at most HF_RELEASE_WORD_MAX
 * bytes, then all passes); text without spaces between words, such as Chinese,
 * passes at every character.  CLAUSE passes
 * up to the last line end, or the last . ! ? ; : , (and closing quotes or
 * brackets) that white space follows, with that white space, or their
 * relatives of scripts without spaces; it holds at most 400 bytes, then what
 * WORD would let pass does.
 */
#define HF_RELEASE_WORD_MAX ((size_t)256)

enum hf_release_mode { HF_RELEASE_TOKEN, HF_RELEASE_WORD, HF_RELEASE_CLAUSE };

/* How many bytes of 'text' (all that is held, newest last) may pass. */
size_t hf_release_pass(enum hf_release_mode mode, struct hf_str text);

#endif
