#include "library.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "fork_lock.h"
#include "guard.h"

namespace {

// Whether a mapped library has `address` in a segment of code. dl_iterate_phdr would know, but takes a
// lock that a forked child of glibc may find taken for ever; this takes none.
bool in_code_of_library(uintptr_t address) {
#ifdef DLFO_STRUCT_HAS_EH_DBASE  // glibc 2.35
  struct dl_find_object object;
  if (_dl_find_object(reinterpret_cast<void*>(address), &object) != 0) return false;
  const auto* base = static_cast<const char*>(object.dlfo_map_start);
  ElfW(Ehdr) header;
  if (mtf_try_read(base, &header, sizeof header) == 0) return false;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  for (int i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment;  // they need not be part of what is mapped
    const char* place = base + header.e_phoff + i * sizeof segment;
    if (mtf_try_read(place, &segment, sizeof segment) == 0) return false;
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    if (address - object.dlfo_link_map->l_addr - segment.p_vaddr < segment.p_memsz) return true;
  }
#else
  (void)address;
#endif
  return false;
}

struct Listing {
  char* buffer;
  size_t size;
  size_t used;
  uint64_t unmapped;
};

int list_object(struct dl_phdr_info* info, size_t, void* data) {
  auto* listing = static_cast<Listing*>(data);
  const uint64_t address = info->dlpi_addr;
  const size_t name_size = std::strlen(info->dlpi_name) + 1;
  const size_t end = listing->used + sizeof address + name_size;
  if (end <= listing->size) {
    std::memcpy(listing->buffer + listing->used, &address, sizeof address);
    std::memcpy(listing->buffer + listing->used + sizeof address, info->dlpi_name, name_size);
  }
  listing->used = end;
  listing->unmapped = info->dlpi_subs;
  return 0;
}

// Code that no library is known to own: a JIT's trampolines, for one. Slow, and asked on a miss only.
bool in_executable_mapping(uintptr_t address) {
  FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return false;
  char line[512];
  bool found = false;
  while (!found && std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long start = 0, end = 0;
    char permissions[5] = "";
    if (std::sscanf(line, "%lx-%lx %4s", &start, &end, permissions) != 3) continue;
    found = address >= start && address < end && permissions[2] == 'x';
  }
  std::fclose(maps);
  return found;
}

// The kernel checks the address when it copies into a pipe: EFAULT instead of a fault here.
bool try_read_through_pipe(const void* source, void* destination, size_t size) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  constexpr size_t kChunk = 4096;  // always fits a pipe
  size_t done = 0;
  while (done < size) {
    const size_t chunk = size - done < kChunk ? size - done : kChunk;
    const ssize_t written = write(ends[1], static_cast<const char*>(source) + done, chunk);
    if (written <= 0) break;
    if (read(ends[0], static_cast<char*>(destination) + done, written) != written) break;
    done += static_cast<size_t>(written);
  }
  close(ends[0]);
  close(ends[1]);
  return done == size;
}

}  // namespace

extern "C" mtf_error* mtf_library_open(const char* path, int flags, void** handle) {
  mtf::Error error = mtf::guarded({nullptr, "dlopen", path},
                                  [&](TF_Status*) { *handle = dlopen(path, flags); });
  if (error || *handle != nullptr) return error.release();
  return mtf::make_error(TF_NOT_FOUND, dlerror());
}

extern "C" void* mtf_library_find(const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  dlerror();
  return handle;
}

extern "C" int mtf_library_address(const char* path, uintptr_t* address) {
  void* handle = mtf_library_find(path);
  if (handle == nullptr) return 0;
  struct link_map* found = nullptr;
  const bool known = dlinfo(handle, RTLD_DI_LINKMAP, &found) == 0;
  if (known) *address = found->l_addr;
  dlclose(handle);
  return known ? 1 : 0;
}

extern "C" size_t mtf_mapped_objects(char* buffer, size_t size, uint64_t* unmapped) {
  Listing listing = {buffer, size, 0, 0};
  dl_iterate_phdr(list_object, &listing);
  *unmapped = listing.unmapped;
  return listing.used;
}

extern "C" void* mtf_library_symbol(void* handle, const char* name) {
  void* address = dlsym(handle, name);
  if (address == nullptr) dlerror();
  return address;
}

extern "C" int mtf_address_owner_of(const void* address, mtf_address_owner* owner) {
  Dl_info info;
  if (dladdr(address, &info) == 0) return 0;
  *owner = {info.dli_fname, info.dli_fbase, info.dli_sname, info.dli_saddr};
  return 1;
}

extern "C" int mtf_is_executable(const void* address) {
  const auto place = reinterpret_cast<uintptr_t>(address);
  return in_code_of_library(place) || in_executable_mapping(place) ? 1 : 0;
}

extern "C" int mtf_try_read(const void* source, void* destination, size_t size) {
  if (size == 0) return 1;
  struct iovec local = {destination, size};
  struct iovec remote = {const_cast<void*>(source), size};
  const ssize_t copied = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  if (copied >= 0) return static_cast<size_t>(copied) == size ? 1 : 0;
  // A sandbox may forbid the call itself; then the address has not been judged yet.
  if (errno == EFAULT) return 0;
  return try_read_through_pipe(source, destination, size) ? 1 : 0;
}

extern "C" int mtf_demangle(const char* name, char* text, size_t size) {
  const std::unique_ptr<char, decltype(&std::free)> found(
      abi::__cxa_demangle(name, nullptr, nullptr, nullptr), &std::free);
  if (found == nullptr) return 0;
  const size_t length = std::strlen(found.get());
  if (length >= size) return 0;
  std::memcpy(text, found.get(), length + 1);
  return 1;
}

extern "C" int64_t mtf_try_strlen(const char* source, size_t limit) {
  // In pieces that never cross a page, so that a string at the end of its mapping is still read.
  constexpr size_t kPiece = 256;
  char piece[kPiece];
  for (size_t done = 0; done < limit;) {
    const size_t to_boundary = kPiece - (reinterpret_cast<uintptr_t>(source) + done) % kPiece;
    if (mtf_try_read(source + done, piece, to_boundary) == 0) return -1;
    if (const void* end = std::memchr(piece, 0, to_boundary)) {
      const size_t length = done + static_cast<size_t>(static_cast<const char*>(end) - piece);
      return length <= limit ? static_cast<int64_t>(length) : -1;
    }
    done += to_boundary;
  }
  return -1;
}

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
