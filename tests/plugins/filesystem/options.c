#include "options.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "ledger.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Transactions ---- */

static TF_TransactionToken transaction;
static char member[256]; /* the path in the transaction; "" while there is none */

int start_transaction(const TF_Filesystem* filesystem, TF_TransactionToken** token,
                      TF_Status* status) {
  pthread_mutex_lock(&lock);
  TF_Code code = transaction.token == NULL ? TF_OK : TF_ALREADY_EXISTS;
  if (code == TF_OK) {
    transaction.token = &transaction;
    transaction.owner = (TF_Filesystem*)filesystem;
    member[0] = '\0';
    *token = &transaction;
  }
  pthread_mutex_unlock(&lock);
  set_outcome(status, code, "a transaction is running");
  return code == TF_OK ? 0 : -1;
}

static int check_token(const TF_TransactionToken* token, TF_Status* status) {
  TF_Code code = token == &transaction && token->token != NULL ? TF_OK : TF_NOT_FOUND;
  set_outcome(status, code, "no such transaction");
  return code == TF_OK ? 0 : -1;
}

int end_transaction(const TF_Filesystem* filesystem, TF_TransactionToken* token,
                    TF_Status* status) {
  (void)filesystem;
  int result = check_token(token, status);
  if (result == 0) transaction.token = NULL;
  return result;
}

int add_to_transaction(const TF_Filesystem* filesystem, const char* path,
                       TF_TransactionToken* token, TF_Status* status) {
  (void)filesystem;
  int result = check_token(token, status);
  if (result == 0) strncpy(member, path, sizeof(member) - 1);
  return result;
}

int get_transaction_for_path(const TF_Filesystem* filesystem, const char* path,
                             TF_TransactionToken** token, TF_Status* status) {
  (void)filesystem;
  int found = transaction.token != NULL && strcmp(member, path) == 0;
  if (found) *token = &transaction;
  set_outcome(status, found ? TF_OK : TF_NOT_FOUND, path);
  return found ? 0 : -1;
}

int get_or_start_transaction_for_path(const TF_Filesystem* filesystem, const char* path,
                                      TF_TransactionToken** token, TF_Status* status) {
  if (get_transaction_for_path(filesystem, path, token, status) == 0) return 0;
  if (start_transaction(filesystem, token, status) != 0) return -1;
  return add_to_transaction(filesystem, path, *token, status);
}

char* decode_transaction_token(const TF_Filesystem* filesystem, const TF_TransactionToken* token) {
  (void)filesystem;
  return ledger_string(token == &transaction && token->token != NULL ? member : "none");
}

/* ---- Options ---- */

static int64_t block_size = 4096;
static const char labels[2][4] = {"red", "a\0b"}; /* 3 bytes each */

static void* allocate(size_t size) {
  void* block = ledger_allocate(size);
  if (block == NULL) abort();
  return block;
}

static TF_Filesystem_Option_Value* new_value(TF_Filesystem_Option_Type type, int count) {
  TF_Filesystem_Option_Value* value = allocate(sizeof(*value));
  value->type_tag = type;
  value->num_values = count;
  value->values = allocate((size_t)count * sizeof(*value->values));
  return value;
}

static void fill_block_size(TF_Filesystem_Option* option) {
  option->name = ledger_string("block_size");
  option->description = ledger_string("bytes per block");
  option->per_file = 0;
  option->value = new_value(TF_Filesystem_Option_Type_Int, 1);
  option->value->values[0].int_val = block_size;
}

static void fill_labels(TF_Filesystem_Option* option) {
  option->name = ledger_string("labels");
  option->description = NULL;
  option->per_file = 1;
  option->value = new_value(TF_Filesystem_Option_Type_Buffer, 2);
  for (int i = 0; i < 2; ++i) {
    option->value->values[i].buffer_val.buf = memcpy(allocate(3), labels[i], 3);
    option->value->values[i].buffer_val.buf_length = 3;
  }
}

void get_configuration(const TF_Filesystem* filesystem, TF_Filesystem_Option** options, int* count,
                       TF_Status* status) {
  (void)filesystem;
  *options = allocate(2 * sizeof(TF_Filesystem_Option));
  *count = 2;
  fill_block_size(&(*options)[0]);
  fill_labels(&(*options)[1]);
  set_outcome(status, TF_OK, "");
}

void get_option(const TF_Filesystem* filesystem, const char* key, TF_Filesystem_Option** option,
                TF_Status* status) {
  (void)filesystem;
  void (*fill)(TF_Filesystem_Option*) = strcmp(key, "block_size") == 0 ? fill_block_size
                                        : strcmp(key, "labels") == 0   ? fill_labels
                                                                       : NULL;
  set_outcome(status, fill == NULL ? TF_NOT_FOUND : TF_OK, key);
  if (fill == NULL) return;
  *option = allocate(sizeof(TF_Filesystem_Option));
  fill(*option);
}

static TF_Code check_option(const TF_Filesystem_Option* option) {
  if (strcmp(option->name, "block_size") != 0) return TF_NOT_FOUND;
  const TF_Filesystem_Option_Value* value = option->value;
  int fits = value->type_tag == TF_Filesystem_Option_Type_Int && value->num_values == 1;
  return fits && value->values[0].int_val > 0 ? TF_OK : TF_INVALID_ARGUMENT;
}

void set_option(const TF_Filesystem* filesystem, const TF_Filesystem_Option* option,
                TF_Status* status) {
  (void)filesystem;
  TF_Code code = check_option(option);
  if (code == TF_OK) block_size = option->value->values[0].int_val;
  set_outcome(status, code, option->name);
}

void set_configuration(const TF_Filesystem* filesystem, const TF_Filesystem_Option* options,
                       int count, TF_Status* status) {
  set_outcome(status, TF_OK, "");
  for (int i = 0; i < count && TF_GetCode(status) == TF_OK; ++i)
    set_option(filesystem, &options[i], status);
}
