/* The path rules of TensorFlow's filesystems: how a URI splits, and the default translation. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Offset of the path in `uri`: after `scheme://host`, or 0 where `uri` has no scheme. A scheme is
 * a letter and then one or more letters, digits or dots. `scheme_length` may be NULL. */
size_t mtf_uri_path_offset(const char* uri, size_t* scheme_length);

/* Lexical normal form of `path` in `out`, which has room for strlen(path) + 2 bytes: single
 * slashes, no `.`, `..` resolved (clamped at the root, kept in front of a relative path), no
 * trailing slash; "" becomes ".". Returns the length. */
size_t mtf_clean_path(const char* path, char* out);

#ifdef __cplusplus
}
#endif
