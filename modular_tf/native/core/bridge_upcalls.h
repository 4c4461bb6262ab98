/* What the bridge into TensorFlow asks Python. build_core.py has cffi define these functions; each
 * takes the GIL and may be called from any thread while the bridge is open. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bridge.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An operation of a filesystem, by its name in TF_FilesystemOps. `other` is the second path. The
 * three that open a file give its number, and 1 where reads ahead pay, in `numbers`; a memory
 * region is `text`, its length `numbers[0]`. */
void mtf_upcall_path(const char* operation, const char* path, const char* other,
                     mtf_bridge_answer* answer);

/* Reads up to `size` bytes; `numbers[0]` is the count. */
void mtf_upcall_read(int64_t file, uint64_t offset, char* buffer, size_t size,
                     mtf_bridge_answer* answer);

/* An operation of an open file: "append" of `size` bytes of `data`, "tell" (`numbers[0]`), "flush",
 * "sync", "close", "release", which appends `data` before, and "give_up", which ends a file of which
 * bytes were lost: a store keeps nothing of it; after these three the file has no number any more.
 * "wait" gives the GIL away for a moment. */
void mtf_upcall_file(const char* operation, int64_t file, const char* data, size_t size,
                     mtf_bridge_answer* answer);

#ifdef __cplusplus
}
#endif
