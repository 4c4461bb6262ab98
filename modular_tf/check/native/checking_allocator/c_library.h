/* The C library's own allocator, by the names that stay its own when malloc is replaced. So nothing
 * has to be looked up, which would allocate. */
#pragma once

#include <stddef.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void* block);
