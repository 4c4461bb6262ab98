/* Functions in the place of those that plugins import and the host does not offer. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* How many functions can be told apart. */
enum { MTF_ABSENT_FUNCTIONS_MOST = 1024 };

/* The function that replaces `name` for `library`, which are copied; the same for the same two. It
 * accepts any arguments and returns 0, after it has reported that it was called: the call into the
 * plugin that is under way fails (KN-100), or the log has a line. Once there are
 * MTF_ABSENT_FUNCTIONS_MOST, further ones share a function that cannot say which it is.
 * [any thread] */
void* mtf_make_absent_function(const char* name, const char* library);

#ifdef __cplusplus
}
#endif
