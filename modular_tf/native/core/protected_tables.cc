#include "protected_tables.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "fork_lock.h"
#include "guard.h"
#include "library.h"

namespace {

constexpr size_t kMostTables = 4096;
constexpr size_t kPiece = 64;

// A keyed sum instead of a second copy: what overwrites each page that looks like a table would find
// a copy too.
struct ProtectedTable {
  std::atomic<const void*> address{nullptr};  // null: unused
  std::atomic<size_t> size{0};
  std::atomic<uint64_t> sum{0};
};

ProtectedTable tables[kMostTables];
std::atomic<size_t> table_count{0};  // those that were ever used
uint64_t key = 0;
mtf::Lock changing;

// False where the memory cannot be read. [signal handlers]
bool sum_of(const void* address, size_t size, uint64_t* sum) noexcept {
  *sum = key;
  for (size_t done = 0; done < size; done += kPiece) {
    unsigned char piece[kPiece] = {};
    const size_t length = size - done < kPiece ? size - done : kPiece;
    if (mtf_try_read(static_cast<const char*>(address) + done, piece, length) == 0) return false;
    for (size_t i = 0; i < length; ++i) *sum = (*sum ^ piece[i]) * 0x100000001b3U;  // FNV-1a
  }
  return true;
}

void add_table(const void* address, size_t size) {
  const mtf::LockGuard lock(changing);
  if (key == 0 && getrandom(&key, sizeof key, GRND_NONBLOCK) != sizeof key) {
    key = reinterpret_cast<uintptr_t>(address) * 0x9e3779b97f4a7c15U;
  }
  const size_t count = table_count;
  size_t at = 0;
  while (at < count && tables[at].address != nullptr) ++at;
  uint64_t sum = 0;
  if (at == kMostTables || !sum_of(address, size, &sum)) return;
  tables[at].size = size;
  tables[at].sum = sum;
  tables[at].address = address;
  if (at == count) table_count = count + 1;
}

void remove_table(const void* address) {
  const mtf::LockGuard lock(changing);
  for (size_t at = 0; at < table_count; ++at) {
    if (tables[at].address == address) tables[at].address = nullptr;
  }
}

size_t whole_pages(size_t size) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (size + page - 1) / page * page;
}

}  // namespace

namespace mtf {

bool tables_were_overwritten() noexcept {
  const size_t count = table_count;
  for (size_t at = 0; at < count; ++at) {
    const ProtectedTable& table = tables[at];
    const void* const address = table.address;
    if (address == nullptr) continue;
    const uint64_t expected = table.sum;
    uint64_t found = 0;
    errno = 0;
    const bool is_read = sum_of(address, table.size, &found);
    // A sandbox may forbid the call that reads, and no descriptors be left for the other way: not known.
    const bool is_same = is_read ? found == expected : errno != EFAULT;
    // Else another thread has freed it meanwhile.
    const bool is_still_there = table.address == address && table.sum == expected;
    if (!is_same && is_still_there) return true;
  }
  return false;
}

}  // namespace mtf

extern "C" mtf_error* mtf_readonly_copy(const void* source, size_t size, void** copy) {
  const size_t length = whole_pages(size);
  void* pages = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return mtf::make_error(TF_RESOURCE_EXHAUSTED,
                                                  "no memory for a read-only table");
  std::memcpy(pages, source, size);
  if (mprotect(pages, length, PROT_READ) != 0) {
    munmap(pages, length);
    return mtf::make_error(TF_INTERNAL, "cannot write-protect a table");
  }
  add_table(pages, size);
  *copy = pages;
  return nullptr;
}

extern "C" void mtf_readonly_free(void* copy, size_t size) {
  remove_table(copy);
  munmap(copy, whole_pages(size));
}
