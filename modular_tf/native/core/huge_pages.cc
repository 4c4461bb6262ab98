#include "huge_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace {

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // older headers of the C library lack it
#endif

/* Gives advice about the pages that lie wholly within memory; errno stays. */
bool advise(const char* memory, size_t size, int advice) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t first = (start + page - 1) / page * page;
  const uintptr_t end = (start + size) / page * page;
  if (first >= end) return true;
  const int kept = errno;
  const bool done = madvise(reinterpret_cast<void*>(first), end - first, advice) == 0;
  errno = kept;
  return done;
}

}  // namespace

extern "C" void mtf_prefer_huge_pages(const char* memory, size_t size) {
  advise(memory, size, MADV_HUGEPAGE);
}

extern "C" bool mtf_bring_pages(const char* memory, size_t size) {
  return advise(memory, size, MADV_POPULATE_WRITE);
}
