/* Transactions and configuration of a filesystem: rarely offered, experimental everywhere. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "filesystem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The layouts of TF_Filesystem_Option and what it holds. */
typedef struct mtf_option_buffer {
  char* bytes;
  int length;
} mtf_option_buffer;

typedef union mtf_option_item {
  int64_t integer;
  double real;
  mtf_option_buffer buffer;
} mtf_option_item;

typedef struct mtf_option_value {
  int type_tag; /* 0 integers, 1 reals, 2 buffers */
  int num_values;
  mtf_option_item* values;
} mtf_option_value;

typedef struct mtf_option {
  char* name;
  char* description;
  int per_file;
  mtf_option_value* value;
} mtf_option;

/* `token` receives what the plugin made; it belongs to the plugin. */
mtf_error* mtf_start_transaction(mtf_filesystem* filesystem, void** token);
mtf_error* mtf_end_transaction(mtf_filesystem* filesystem, void* token);
mtf_error* mtf_add_to_transaction(mtf_filesystem* filesystem, const char* path, void* token);
mtf_error* mtf_get_transaction_for_path(mtf_filesystem* filesystem, const char* path, void** token);
mtf_error* mtf_get_or_start_transaction_for_path(mtf_filesystem* filesystem, const char* path,
                                                 void** token);
/* Without a text of the plugin's: what the token holds. The caller frees `text`. */
mtf_error* mtf_decode_transaction_token(mtf_filesystem* filesystem, const void* token, char** text);

/* The array and all it holds are the caller's: give it back by mtf_options_free. */
mtf_error* mtf_get_configuration(mtf_filesystem* filesystem, mtf_option** options, int* count);
mtf_error* mtf_get_configuration_option(mtf_filesystem* filesystem, const char* key,
                                        mtf_option** option);
void mtf_options_free(mtf_filesystem* filesystem, mtf_option* options, int count);
/* The options stay the caller's: the plugin sees a copy in memory of its own allocator. */
mtf_error* mtf_set_configuration(mtf_filesystem* filesystem, const mtf_option* options, int count);
mtf_error* mtf_set_configuration_option(mtf_filesystem* filesystem, const mtf_option* option);

#ifdef __cplusplus
}
#endif
