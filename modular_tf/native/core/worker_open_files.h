// The files of a worker that the host has open.
#pragma once

#include <cstdint>
#include <map>

#include "filesystem_state.h"
#include "fork_lock.h"

namespace mtf {

// By the numbers that the host knows them by.
class OpenFiles {
 public:
  uint64_t add(mtf_reader* reader) { return add_to(readers_, reader); }
  uint64_t add(mtf_writer* writer) { return add_to(writers_, writer); }
  mtf_reader* reader(uint64_t number) { return find(readers_, number, false); }
  mtf_writer* writer(uint64_t number) { return find(writers_, number, false); }
  mtf_reader* take_reader(uint64_t number) { return find(readers_, number, true); }
  mtf_writer* take_writer(uint64_t number) { return find(writers_, number, true); }

 private:
  template <class File>
  uint64_t add_to(std::map<uint64_t, File*>& files, File* file) {
    const LockGuard lock(lock_);
    files[++last_] = file;
    return last_;
  }
  template <class File>
  File* find(std::map<uint64_t, File*>& files, uint64_t number, bool take) {
    const LockGuard lock(lock_);
    const auto found = files.find(number);
    if (found == files.end()) return nullptr;
    File* file = found->second;
    if (take) files.erase(found);
    return file;
  }

  Lock lock_;
  uint64_t last_ = 0;
  std::map<uint64_t, mtf_reader*> readers_;
  std::map<uint64_t, mtf_writer*> writers_;
};

}  // namespace mtf
