/* The fixture's transactions and options: the slots that TensorFlow itself never calls.
 *
 * There is one transaction at a time, and two options: "block_size" (one integer, may be set) and
 * "labels" (two byte strings, of which one has a NUL in it; read only). Both are the library's, not
 * a filesystem's. */
#pragma once

#include "modular_tf/filesystem.h"

int start_transaction(const TF_Filesystem* filesystem, TF_TransactionToken** token,
                      TF_Status* status);
int end_transaction(const TF_Filesystem* filesystem, TF_TransactionToken* token, TF_Status* status);
int add_to_transaction(const TF_Filesystem* filesystem, const char* path,
                       TF_TransactionToken* token, TF_Status* status);
int get_transaction_for_path(const TF_Filesystem* filesystem, const char* path,
                             TF_TransactionToken** token, TF_Status* status);
int get_or_start_transaction_for_path(const TF_Filesystem* filesystem, const char* path,
                                      TF_TransactionToken** token, TF_Status* status);
char* decode_transaction_token(const TF_Filesystem* filesystem, const TF_TransactionToken* token);

void get_configuration(const TF_Filesystem* filesystem, TF_Filesystem_Option** options, int* count,
                       TF_Status* status);
void set_configuration(const TF_Filesystem* filesystem, const TF_Filesystem_Option* options,
                       int count, TF_Status* status);
void get_option(const TF_Filesystem* filesystem, const char* key, TF_Filesystem_Option** option,
                TF_Status* status);
void set_option(const TF_Filesystem* filesystem, const TF_Filesystem_Option* option,
                TF_Status* status);
