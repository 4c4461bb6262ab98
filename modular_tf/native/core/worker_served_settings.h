// Transactions and options, as the worker serves them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fork_lock.h"
#include "owned_error.h"
#include "worker.h"
#include "worker_wire.h"

namespace mtf {

// The tokens that the host knows, by the numbers that it knows them by.
class OpenTransactions {
 public:
  // One number for one token.
  uint64_t number_of(mtf_filesystem* filesystem, void* token);
  // NULL where the number is none of the filesystem's. With `take` it is none any more.
  void* find(mtf_filesystem* filesystem, uint64_t number, bool take);

 private:
  struct Entry {
    mtf_filesystem* filesystem;
    void* token;
  };
  Lock lock_;
  uint64_t last_ = 0;
  std::map<uint64_t, Entry> entries_;
};

class ServedSettings {
 public:
  // Does what a request asks for, and puts numbers into `reply` and the payload into `bytes`. [any thread]
  Error perform(mtf_filesystem* filesystem, const wire::Request& request, const char* payload,
                wire::Reply& reply, std::string& bytes);

 private:
  Error about_transaction(mtf_filesystem* filesystem, const wire::Request& request, const char* path,
                          std::string& bytes);

  OpenTransactions transactions_;
};

}  // namespace mtf
