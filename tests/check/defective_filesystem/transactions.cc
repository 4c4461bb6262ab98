#include "transactions.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>

namespace defective {
namespace {

// Those that were started and not ended; a token is its own key.
std::map<const TF_TransactionToken*, std::unique_ptr<TF_TransactionToken>>& open_transactions() {
  static std::map<const TF_TransactionToken*, std::unique_ptr<TF_TransactionToken>> tokens;
  return tokens;
}

std::map<std::string, TF_TransactionToken*>& transactions_of_paths() {
  static std::map<std::string, TF_TransactionToken*> tokens;
  return tokens;
}

int say(TF_Code code, const char* what, TF_Status* status) {
  TF_SetStatus(status, code, code == TF_OK ? "" : what);
  return code == TF_OK ? 0 : -1;
}

int add_to_transaction(const TF_Filesystem*, const char* path, TF_TransactionToken* token,
                       TF_Status* status) {
  if (open_transactions().count(token) == 0) return say(TF_NOT_FOUND, "no transaction", status);
  transactions_of_paths()[path] = token;
  return say(TF_OK, "", status);
}

int get_or_start_transaction_for_path(const TF_Filesystem* filesystem, const char* path,
                                      TF_TransactionToken** token, TF_Status* status) {
  if (get_transaction_for_path(filesystem, path, token, status) == 0) return 0;
  if (start_transaction(filesystem, token, status) != 0) return -1;
  return add_to_transaction(filesystem, path, *token, status);
}

char* decode_transaction_token(const TF_Filesystem*, const TF_TransactionToken* token) {
  return strdup(open_transactions().count(token) == 0 ? "ended" : "open");
}

}  // namespace

int start_transaction(const TF_Filesystem*, TF_TransactionToken** token, TF_Status* status) {
  auto made = std::make_unique<TF_TransactionToken>();
  *token = made.get();
  open_transactions()[*token] = std::move(made);
  return say(TF_OK, "", status);
}

int end_transaction(const TF_Filesystem*, TF_TransactionToken* token, TF_Status* status) {
  if (open_transactions().erase(token) == 0) return say(TF_NOT_FOUND, "no transaction", status);
  auto& paths = transactions_of_paths();
  for (auto at = paths.begin(); at != paths.end();) {
    at = at->second == token ? paths.erase(at) : std::next(at);
  }
  return say(TF_OK, "", status);
}

int get_transaction_for_path(const TF_Filesystem*, const char* path, TF_TransactionToken** token,
                             TF_Status* status) {
  const auto found = transactions_of_paths().find(path);
  if (found == transactions_of_paths().end()) return say(TF_NOT_FOUND, path, status);
  *token = found->second;
  return say(TF_OK, "", status);
}

void add_transactions(Tables& tables) {
  tables.filesystem.start_transaction = start_transaction;
  tables.filesystem.end_transaction = end_transaction;
  tables.filesystem.add_to_transaction = add_to_transaction;
  tables.filesystem.get_transaction_for_path = get_transaction_for_path;
  tables.filesystem.get_or_start_transaction_for_path = get_or_start_transaction_for_path;
  tables.filesystem.decode_transaction_token = decode_transaction_token;
}

}  // namespace defective
