// Defects of flush_caches and of transactions.
#include <string>

#include "defects.h"
#include "paths.h"
#include "transactions.h"

namespace {

using namespace defective;

// The file that was opened for writing last.
std::string& last_written() {
  static std::string path;
  return path;
}

void remember_and_open(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file,
                       TF_Status* status) {
  last_written() = path;
  original.filesystem.new_writable_file(filesystem, path, file, status);
}

void forget_last(const TF_Filesystem* filesystem) {
  TF_Status* status = TF_NewStatus();
  original.filesystem.delete_file(filesystem, last_written().c_str(), status);
  TF_DeleteStatus(status);
}

int start_without_token(const TF_Filesystem*, TF_TransactionToken**, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
  return 0;
}

// Another one for a path that was added.
int find_another(const TF_Filesystem* filesystem, const char* path, TF_TransactionToken** token,
                 TF_Status* status) {
  if (ends_in(path, "added")) return start_transaction(filesystem, token, status);
  return get_transaction_for_path(filesystem, path, token, status);
}

// One for a path that nobody added.
int find_something(const TF_Filesystem* filesystem, const char* path, TF_TransactionToken** token,
                   TF_Status* status) {
  if (ends_in(path, "never-added")) return start_transaction(filesystem, token, status);
  return get_transaction_for_path(filesystem, path, token, status);
}

int start_always(const TF_Filesystem* filesystem, const char*, TF_TransactionToken** token,
                 TF_Status* status) {
  return start_transaction(filesystem, token, status);
}

int end_as_often_as_asked(const TF_Filesystem* filesystem, TF_TransactionToken* token,
                          TF_Status* status) {
  end_transaction(filesystem, token, status);
  TF_SetStatus(status, TF_OK, "");
  return 0;
}

int end_and_return_0(const TF_Filesystem* filesystem, TF_TransactionToken* token,
                     TF_Status* status) {
  end_transaction(filesystem, token, status);
  return 0;
}

}  // namespace

DEFECTS(transactions) = {
    {"FS-301",
     [](Tables& tables) {
       tables.filesystem.new_writable_file = remember_and_open;
       tables.filesystem.flush_caches = forget_last;
     }},
    {"FS-302",
     [](Tables& tables) {
       add_transactions(tables);
       tables.filesystem.start_transaction = start_without_token;
     }},
    {"FS-303",
     [](Tables& tables) {
       add_transactions(tables);
       tables.filesystem.get_transaction_for_path = find_another;
     }},
    {"FS-304",
     [](Tables& tables) {
       add_transactions(tables);
       tables.filesystem.get_transaction_for_path = find_something;
     }},
    {"FS-305",
     [](Tables& tables) {
       add_transactions(tables);
       tables.filesystem.get_or_start_transaction_for_path = start_always;
     }},
    {"FS-306",
     [](Tables& tables) {
       add_transactions(tables);
       tables.filesystem.end_transaction = end_as_often_as_asked;
     }},
    {"FS-307",
     [](Tables& tables) {
       add_transactions(tables);
       tables.filesystem.decode_transaction_token =
           [](const TF_Filesystem*, const TF_TransactionToken*) -> char* { return nullptr; };
     }},
    {"FS-308",
     [](Tables& tables) {
       add_transactions(tables);
       tables.filesystem.end_transaction = end_and_return_0;
     }},
};
