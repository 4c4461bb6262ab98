#include "worker_served_settings.h"

#include <memory>

#include "filesystem_settings.h"
#include "worker_options.h"

namespace mtf {
namespace {

using namespace wire;

Error get_transaction(mtf_filesystem* filesystem, uint32_t operation, const char* path, void** token) {
  switch (operation) {
    case kStartTransaction: return Error(mtf_start_transaction(filesystem, token));
    case kGetTransaction: return Error(mtf_get_transaction_for_path(filesystem, path, token));
    default: return Error(mtf_get_or_start_transaction_for_path(filesystem, path, token));
  }
}

Error decode(mtf_filesystem* filesystem, const void* token, std::string& bytes) {
  char* text = nullptr;
  Error error(mtf_decode_transaction_token(filesystem, token, &text));
  const std::unique_ptr<char, void (*)(char*)> owned(text, mtf_string_free);
  if (!error) bytes.assign(text);
  return error;
}

Error get_options(mtf_filesystem* filesystem, const char* key, int* count, std::string& bytes) {
  mtf_option* options = nullptr;
  Error error(key == nullptr ? mtf_get_configuration(filesystem, &options, count)
                             : mtf_get_configuration_option(filesystem, key, &options));
  if (error) return error;
  const bool are_written = write_options(options, *count, bytes);
  mtf_options_free(filesystem, options, *count);
  return are_written ? nullptr : make_error(TF_RESOURCE_EXHAUSTED, kTooManyOptions);
}

Error set_options(mtf_filesystem* filesystem, const Request& request, const char* payload) {
  OwnedOptions given;
  if (!read_options(payload, static_cast<size_t>(request.size), request.count, given)) {
    return make_error(TF_RESOURCE_EXHAUSTED, "no memory for options in the process of the plugin");
  }
  return Error(request.operation == kSetOption
                   ? mtf_set_configuration_option(filesystem, given.options)
                   : mtf_set_configuration(filesystem, given.options, given.count));
}

}  // namespace

uint64_t OpenTransactions::number_of(mtf_filesystem* filesystem, void* token) {
  const LockGuard lock(lock_);
  for (const auto& [number, entry] : entries_) {
    if (entry.filesystem == filesystem && entry.token == token) return number;
  }
  entries_[++last_] = {filesystem, token};
  return last_;
}

void* OpenTransactions::find(mtf_filesystem* filesystem, uint64_t number, bool take) {
  const LockGuard lock(lock_);
  const auto found = entries_.find(number);
  if (found == entries_.end() || found->second.filesystem != filesystem) return nullptr;
  void* token = found->second.token;
  if (take) entries_.erase(found);
  return token;
}

Error ServedSettings::about_transaction(mtf_filesystem* filesystem, const Request& request,
                                        const char* path, std::string& bytes) {
  void* token = transactions_.find(filesystem, request.file, request.operation == kEndTransaction);
  if (token == nullptr) return make_error(TF_INVALID_ARGUMENT, "the transaction has ended");
  switch (request.operation) {
    case kEndTransaction: return Error(mtf_end_transaction(filesystem, token));
    case kAddToTransaction: return Error(mtf_add_to_transaction(filesystem, path, token));
    default: return decode(filesystem, token, bytes);
  }
}

Error ServedSettings::perform(mtf_filesystem* filesystem, const Request& request, const char* payload,
                              Reply& reply, std::string& bytes) {
  int count = 1;
  Error error;
  switch (request.operation) {
    case kStartTransaction:
    case kGetTransaction:
    case kGetOrStartTransaction: {
      void* token = nullptr;
      error = get_transaction(filesystem, request.operation, payload, &token);
      if (!error) reply.numbers[0] = static_cast<int64_t>(transactions_.number_of(filesystem, token));
      return error;
    }
    case kGetOptions:
      count = 0;
      error = get_options(filesystem, nullptr, &count, bytes);
      reply.numbers[0] = count;
      return error;
    case kGetOption: return get_options(filesystem, payload, &count, bytes);
    case kSetOptions:
    case kSetOption: return set_options(filesystem, request, payload);
    default: return about_transaction(filesystem, request, payload, bytes);
  }
}

}  // namespace mtf
