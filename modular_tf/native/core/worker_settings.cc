// The functions of transactions and options in the table of a filesystem whose plugin runs in a worker.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "worker_options.h"
#include "worker_proxies.h"

using mtf::call_on;
using mtf::put;
using mtf::remote;
using mtf::request_of;
using mtf::WorkerCall;
using namespace mtf::wire;

namespace {

constexpr uint64_t kMostOfADescription = uint64_t{16} << 20;

// -- transactions ---------------------------------------------------------------------------------

// A token is no address here, but which transaction of which process it is, so that it never means one of
// another process.
constexpr unsigned kNumberBits = 32;
static_assert(sizeof(void*) == sizeof(uint64_t), "both fit into it");

int64_t run_of(const TF_TransactionToken* token) {
  return static_cast<int64_t>(reinterpret_cast<uint64_t>(token) >> kNumberBits);
}

uint64_t number_of(const TF_TransactionToken* token) {
  return reinterpret_cast<uint64_t>(token) & UINT32_MAX;
}

void take_token(WorkerCall& call, TF_TransactionToken** token) {
  const int64_t number = call.reply().numbers[0];
  if (number < 1 || number > UINT32_MAX) {
    call.disbelieve("a transaction without a number");
    return;
  }
  const uint64_t made = static_cast<uint64_t>(call.run()) << kNumberBits | static_cast<uint64_t>(number);
  *token = reinterpret_cast<TF_TransactionToken*>(made);
}

// A call about a transaction, in the process that has it. `path` may be NULL.
class TransactionCall : public WorkerCall {
 public:
  TransactionCall(const TF_Filesystem* filesystem, const TF_TransactionToken* token, TF_Status* status)
      : WorkerCall(remote(filesystem).worker, status, run_of(token)), status_(status) {
    request_.filesystem = remote(filesystem).index;
    request_.file = number_of(token);
  }

  bool perform(Operation operation, const char* path) {
    request_.operation = operation;
    const bool is_ready = *this && (path == nullptr || texts(path, nullptr));
    const bool is_done = is_ready && WorkerCall::perform(request_);
    if (status_->mark == mtf::kFileLost) {
      mtf_status_set(status_, TF_UNAVAILABLE, "the process of the plugin that had this transaction has "
                                            "ended, and what was done in it may be lost; start another one");
      status_->mark = mtf::kFileLost;
    }
    return is_done;
  }

