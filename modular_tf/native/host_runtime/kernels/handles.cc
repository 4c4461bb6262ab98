#include "handles.h"

#include <atomic>
#include <cstdio>
#include <new>

#include "misuse.h"

namespace mtf::kernels {
namespace {

// No address that a program can have: 16 bits that mark it, kind, generation, index, four zeros.
constexpr uint64_t kMark = 0x4D54;
constexpr int kIndexBits = 20, kGenerationBits = 20, kKindBits = 4;
constexpr int kIndexAt = 4, kGenerationAt = kIndexAt + kIndexBits;
constexpr int kKindAt = kGenerationAt + kGenerationBits, kMarkAt = kKindAt + kKindBits;
constexpr uint32_t kMostGenerations = 1u << kGenerationBits;
constexpr uint32_t kPage = 1024, kPages = (1u << kIndexBits) / kPage;

struct Slot {
  std::atomic<void*> object{nullptr};
  std::atomic<uint32_t> tag{0};  // generation and kind; kind 0 while the slot is free
  std::atomic<uint32_t> next_free{0};  // index + 1; 0: none
};

constexpr uint32_t tag_of(uint32_t generation, HandleKind kind) {
  return generation << kKindBits | static_cast<uint32_t>(kind);
}

// Pages are never freed, so that a slot can be looked at at any time.
std::atomic<Slot*> pages[kPages];

// The free slots, as a stack: index + 1 of the first one, and a count of changes above it, so that a
// slot which was taken and given back meanwhile is not mistaken. No lock, so that forks find it whole.
std::atomic<uint64_t> first_free{0};
std::atomic<uint32_t> used{0};  // slots that were ever in use
std::atomic<int64_t> alive[1u << kKindBits];

Slot* slot_at(uint32_t index) {
  Slot* page = pages[index / kPage].load(std::memory_order_acquire);
  return page == nullptr ? nullptr : page + index % kPage;
}

// Of an index that was in use before.
Slot& known_slot(uint32_t index) {
  return pages[index / kPage].load(std::memory_order_acquire)[index % kPage];
}

bool make_page(uint32_t index) {
  std::atomic<Slot*>& page = pages[index / kPage];
  if (page.load(std::memory_order_acquire) != nullptr) return true;
  Slot* made = new (std::nothrow) Slot[kPage];
  if (made == nullptr) return false;
  Slot* expected = nullptr;
  if (!page.compare_exchange_strong(expected, made)) delete[] made;
  return true;
}

// The index of a slot for a new handle; -1 where there is none.
int64_t take_slot() {
  uint64_t head = first_free.load(std::memory_order_acquire);
  while (const auto first = static_cast<uint32_t>(head)) {
    const uint32_t next = known_slot(first - 1).next_free.load(std::memory_order_relaxed);
    const uint64_t changed = ((head >> 32) + 1) << 32 | next;
    if (first_free.compare_exchange_weak(head, changed, std::memory_order_acq_rel)) return first - 1;
  }
  uint32_t index = used.load();
  do {
    if (index == kPages * kPage || !make_page(index)) return -1;
  } while (!used.compare_exchange_weak(index, index + 1));
  return index;
}

void give_slot_back(uint32_t index) {
  uint64_t head = first_free.load(std::memory_order_relaxed);
  uint64_t changed;
  do {
    known_slot(index).next_free.store(static_cast<uint32_t>(head), std::memory_order_relaxed);
    changed = ((head >> 32) + 1) << 32 | (index + 1);
  } while (!first_free.compare_exchange_weak(head, changed, std::memory_order_acq_rel));
}

struct Parts {
  uint32_t index, tag;
  Slot* slot;  // NULL: it is no handle
};

Parts parts_of(const void* handle, HandleKind kind) {
  const uint64_t number = reinterpret_cast<uintptr_t>(handle);
  const auto index = static_cast<uint32_t>(number >> kIndexAt & ((1u << kIndexBits) - 1));
  const auto generation = static_cast<uint32_t>(number >> kGenerationAt & (kMostGenerations - 1));
  const uint64_t expected = kMark << kKindBits | static_cast<uint64_t>(kind);
  const bool is_ours = number >> kKindAt == expected && (number & 0xF) == 0;
  return {index, tag_of(generation, kind), is_ours ? slot_at(index) : nullptr};
}

const char* name_of(HandleKind kind) {
  switch (kind) {
    case HandleKind::kTensor: return "TF_Tensor";
    case HandleKind::kKernelBuilder: return "TF_KernelBuilder";
    case HandleKind::kConstruction: return "TF_OpKernelConstruction";
    case HandleKind::kContext: return "TF_OpKernelContext";
    case HandleKind::kDone: return "TF_AsyncOpKernelDoneCallback";
    case HandleKind::kOpBuilder: return "TF_OpDefinitionBuilder";
    case HandleKind::kVariableLocks: return "TF_VariableInputLockHolder";
  }
  return "handle";
}

Rule rule_of(HandleKind kind) {
  if (kind == HandleKind::kConstruction) return kRuleConstructionEnded;
  return kind == HandleKind::kContext ? kRuleContextEnded : kRuleHandleInUse;
}

}  // namespace

void* new_handle(HandleKind kind, void* object) noexcept {
  const int64_t index = take_slot();
  if (index < 0) return nullptr;
  Slot* slot = &known_slot(static_cast<uint32_t>(index));
  const uint32_t generation = (slot->tag.load(std::memory_order_relaxed) >> kKindBits) + 1;
  const uint32_t tag = tag_of(generation % kMostGenerations, kind);
  slot->object.store(object, std::memory_order_release);
  slot->tag.store(tag, std::memory_order_release);
  alive[static_cast<int>(kind)].fetch_add(1, std::memory_order_relaxed);
  const uint64_t number = kMark << kMarkAt | uint64_t{static_cast<uint8_t>(kind)} << kKindAt |
                          uint64_t{generation % kMostGenerations} << kGenerationAt |
                          static_cast<uint64_t>(index) << kIndexAt;
  return reinterpret_cast<void*>(number);
}

void* find_object(const void* handle, HandleKind kind) noexcept {
  const Parts parts = parts_of(handle, kind);
  if (parts.slot == nullptr) return nullptr;
  if (parts.slot->tag.load(std::memory_order_acquire) != parts.tag) return nullptr;
  void* object = parts.slot->object.load(std::memory_order_acquire);
  // Another thread may have ended it meanwhile, and the slot may have an object of another kind.
  return parts.slot->tag.load(std::memory_order_relaxed) == parts.tag ? object : nullptr;
}

void* end_handle(const void* handle, HandleKind kind) noexcept {
  const Parts parts = parts_of(handle, kind);
  if (parts.slot == nullptr) return nullptr;
  void* object = parts.slot->object.load(std::memory_order_relaxed);
  uint32_t expected = parts.tag;
  const uint32_t freed = parts.tag >> kKindBits << kKindBits;  // kind 0
  if (!parts.slot->tag.compare_exchange_strong(expected, freed)) return nullptr;
  alive[static_cast<int>(kind)].fetch_sub(1, std::memory_order_relaxed);
  give_slot_back(parts.index);
  return object;
}

int64_t count_handles(HandleKind kind) noexcept {
  return alive[static_cast<int>(kind)].load(std::memory_order_relaxed);
}

void report_misuse(const char* function, const void* handle, HandleKind kind) noexcept {
  char text[240];
  if (handle == nullptr) {
    std::snprintf(text, sizeof text, "%s: expected a %s, found NULL", function, name_of(kind));
  } else {
    std::snprintf(text, sizeof text,
                  "%s: %p is no %s in use: it was deleted, its call has returned, or it never was",
                  function, handle, name_of(kind));
  }
  report_misuse_text(rule_of(kind), text);
}

}  // namespace mtf::kernels
