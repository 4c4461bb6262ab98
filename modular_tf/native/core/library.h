/* Shared libraries, addresses and protected memory: what loading needs from the system. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* dlopen(path, flags). Constructors of the library run here, guarded. The handle is never closed
 * by this package: a library stays mapped for the life of the process. */
mtf_error* mtf_library_open(const char* path, int flags, void** handle);

/* The handle of a library that is mapped already under this path, or NULL. Nothing is loaded. */
void* mtf_library_find(const char* path);

/* dlsym; NULL when the library itself or its dependencies do not define `name`. */
void* mtf_library_symbol(void* handle, const char* name);

/* Where the library lies that is mapped from the file that a path leads to: 1 when there is one, 0
 * when not. Nothing is loaded. The path becomes another name of the library. */
int mtf_library_address(const char* path, uintptr_t* address);

/* Writes address and name of each object that is mapped now: eight bytes, then the name with its
 * NUL, as many as fit whole. Returns how many bytes all of them take; `unmapped` gets the number of
 * objects that were unmapped since the process began. [any thread] */
size_t mtf_mapped_objects(char* buffer, size_t size, uint64_t* unmapped);

typedef struct mtf_address_owner {
  const char* path;       /* of the mapped object; lives as long as it does */
  const void* base;       /* where it is mapped */
  const char* symbol;     /* nearest symbol, or NULL */
  const void* symbol_address;
} mtf_address_owner;

/* Which mapped object an address lies in: 1 when found, 0 when in none. */
int mtf_address_owner_of(const void* address, mtf_address_owner* owner);

/* Writes the readable form of a mangled C++ name with its NUL: 1; 0 where `name` is none, or where
 * that does not fit. [any thread] */
int mtf_demangle(const char* name, char* text, size_t size);

/* 1 when `address` lies in an executable mapping of this process. [any thread] */
int mtf_is_executable(const void* address);

/* Copies `size` bytes that may not be mapped; 1 on success, 0 where reading would have faulted. */
int mtf_try_read(const void* source, void* destination, size_t size);

/* Length of a NUL-terminated string that may not be one, at most `limit`; -1 when unreadable or
 * longer. */
int64_t mtf_try_strlen(const char* source, size_t limit);

/* Copies `size` bytes to fresh pages and write-protects them: a later write faults. */
mtf_error* mtf_readonly_copy(const void* source, size_t size, void** copy);

/* Unmaps what mtf_readonly_copy made with the same size. */
void mtf_readonly_free(void* copy, size_t size);

/* Pages, huge ones where there are any, behind large memory that is about to be filled. */

/* Asks for huge pages behind memory that nobody has written to, which then is several times as fast to
 * write for the first time. Pages that are only partly within it stay as they are, and so does all
 * of it where the kernel has no huge pages. */
void mtf_prefer_huge_pages(const char* memory, size_t size);

/* Brings the pages that lie wholly within memory, as writing to them would; their bytes stay. Returns
 * false where the kernel cannot: before Linux 5.14, and where there is no memory for them. */
bool mtf_bring_pages(const char* memory, size_t size);

#ifdef __cplusplus
}

// Whether the write-protected copies of plugins' tables (mtf_readonly_copy) are as they were made.

namespace mtf {

// Whether somebody has overwritten one of them, through /proc/self/mem or with other rights for its
// pages, or unmapped it. Any code of the process may have, and a call by such a table ends anywhere.
// Of more than 4 096 tables some are not compared. [signal handlers]
bool tables_were_overwritten() noexcept;

}  // namespace mtf
#endif
