// The functions by which a plugin defines an op. Nothing is judged before it is registered.
#include "op_definition.h"

#include <atomic>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "copied_text.h"
#include "fork_lock.h"
#include "handles.h"
#include "misuse.h"
#include "modular_tf/ops.h"
#include "op_grammar.h"

namespace mtf::kernels {
namespace {

// -- the list of the process's op definitions, which only grows --

struct OpDefinition {
  std::string name;
  std::string line;  // canonical
  bool is_stateful = false;
};

enum class Added { kYes, kSameIsThere, kOtherIsThere, kNoRoom };

constexpr int32_t kMost = 1 << 16;

// An entry is written before the count that covers it: readers and forks find the list whole.
std::atomic<const OpDefinition*> definitions[kMost];
std::atomic<int32_t> count{0};
Lock adding;

const OpDefinition* definition_at(int32_t index) noexcept {
  if (index < 0 || index >= count.load(std::memory_order_acquire)) return nullptr;
  return definitions[index].load(std::memory_order_relaxed);
}

const OpDefinition* find_op_definition(std::string_view name) noexcept {
  for (int32_t index = 0; const OpDefinition* definition = definition_at(index); ++index) {
    if (definition->name == name) return definition;
  }
  return nullptr;
}

// Adds a definition unless its name is taken.
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

// -- builders --

struct OpBuilder {
  OpSpecs specs;
  std::string flags;
  const char* missing = nullptr;  // the function that was given NULL for a text
  bool is_incomplete = false;     // memory ran out
};

OpBuilder* find_builder(TF_OpDefinitionBuilder* handle, const char* function) noexcept {
  return checked<OpBuilder>(handle, HandleKind::kOpBuilder, function);
}

// Runs `change(builder)`; notes where memory ran out, since there is no status to tell it.
template <class Change>
void change_builder(TF_OpDefinitionBuilder* handle, const char* function, Change change) noexcept {
  OpBuilder* builder = find_builder(handle, function);
  if (builder == nullptr) return;
  try {
    change(*builder);
  } catch (...) {
    builder->is_incomplete = true;
  }
}

void add_spec(TF_OpDefinitionBuilder* handle, const char* function, const char* spec,
              std::vector<std::string> OpSpecs::*list) noexcept {
  change_builder(handle, function, [&](OpBuilder& builder) {
    if (spec == nullptr) {
      builder.missing = function;
    } else {
      (builder.specs.*list).emplace_back(spec, mtf_text_length(spec));
    }
  });
}

// Setting is all that these functions do in TensorFlow too, whatever the value says.
void add_flag(TF_OpDefinitionBuilder* handle, const char* function, char flag) noexcept {
  change_builder(handle, function, [&](OpBuilder& builder) {
    if (builder.flags.find(flag) == std::string::npos) builder.flags += flag;
  });
}

std::string flags_in_order(const OpBuilder& builder) {
  std::string flags;
  for (char flag : {'S', 'C', 'A', 'U', 'D'}) {
    if (builder.flags.find(flag) != std::string::npos) flags += flag;
  }
  return flags;
}

OpDefinition definition_of(const OpBuilder& builder) {
  if (builder.is_incomplete) throw std::bad_alloc();
  if (builder.missing != nullptr) {
    throw OpError{"op " + builder.specs.name + ": " + builder.missing + " was given NULL"};
  }
  OpDefinition definition;
  definition.name = builder.specs.name;
  definition.line =
      definition.name + "|" + flags_in_order(builder) + "|" + canonical_specs(builder.specs);
  definition.is_stateful = builder.flags.find('S') != std::string::npos;
  return definition;
}

void register_definition(const OpBuilder& builder, TF_Status* status) {
  switch (add_op_definition(definition_of(builder))) {
    case Added::kYes:
    case Added::kSameIsThere: return TF_SetStatus(status, TF_OK, "");
    case Added::kNoRoom:
      return TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "too many ops are defined");
    case Added::kOtherIsThere:
      const std::string text = "op " + builder.specs.name + " is defined already, and differently";
      keep_misuse_text(kRuleDefinitionUnique, text.c_str());
      return TF_SetStatus(status, TF_ALREADY_EXISTS, text.c_str());
  }
}

}  // namespace
}  // namespace mtf::kernels

