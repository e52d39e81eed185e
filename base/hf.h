/*
 * Attributes and tiny macros used everywhere; nothing else lives here.
 */
#ifndef HF_BASE_HF_H
#define HF_BASE_HF_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <string.h>

/* Large locals that are written before they are read: the compiler's own
 * zeroing (-ftrivial-auto-var-init) would cost more than their use. */
#if __has_attribute(uninitialized)
#define HF_UNINIT __attribute__((uninitialized))
#else
#define HF_UNINIT
#endif
#define HF_MUST_CHECK __attribute__((warn_unused_result))
#define HF_NORETURN __attribute__((noreturn))
#define HF_UNUSED __attribute__((unused))
#define HF_PRINTF(f, a) __attribute__((format(printf, f, a)))

#define hf_countof(a) (sizeof(a) / sizeof((a)[0]))
#define hf_container_of(ptr, type, member) \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* Borrowed bytes: whoever hands one out says how long they stay valid. */
struct hf_str {
	const char *p;
	size_t size;
};

#define HF_STR(lit) ((struct hf_str){ (lit), sizeof(lit) - 1 })
#define HF_STR_NONE ((struct hf_str){ NULL, 0 })
#define HF_STR_ARG(s) (int)(s).size, (s).p

static inline struct hf_str
hf_str(const char *z)
{
	return (struct hf_str){ z, z == NULL ? 0 : strlen(z) };
}

static inline bool
hf_str_eq(struct hf_str a, struct hf_str b)
{
	return a.size == b.size &&
	    (a.size == 0 || memcmp(a.p, b.p, a.size) == 0);
}

static inline bool
hf_str_is(struct hf_str a, const char *z)
{
	return hf_str_eq(a, hf_str(z));
}

#endif
