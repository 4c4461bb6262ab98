#include "plugin_code.h"

#include <execinfo.h>
#include <link.h>

#include <atomic>
#include <cstring>

#include "call_under_way.h"
#include "fork_lock.h"
#include "signal_place.h"

namespace {

constexpr size_t kMostSegments = 4096;
constexpr int kMostFrames = 64;

struct Segment {
  uintptr_t begin;
  uintptr_t end;
  const mtf_plugin* plugin;
  bool cancels;
};

Segment segments[kMostSegments];
std::atomic<size_t> segment_count{0};  // what lies below it does not change any more
mtf::Lock adding;

struct Search {
  uintptr_t base;
  const mtf_plugin* plugin;
  bool has_room;
};

// The parts of a mapped object's dynamic section that name what it imports.
struct Imports {
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela)* relocations[2] = {};
  size_t sizes[2] = {};

  explicit Imports(const struct dl_phdr_info* info) {
    const ElfW(Dyn)* entry = nullptr;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = info->dlpi_phdr[i];
      if (segment.p_type != PT_DYNAMIC) continue;
      entry = reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + segment.p_vaddr);
    }
    for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) take(*entry, info->dlpi_addr);
  }

  bool have(const char* name) const {
    if (symbols == nullptr || names == nullptr) return false;
    for (int part = 0; part < 2; ++part) {
      const size_t count = relocations[part] == nullptr ? 0 : sizes[part] / sizeof(ElfW(Rela));
      for (size_t i = 0; i < count; ++i) {
        const size_t at = ELF64_R_SYM(relocations[part][i].r_info);
        if (at != 0 && std::strcmp(names + symbols[at].st_name, name) == 0) return true;
      }
    }
    return false;
  }

 private:
  void take(const ElfW(Dyn)& entry, uintptr_t base) {
    // The dynamic linker has added the base to most of them already.
    const uintptr_t value = entry.d_un.d_ptr;
    const uintptr_t place = value < base ? base + value : value;
    if (entry.d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(place);
    if (entry.d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(place);
    if (entry.d_tag == DT_JMPREL) relocations[0] = reinterpret_cast<const ElfW(Rela)*>(place);
    if (entry.d_tag == DT_PLTRELSZ) sizes[0] = entry.d_un.d_val;
    if (entry.d_tag == DT_RELA) relocations[1] = reinterpret_cast<const ElfW(Rela)*>(place);
    if (entry.d_tag == DT_RELASZ) sizes[1] = entry.d_un.d_val;
  }
};

int add_segments(struct dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  if (info->dlpi_addr != search->base) return 0;
  const bool cancels = Imports(info).have("pthread_cancel");
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const size_t at = segment_count.load(std::memory_order_relaxed);
    if (at == kMostSegments) {
      search->has_room = false;
      return 1;
    }
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (mtf::plugin_at(begin) != nullptr) continue;
    segments[at] = {begin, begin + segment.p_memsz, search->plugin, cancels};
    segment_count.store(at + 1, std::memory_order_release);
  }
  return 1;
}

const mtf_plugin* plugin_of_caller(uintptr_t address) {
  return address == 0 ? nullptr : mtf::plugin_at(address - 1);
}

}  // namespace

namespace mtf {

const mtf_plugin* plugin_at(uintptr_t address) noexcept {
  const size_t count = segment_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    if (segments[i].begin <= address && address < segments[i].end) return segments[i].plugin;
  }
  return nullptr;
}

void prepare_stack_traces() noexcept {
  void* frames[4];
  backtrace(frames, 4);
}

const mtf_plugin* plugin_on_stack(const void* context) noexcept {
  if (segment_count.load(std::memory_order_acquire) == 0) return nullptr;
  if (context != nullptr) {
    const SignalPlace place = signal_place(context);
    if (const mtf_plugin* found = plugin_at(place.instruction)) return found;
    if (const mtf_plugin* found = plugin_of_caller(place.caller)) return found;
#ifndef DLFO_STRUCT_HAS_EH_DBASE  // the unwinder takes a lock of the dynamic linker's
    return nullptr;
#endif
  }
  void* frames[kMostFrames];
  const int count = backtrace(frames, kMostFrames);
  for (int i = 0; i < count; ++i) {
    const auto address = reinterpret_cast<uintptr_t>(frames[i]);
    if (const mtf_plugin* found = plugin_of_caller(address)) return found;
  }
  return nullptr;
}

const mtf_plugin* plugin_that_cancels() noexcept {
  const mtf_plugin* found = nullptr;
  const size_t count = segment_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    const mtf_plugin* plugin = segments[i].plugin;
    if (!segments[i].cancels || plugin == found) continue;
    if (found != nullptr) return nullptr;
    found = plugin;
  }
  return found;
}

}  // namespace mtf

extern "C" int mtf_plugin_has_code(const mtf_plugin* plugin, uintptr_t base) {
  const mtf::LockGuard lock(adding);
  Search search = {base, plugin, true};
  dl_iterate_phdr(add_segments, &search);
  return search.has_room ? 0 : -1;
}
