#include "op_registry.h"

#include <atomic>
#include <memory>
#include <utility>

#include "fork_lock.h"

namespace mtf::kernels {
namespace {

constexpr int32_t kMost = 1 << 16;

// An entry is written before the count that covers it: readers and forks find the list whole.
std::atomic<const OpDefinition*> definitions[kMost];
std::atomic<int32_t> count{0};
Lock adding;

const OpDefinition* definition_at(int32_t index) noexcept {
  if (index < 0 || index >= count.load(std::memory_order_acquire)) return nullptr;
  return definitions[index].load(std::memory_order_relaxed);
}

}  // namespace

Added add_op_definition(OpDefinition definition) {
  auto made = std::make_unique<const OpDefinition>(std::move(definition));
  const LockGuard guard(adding);
  if (const OpDefinition* present = find_op_definition(made->name)) {
    return present->line == made->line ? Added::kSameIsThere : Added::kOtherIsThere;
  }
  const int32_t index = count.load(std::memory_order_relaxed);
  if (index == kMost) return Added::kNoRoom;
  definitions[index].store(made.release(), std::memory_order_relaxed);
  count.store(index + 1, std::memory_order_release);
  return Added::kYes;
}

const OpDefinition* find_op_definition(std::string_view name) noexcept {
  for (int32_t index = 0; const OpDefinition* definition = definition_at(index); ++index) {
    if (definition->name == name) return definition;
  }
  return nullptr;
}

}  // namespace mtf::kernels

using mtf::kernels::OpDefinition;

int32_t mtf_op_definition_count() {
  return mtf::kernels::count.load(std::memory_order_acquire);
}

const char* mtf_op_definition_line(int32_t index) {
  const OpDefinition* definition = mtf::kernels::definition_at(index);
  return definition == nullptr ? nullptr : definition->line.c_str();
}

mtf_shape_function mtf_op_definition_shape_function(int32_t index) {
  const OpDefinition* definition = mtf::kernels::definition_at(index);
  return definition == nullptr ? nullptr : definition->shape_function;
}
