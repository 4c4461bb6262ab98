/* What copies.c and matching_paths.c share with plugin.c. */
#pragma once

#include "modular_tf/filesystem.h"

/* -- saying that an operation worked, or why it did not and on which path -- */

/* The host presets OK, but a status that the caller used before may say something else. */
void posix_succeed(TF_Status* status);

/* The code that belongs to `error` (an errno value) with the message "path; text of the errno". */
void posix_fail(TF_Status* status, int error, const char* path);

/* The same for two paths: the kernel does not say which one it meant. */
void posix_fail_both(TF_Status* status, int error, const char* source, const char* target);

/* A code of our own choice with the message "path; reason", where errno would tell it wrong. */
void posix_refuse(TF_Status* status, TF_Code code, const char* path, const char* reason);

/* copies.c */
void posix_copy_file(const TF_Filesystem* filesystem, const char* source, const char* target,
                     TF_Status* status);
void posix_rename_file(const TF_Filesystem* filesystem, const char* source, const char* target,
                       TF_Status* status);

/* matching_paths.c */
int posix_get_matching_paths(const TF_Filesystem* filesystem, const char* pattern,
                             char*** entries, TF_Status* status);
