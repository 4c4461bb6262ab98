// The functions by which a plugin defines an op. What it says is stored as it is: Python reads it.
#include "op_definition.h"

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "copied_text.h"
#include "fork_lock.h"
#include "handles.h"
#include "misuse.h"
#include "modular_tf/ops.h"

namespace mtf::kernels {
namespace {

// -- the list of the process's op definitions, which only grows --

struct OpDefinition {
  std::string name;
  std::string record;
  bool is_stateful = false;
};

constexpr int32_t kMost = 1 << 16;

// An entry is written before the count that covers it: readers and forks find the list whole.
std::atomic<const OpDefinition*> definitions[kMost];
std::atomic<int32_t> count{0};
Lock adding;

const OpDefinition* definition_at(int32_t index) noexcept {
  if (index < 0 || index >= count.load(std::memory_order_acquire)) return nullptr;
  return definitions[index].load(std::memory_order_relaxed);
}

// Returns false where the list is full.
bool add_op_definition(std::unique_ptr<const OpDefinition> definition) {
  const LockGuard guard(adding);
  const int32_t index = count.load(std::memory_order_relaxed);
  if (index == kMost) return false;
  definitions[index].store(definition.release(), std::memory_order_relaxed);
  count.store(index + 1, std::memory_order_release);
  return true;
}

// -- builders --

struct OpBuilder {
  std::string name;
  std::string flags;
  std::string specs;              // each begins with NUL and the letter of its kind
  const char* missing = nullptr;  // the function that was given NULL for a text
  bool is_incomplete = false;     // memory ran out
};

OpBuilder* find_builder(TF_OpDefinitionBuilder* handle, const char* function) noexcept {
  return checked<OpBuilder>(handle, HandleKind::kOpBuilder, function);
}

// Runs `change(builder)`; notes where memory ran out, since there is no status to report it.
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

void add_spec(TF_OpDefinitionBuilder* handle, const char* function, char kind,
              const char* spec) noexcept {
  change_builder(handle, function, [&](OpBuilder& builder) {
    if (spec == nullptr) {
      builder.missing = function;
    } else {
      builder.specs.append({'\0', kind}).append(spec, mtf_text_length(spec));
    }
  });
}

// Setting is all that these functions do in TensorFlow too, whatever the value says.
void add_flag(TF_OpDefinitionBuilder* handle, const char* function, char flag) noexcept {
  change_builder(handle, function, [&](OpBuilder& builder) { builder.flags += flag; });
}

void register_definition(OpBuilder& builder, TF_Status* status) {
  if (builder.is_incomplete) throw std::bad_alloc();
  if (builder.missing != nullptr) {
    const std::string text = "op " + builder.name + ": " + builder.missing + " was given NULL";
    keep_misuse_text(kRuleDefinitionText, text.c_str());
    return TF_SetStatus(status, TF_INVALID_ARGUMENT, text.c_str());
  }
  auto made = std::make_unique<OpDefinition>();
  made->record = builder.name + '\0' + builder.flags + builder.specs;
  made->is_stateful = builder.flags.find('S') != std::string::npos;
  made->name = std::move(builder.name);
  if (!add_op_definition(std::move(made))) {
    return TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "too many ops are defined");
  }
  TF_SetStatus(status, TF_OK, "");
}

}  // namespace
}  // namespace mtf::kernels

using namespace mtf::kernels;

int32_t mtf_op_definition_count() { return count.load(std::memory_order_acquire); }

const char* mtf_op_definition_record(int32_t index, size_t* size) {
  const OpDefinition* definition = definition_at(index);
  *size = definition == nullptr ? 0 : definition->record.size();
  return definition == nullptr ? nullptr : definition->record.data();
}

TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char* op_name) {
  try {
    auto builder = std::make_unique<OpBuilder>();
    if (op_name == nullptr) builder->missing = __func__;
    if (op_name != nullptr) builder->name.assign(op_name, mtf_text_length(op_name));
    void* handle = new_handle(HandleKind::kOpBuilder, builder.get());
    if (handle != nullptr) builder.release();
    return static_cast<TF_OpDefinitionBuilder*>(handle);
  } catch (...) {
    return nullptr;
  }
}

void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder* builder, const char* attr_spec) {
  add_spec(builder, __func__, 'a', attr_spec);
}

void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder* builder, const char* input_spec) {
  add_spec(builder, __func__, 'i', input_spec);
}

void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder* builder, const char* output_spec) {
  add_spec(builder, __func__, 'o', output_spec);
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

// Shape functions are never run.
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
  } catch (...) {
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for the definition of an op");
  }
}

void TF_DeleteOpDefinitionBuilder(TF_OpDefinitionBuilder* builder) {
  if (builder == nullptr || find_builder(builder, __func__) == nullptr) return;
  delete static_cast<OpBuilder*>(end_handle(builder, HandleKind::kOpBuilder));
}

int TF_OpIsStateful(const char* op_name, TF_Status* status) {
  const std::string_view wanted = op_name == nullptr ? "" : op_name;
  for (int32_t index = 0; const OpDefinition* definition = definition_at(index); ++index) {
    if (definition->name == wanted) {
      TF_SetStatus(status, TF_OK, "");
      return definition->is_stateful ? 1 : 0;
    }
  }
  TF_SetStatus(status, TF_NOT_FOUND, "no plugin has registered an op of that name");
  return 0;
}
