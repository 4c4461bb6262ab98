/* The fixture's well-behaved files: readers, writers and memory regions of the store. */
#pragma once

#include "modular_tf/filesystem.h"

extern const TF_RandomAccessFileOps good_random_access_file_ops;
extern const TF_WritableFileOps good_writable_file_ops;
extern const TF_ReadOnlyMemoryRegionOps good_read_only_memory_region_ops;

/* The openers of the filesystem's table. */
void open_random_access_file(const TF_Filesystem* filesystem, const char* path,
                             TF_RandomAccessFile* file, TF_Status* status);
void open_writable_file(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file,
                        TF_Status* status);
void open_appendable_file(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file,
                          TF_Status* status);
void open_memory_region(const TF_Filesystem* filesystem, const char* path,
                        TF_ReadOnlyMemoryRegion* region, TF_Status* status);

/* Sets a code, with the path as the message of a failure. */
void set_outcome(TF_Status* status, TF_Code code, const char* path);
