#include "plugin_code.h"

#include <execinfo.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "plugin_call.h"
#include "fork_lock.h"

namespace {

constexpr size_t kMostSegments = 4096;
constexpr int kMostFrames = 64;

struct Segment {
  uintptr_t begin;
  uintptr_t end;
  const mtf_plugin* plugin;
  bool may_cancel;  // the main thread
};

Segment segments[kMostSegments];
std::atomic<size_t> segment_count{0};  // what lies below it does not change any more
mtf::Lock adding;

struct Search {
  uintptr_t base;
  const mtf_plugin* plugin;
  bool has_room;
};

// Memory of a mapped object from some place on, as far as its program headers say that there is some.
template <class Item>
struct Part {
  const Item* items = nullptr;
  size_t size = 0;  // bytes

  size_t count() const { return size / sizeof(Item); }
};

template <class Item>
Part<Item> part_of(const struct dl_phdr_info& object, uintptr_t place, size_t most) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    const size_t offset = place - (object.dlpi_addr + segment.p_vaddr);
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_R) == 0 || offset >= segment.p_memsz) continue;
    return {reinterpret_cast<const Item*>(place), std::min<size_t>(segment.p_memsz - offset, most)};
  }
  return {};
}

// What a mapped object imports, as its dynamic section says. That may be damaged: nothing is read where
// the object has no memory.
class Imports {
 public:
  explicit Imports(const struct dl_phdr_info& object) {
    for (int i = 0; i < object.dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = object.dlpi_phdr[i];
      if (segment.p_type != PT_DYNAMIC) continue;
      take(object, part_of<ElfW(Dyn)>(object, object.dlpi_addr + segment.p_vaddr, segment.p_memsz));
    }
  }

  template <size_t N>
  bool have(const char (&name)[N]) const {
    return has(plt_, name, N) || has(others_, name, N);
  }

 private:
  void take(const struct dl_phdr_info& object, Part<ElfW(Dyn)> dynamic) {
    constexpr size_t kAll = SIZE_MAX;
    uintptr_t symbols = 0, names = 0, plt = 0, others = 0;
    size_t plt_size = 0, others_size = 0;
    for (size_t i = 0; i < dynamic.count() && dynamic.items[i].d_tag != DT_NULL; ++i) {
      const ElfW(Dyn)& entry = dynamic.items[i];
      // The dynamic linker has added the base to most of them already.
      const uintptr_t value = entry.d_un.d_ptr;
      const uintptr_t place = value < object.dlpi_addr ? object.dlpi_addr + value : value;
      if (entry.d_tag == DT_SYMTAB) symbols = place;
      if (entry.d_tag == DT_STRTAB) names = place;
      if (entry.d_tag == DT_JMPREL) plt = place;
      if (entry.d_tag == DT_RELA) others = place;
      if (entry.d_tag == DT_PLTRELSZ) plt_size = value;
      if (entry.d_tag == DT_RELASZ) others_size = value;
    }
    symbols_ = part_of<ElfW(Sym)>(object, symbols, kAll);
    names_ = part_of<char>(object, names, kAll);
    plt_ = part_of<ElfW(Rela)>(object, plt, plt_size);
    others_ = part_of<ElfW(Rela)>(object, others, others_size);
  }

  bool has(Part<ElfW(Rela)> relocations, const char* name, size_t size) const {
    for (size_t i = 0; i < relocations.count(); ++i) {
      const size_t at = ELF64_R_SYM(relocations.items[i].r_info);
      if (at == 0 || at >= symbols_.count()) continue;
      const size_t start = symbols_.items[at].st_name;
      if (start >= names_.size || names_.size - start < size) continue;
      if (std::memcmp(names_.items + start, name, size) == 0) return true;
    }
    return false;
  }

  Part<ElfW(Sym)> symbols_;
  Part<char> names_;
  Part<ElfW(Rela)> plt_, others_;
};

int add_segments(struct dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  if (info->dlpi_addr != search->base) return 0;
  const Imports imports(*info);
  const bool may_cancel = imports.have("pthread_cancel") || imports.have("dlsym") || imports.have("dlvsym");
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
    segments[at] = {begin, begin + segment.p_memsz, search->plugin, may_cancel};
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

size_t plugins_that_may_cancel(const mtf_plugin** found, size_t most) noexcept {
  size_t number = 0;
  const size_t count = segment_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count && number < most; ++i) {
    const mtf_plugin* const plugin = segments[i].plugin;
    if (!segments[i].may_cancel || std::find(found, found + number, plugin) != found + number) continue;
    found[number++] = plugin;
  }
  return number;
}

}  // namespace mtf

extern "C" int mtf_plugin_has_code(const mtf_plugin* plugin, uintptr_t base) {
  const mtf::LockGuard lock(adding);
  Search search = {base, plugin, true};
  dl_iterate_phdr(add_segments, &search);
  return search.has_room ? 0 : -1;
}