using namespace mtf::kernels;

int32_t mtf_op_definition_count() { return count.load(std::memory_order_acquire); }

const char* mtf_op_definition_line(int32_t index) {
  const OpDefinition* definition = definition_at(index);
  return definition == nullptr ? nullptr : definition->line.c_str();
}

TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char* op_name) {
  try {
    auto builder = std::make_unique<OpBuilder>();
    if (op_name == nullptr) builder->missing = __func__;
    if (op_name != nullptr) builder->specs.name.assign(op_name, mtf_text_length(op_name));
    void* handle = new_handle(HandleKind::kOpBuilder, builder.get());
    if (handle != nullptr) builder.release();
    return static_cast<TF_OpDefinitionBuilder*>(handle);
  } catch (...) {
    return nullptr;
  }
}

void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder* builder, const char* attr_spec) {
  add_spec(builder, __func__, attr_spec, &OpSpecs::attrs);
}

void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder* builder, const char* input_spec) {
  add_spec(builder, __func__, input_spec, &OpSpecs::inputs);
}

void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder* builder, const char* output_spec) {
  add_spec(builder, __func__, output_spec, &OpSpecs::outputs);
}

void TF_OpDefinitionBuilderSetIsCommutative(TF_OpDefinitionBuilder* builder, bool) {
  add_flag(builder, __func__, 'C');
}

void TF_OpDefinitionBuilderSetIsAggregate(TF_OpDefinitionBuilder* builder, bool) {
  add_flag(builder, __func__, 'A');
}

void TF_OpDefinitionBuilderSetIsStateful(TF_OpDefinitionBuilder* builder, bool) {
  add_flag(builder, __func__, 'S');
}

void TF_OpDefinitionBuilderSetAllowsUninitializedInput(TF_OpDefinitionBuilder* builder, bool) {
  add_flag(builder, __func__, 'U');
}

void TF_OpDefinitionBuilderDeprecated(TF_OpDefinitionBuilder* builder, int, const char*) {
  add_flag(builder, __func__, 'D');
}

// Shape functions are never run (shape_functions.cc).
void TF_OpDefinitionBuilderSetShapeInferenceFunction(TF_OpDefinitionBuilder* builder,
                                                     void (*)(TF_ShapeInferenceContext*, TF_Status*)) {
  find_builder(builder, __func__);
}

void TF_RegisterOpDefinition(TF_OpDefinitionBuilder* builder, TF_Status* status) {
  if (find_builder(builder, __func__) == nullptr) {
    return TF_SetStatus(status, TF_INVALID_ARGUMENT, "the builder of the op is not in use");
  }
  // Its second end, perhaps on another thread, finds NULL.
  const std::unique_ptr<OpBuilder> owned(
      static_cast<OpBuilder*>(end_handle(builder, HandleKind::kOpBuilder)));
  if (owned == nullptr) return TF_SetStatus(status, TF_ABORTED, "registered by another thread");
  try {
    register_definition(*owned, status);
  } catch (const OpError& error) {
    keep_misuse_text(kRuleDefinitionText, error.text.c_str());
    TF_SetStatus(status, TF_INVALID_ARGUMENT, error.text.c_str());
  } catch (...) {
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for the definition of an op");
  }
}

void TF_DeleteOpDefinitionBuilder(TF_OpDefinitionBuilder* builder) {
  if (builder == nullptr || find_builder(builder, __func__) == nullptr) return;
  delete static_cast<OpBuilder*>(end_handle(builder, HandleKind::kOpBuilder));
}

int TF_OpIsStateful(const char* op_name, TF_Status* status) {
  const OpDefinition* definition = op_name == nullptr ? nullptr : find_op_definition(op_name);
  if (definition == nullptr) {
    TF_SetStatus(status, TF_NOT_FOUND, "no plugin has registered an op of that name");
    return 0;
  }
  TF_SetStatus(status, TF_OK, "");
  return definition->is_stateful ? 1 : 0;
}
