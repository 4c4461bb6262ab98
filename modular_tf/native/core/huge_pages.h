/* Pages, huge ones where there are any, behind large memory that is about to be filled. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Asks for huge pages behind memory that nobody has written to, which then is several times as fast to
 * write for the first time. Pages that are only partly within it stay as they are, and so does all
 * of it where the kernel has no huge pages. */
void mtf_prefer_huge_pages(const char* memory, size_t size);

/* Brings the pages that lie wholly within memory, as writing to them would; their bytes stay. Returns
 * false where the kernel cannot: before Linux 5.14, and where there is no memory for them. */
bool mtf_bring_pages(const char* memory, size_t size);

#ifdef __cplusplus
}
#endif
