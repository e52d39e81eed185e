/*
 * libcurl, loaded by those that call providers instead of being linked: with
 * the thirty libraries that it brings along it would be half of the memory of
 * the master and the keeper, which have no use for it.  Its functions go by
 * their own names, once it is loaded.  Private to the room.  Loop thread.
 */
#ifndef HF_GATEWAY_UPSTREAM_LIBCURL_H
#define HF_GATEWAY_UPSTREAM_LIBCURL_H

#include <curl/curl.h>

#include "base/err.h"
#include "base/hf.h"

struct hf_libcurl {
#define HF_CURL(name) __typeof__(curl_##name) *name;
#include "gateway/upstream/libcurl.def"
#undef HF_CURL
};
extern struct hf_libcurl hf_libcurl;

/* Once for the process, which keeps it.  HF_ESYS: it is missing, or too old. */
int hf_libcurl_load(struct hf_error *e) HF_MUST_CHECK;

/* Those whose last argument may be of any type are functions of ours, so that
 * the header's own checks of that type are made. */
#define curl_easy_cleanup hf_libcurl.easy_cleanup
#define curl_easy_init hf_libcurl.easy_init
#define curl_easy_pause hf_libcurl.easy_pause
#define curl_easy_strerror hf_libcurl.easy_strerror
#define curl_free hf_libcurl.free
#define curl_global_cleanup hf_libcurl.global_cleanup
#define curl_global_init hf_libcurl.global_init
#define curl_multi_add_handle hf_libcurl.multi_add_handle
#define curl_multi_cleanup hf_libcurl.multi_cleanup
#define curl_multi_info_read hf_libcurl.multi_info_read
#define curl_multi_init hf_libcurl.multi_init
#define curl_multi_remove_handle hf_libcurl.multi_remove_handle
#define curl_multi_socket_action hf_libcurl.multi_socket_action
#define curl_multi_strerror hf_libcurl.multi_strerror
#define curl_slist_append hf_libcurl.slist_append
#define curl_slist_free_all hf_libcurl.slist_free_all
#define curl_url hf_libcurl.url
#define curl_url_cleanup hf_libcurl.url_cleanup
#define curl_url_get hf_libcurl.url_get
#define curl_url_set hf_libcurl.url_set

#endif