 private:
  TF_Status* status_;
  Request request_ = {};
};

int start_transaction(const TF_Filesystem* filesystem, TF_TransactionToken** token, TF_Status* status) {
  const mtf::RemoteFilesystem& there = remote(filesystem);
  WorkerCall call(there.worker, status);
  if (call && call.perform(request_of(kStartTransaction, there.index))) take_token(call, token);
  return status->code == TF_OK ? 0 : -1;
}

template <Operation operation>
int token_for_path(const TF_Filesystem* filesystem, const char* path, TF_TransactionToken** token,
                   TF_Status* status) {
  call_on(filesystem, operation, path, nullptr, status,
          [&](WorkerCall& call) { take_token(call, token); });
  return status->code == TF_OK ? 0 : -1;
}

int end_transaction(const TF_Filesystem* filesystem, TF_TransactionToken* token, TF_Status* status) {
  TransactionCall call(filesystem, token, status);
  return call.perform(kEndTransaction, nullptr) ? 0 : -1;
}

int add_to_transaction(const TF_Filesystem* filesystem, const char* path, TF_TransactionToken* token,
                       TF_Status* status) {
  TransactionCall call(filesystem, token, status);
  return call.perform(kAddToTransaction, path) ? 0 : -1;
}

// -- options --------------------------------------------------------------------------------------

void take_options(WorkerCall& call, int64_t count, TF_Filesystem_Option** options) {
  // A copy, which the worker does not change.
  const std::unique_ptr<char, void (*)(void*)> bytes(call.copy_payload(mtf::kMostOfOptions), std::free);
  if (bytes == nullptr) return;
  mtf::OwnedOptions made;
  if (mtf::read_options(bytes.get(), static_cast<size_t>(call.reply().size), count, made)) {
    *options = reinterpret_cast<TF_Filesystem_Option*>(std::exchange(made.options, nullptr));
  } else {
    call.disbelieve("options that are incomplete, or too many");
  }
}

void get_options(const TF_Filesystem* filesystem, TF_Filesystem_Option** options, int* count,
                 TF_Status* status) {
  const mtf::RemoteFilesystem& there = remote(filesystem);
  WorkerCall call(there.worker, status);
  if (!call || !call.perform(request_of(kGetOptions, there.index))) return;
  const int64_t told = call.reply().numbers[0];
  take_options(call, told, options);
  if (status->code == TF_OK) *count = static_cast<int>(told);
}

void get_option(const TF_Filesystem* filesystem, const char* key, TF_Filesystem_Option** option,
                TF_Status* status) {
  const mtf::RemoteFilesystem& there = remote(filesystem);
  WorkerCall call(there.worker, status);
  if (!call || !call.bytes(key, std::strlen(key) + 1)) return;
  if (call.perform(request_of(kGetOption, there.index))) take_options(call, 1, option);
}

void send_options(const TF_Filesystem* filesystem, Operation operation,
                  const TF_Filesystem_Option* options, int count, TF_Status* status) try {
  const mtf::RemoteFilesystem& there = remote(filesystem);
  std::string bytes;
  if (!mtf::write_options(reinterpret_cast<const mtf_option*>(options), count, bytes)) {
    return mtf_status_set(status, TF_INVALID_ARGUMENT, mtf::kTooManyOptions);
  }
  WorkerCall call(there.worker, status);
  if (!call || !call.bytes(bytes.data(), bytes.size())) return;
  Request request = request_of(operation, there.index);
  request.count = static_cast<uint32_t>(count);
  call.perform(request);
} catch (const std::bad_alloc&) {  // ours, and no exception of the plugin's
  mtf_status_set(status, TF_RESOURCE_EXHAUSTED, "no memory for options");
}

void set_options(const TF_Filesystem* filesystem, const TF_Filesystem_Option* options, int count,
                 TF_Status* status) {
  send_options(filesystem, kSetOptions, options, count, status);
}

void set_option(const TF_Filesystem* filesystem, const TF_Filesystem_Option* option,
                TF_Status* status) {
  send_options(filesystem, kSetOption, option, 1, status);
}

}  // namespace

char* mtf::decode_in_worker(const TF_Filesystem* filesystem, const TF_TransactionToken* token,
                            TF_Status* status) {
  TransactionCall call(filesystem, token, status);
  return call.perform(kDecodeTransaction, nullptr) ? call.copy_payload(kMostOfADescription) : nullptr;
}

void mtf::put_setting_functions(const Tables& theirs, Tables& ours) {
  const TF_FilesystemOps& fs = theirs.filesystem;
  TF_FilesystemOps& made = ours.filesystem;
  put(made.start_transaction, fs.start_transaction, start_transaction);
  put(made.end_transaction, fs.end_transaction, end_transaction);
  put(made.add_to_transaction, fs.add_to_transaction, add_to_transaction);
  put(made.get_transaction_for_path, fs.get_transaction_for_path, token_for_path<kGetTransaction>);
  put(made.get_or_start_transaction_for_path, fs.get_or_start_transaction_for_path,
      token_for_path<kGetOrStartTransaction>);
  put(made.get_filesystem_configuration, fs.get_filesystem_configuration, get_options);
  put(made.get_filesystem_configuration_option, fs.get_filesystem_configuration_option, get_option);
  put(made.set_filesystem_configuration, fs.set_filesystem_configuration, set_options);
  put(made.set_filesystem_configuration_option, fs.set_filesystem_configuration_option, set_option);
}
