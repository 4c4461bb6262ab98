/* Every operation of the plugin, each in the file that its group is named after.
 *
 * What an operation must do is said in modular_tf/filesystem_ops.h and modular_tf/file_ops.h. */
#pragma once

#include "modular_tf/filesystem.h"

/* -- saying that an operation worked, or why it did not and on which path (plugin.c) -- */

/* The host presets OK, but a status that the caller used before may say something else. */
void posix_succeed(TF_Status* status);

/* The code that belongs to `error` (an errno value) with the message "path; text of the errno". */
void posix_fail(TF_Status* status, int error, const char* path);

/* The same for two paths: the kernel does not say which one it meant. */
void posix_fail_both(TF_Status* status, int error, const char* source, const char* target);

/* A code of our own choice with the message "path; reason", where errno would tell it wrong. */
void posix_refuse(TF_Status* status, TF_Code code, const char* path, const char* reason);

/* readers.c */
void posix_new_random_access_file(const TF_Filesystem* filesystem, const char* path,
                                  TF_RandomAccessFile* file, TF_Status* status);
void posix_random_access_cleanup(TF_RandomAccessFile* file);
int64_t posix_random_access_read(const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                                 char* buffer, TF_Status* status);
void posix_new_region(const TF_Filesystem* filesystem, const char* path,
                      TF_ReadOnlyMemoryRegion* region, TF_Status* status);
void posix_region_cleanup(TF_ReadOnlyMemoryRegion* region);
const void* posix_region_data(const TF_ReadOnlyMemoryRegion* region);
uint64_t posix_region_length(const TF_ReadOnlyMemoryRegion* region);

/* writable_file.c */
void posix_new_writable_file(const TF_Filesystem* filesystem, const char* path,
                             TF_WritableFile* file, TF_Status* status);
void posix_new_appendable_file(const TF_Filesystem* filesystem, const char* path,
                               TF_WritableFile* file, TF_Status* status);
void posix_writable_cleanup(TF_WritableFile* file);
void posix_writable_append(const TF_WritableFile* file, const char* buffer, size_t n,
                           TF_Status* status);
int64_t posix_writable_tell(const TF_WritableFile* file, TF_Status* status);
void posix_writable_flush(const TF_WritableFile* file, TF_Status* status);
void posix_writable_sync(const TF_WritableFile* file, TF_Status* status);
void posix_writable_close(const TF_WritableFile* file, TF_Status* status);

/* entries.c */
void posix_create_dir(const TF_Filesystem* filesystem, const char* path, TF_Status* status);
void posix_recursively_create_dir(const TF_Filesystem* filesystem, const char* path,
                                  TF_Status* status);
void posix_delete_dir(const TF_Filesystem* filesystem, const char* path, TF_Status* status);
void posix_delete_recursively(const TF_Filesystem* filesystem, const char* path,
                              uint64_t* undeleted_files, uint64_t* undeleted_dirs,
                              TF_Status* status);
void posix_delete_file(const TF_Filesystem* filesystem, const char* path, TF_Status* status);
void posix_path_exists(const TF_Filesystem* filesystem, const char* path, TF_Status* status);
void posix_stat(const TF_Filesystem* filesystem, const char* path, TF_FileStatistics* statistics,
                TF_Status* status);
bool posix_is_directory(const TF_Filesystem* filesystem, const char* path, TF_Status* status);
int64_t posix_get_file_size(const TF_Filesystem* filesystem, const char* path, TF_Status* status);
int posix_get_children(const TF_Filesystem* filesystem, const char* path, char*** entries,
                       TF_Status* status);

/* copies.c */
void posix_copy_file(const TF_Filesystem* filesystem, const char* source, const char* target,
                     TF_Status* status);
void posix_rename_file(const TF_Filesystem* filesystem, const char* source, const char* target,
                       TF_Status* status);

/* matching_paths.c */
int posix_get_matching_paths(const TF_Filesystem* filesystem, const char* pattern,
                             char*** entries, TF_Status* status);
