#include "tensor.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "entry.h"

namespace mtf::kernels {
namespace {

constexpr DataTypeFacts kTypes[] = {
    {TF_FLOAT, "float", 4},
    {TF_DOUBLE, "double", 8},
    {TF_INT32, "int32", 4},
    {TF_UINT8, "uint8", 1},
    {TF_INT16, "int16", 2},
    {TF_INT8, "int8", 1},
    {TF_STRING, "string", 0},
    {TF_COMPLEX64, "complex64", 8},
    {TF_INT64, "int64", 8},
    {TF_BOOL, "bool", 1},
    {TF_QINT8, "qint8", 1},
    {TF_QUINT8, "quint8", 1},
    {TF_QINT32, "qint32", 4},
    {TF_BFLOAT16, "bfloat16", 2},
    {TF_QINT16, "qint16", 2},
    {TF_QUINT16, "quint16", 2},
    {TF_UINT16, "uint16", 2},
    {TF_COMPLEX128, "complex128", 16},
    {TF_HALF, "half", 2},
    {TF_RESOURCE, "resource", 0},
    {TF_VARIANT, "variant", 0},
    {TF_UINT32, "uint32", 4},
    {TF_UINT64, "uint64", 8},
    {TF_FLOAT8_E5M2, "float8_e5m2", 1},
    {TF_FLOAT8_E4M3FN, "float8_e4m3fn", 1},
    {TF_FLOAT8_E4M3FNUZ, "float8_e4m3fnuz", 1},
    {TF_FLOAT8_E4M3B11FNUZ, "float8_e4m3b11fnuz", 1},
    {TF_FLOAT8_E5M2FNUZ, "float8_e5m2fnuz", 1},
    {TF_INT4, "int4", 1},
    {TF_UINT4, "uint4", 1},
    {TF_INT2, "int2", 1},
    {TF_UINT2, "uint2", 1},
    {TF_FLOAT4_E2M1FN, "float4_e2m1fn", 1},
};

}  // namespace

const DataTypeFacts* find_data_type(int32_t number) noexcept {
  constexpr int32_t kCount = sizeof kTypes / sizeof kTypes[0];
  return number >= 1 && number <= kCount ? &kTypes[number - 1] : nullptr;
}

size_t element_size(int32_t type) noexcept {
  constexpr size_t kVariantSize = 64, kResourceSize = 200;  // as TensorFlow's, opaque to plugins
  switch (type) {
    case TF_STRING: return sizeof(TF_TString);
    case TF_RESOURCE: return kResourceSize;
    case TF_VARIANT: return kVariantSize;
    default: {
      const DataTypeFacts* facts = find_data_type(type);
      return facts == nullptr ? 0 : facts->size;
    }
  }
}

const char* type_name(int32_t type) noexcept {
  const DataTypeFacts* facts = find_data_type(without_reference(type));
  if (facts != nullptr && !is_reference(type)) return facts->name;
  thread_local char text[40];
  if (facts != nullptr) {
    std::snprintf(text, sizeof text, "%s_ref", facts->name);
  } else {
    std::snprintf(text, sizeof text, "type %d", type);
  }
  return text;
}

}  // namespace mtf::kernels

size_t TF_DataTypeSize(TF_DataType type) {
  const auto* facts = mtf::kernels::find_data_type(static_cast<int32_t>(type));
  return facts == nullptr ? 0 : facts->size;
}

namespace mtf::kernels {
namespace {

alignas(kAlignment) char nothing[kAlignment];

// Lent memory that nobody has any more, until Python has been told. The buffers themselves are the list,
// so that neither a number nor its end needs memory, and forks find it whole.
std::atomic<Buffer*> released_lent{nullptr};
std::atomic<uint64_t> last_keeper{0};

std::atomic<const mtf_plugin_calls*> plugin_calls{nullptr};

void tell_released(Buffer* buffer) {
  buffer->next = released_lent.load(std::memory_order_relaxed);
  while (!released_lent.compare_exchange_weak(buffer->next, buffer, std::memory_order_release)) {
  }
}

void release_host(Buffer* buffer) {
  if (buffer->has_strings) {
    auto* strings = static_cast<TF_TString*>(buffer->data);
    for (size_t index = 0; index < buffer->size / sizeof *strings; ++index) {
      TF_StringDealloc(strings + index);
    }
  }
  std::free(buffer->data);
  delete buffer;
}

void release_device(Buffer* buffer) {
  buffer->place->free(buffer->place, buffer->owner, buffer->stream);
  delete buffer;
}

// Gives a plugin its memory back. What the plugin throws is a misuse: destructors do this.
void give_to_deallocator(Deallocator deallocator, void* data, size_t size, void* argument) {
  if (deallocator == nullptr) return;
  try {
    deallocator(data, size, argument);
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (const std::exception& error) {
    report_misuse_by(kRuleArguments, "a deallocator of TF_NewTensor threw: %s", error.what());
  } catch (...) {
    report_misuse_by(kRuleArguments, "a deallocator of TF_NewTensor threw an exception of an unknown type");
  }
}

void give_back(void* ended) {
  const auto* buffer = static_cast<Buffer*>(ended);
  give_to_deallocator(buffer->deallocator, buffer->data, buffer->size, buffer->argument);
}

void release_of_plugin(Buffer* buffer) {
  const std::unique_ptr<Buffer> ended(buffer);
  const mtf_plugin_calls* calls = plugin_calls.load(std::memory_order_acquire);
  if (calls == nullptr || buffer->plugin == nullptr) return give_back(buffer);
  calls->run(buffer->plugin, "the deallocator of a tensor", give_back, buffer);
}

void release_lent(Buffer* buffer) {
  buffer->keeper == 0 ? delete buffer : tell_released(buffer);
}

BufferRef new_buffer(void (*release)(Buffer*), void* data, size_t size) {
  auto* buffer = new (std::nothrow) Buffer;
  if (buffer != nullptr) {
    buffer->release = release;
    buffer->data = data;
    buffer->size = size;
  }
  return BufferRef(buffer);
}

// Host memory, aligned; elements that are objects are made empty. Empty where there is none.
BufferRef new_host_buffer(size_t size, bool has_strings) noexcept {
  const size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  if (rounded < size) return {};
  BufferRef buffer = new_buffer(release_host, nullptr, size);
  if (!buffer) return buffer;
  buffer->data = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
  if (buffer->data == nullptr) return {};
  if (has_strings) std::memset(buffer->data, 0, size);  // empty small strings
  buffer->is_own = true;
  buffer->has_strings = has_strings;
  return buffer;
}

// Memory of a plugin's, which `deallocator` gets back.
BufferRef new_plugin_buffer(void* data, size_t size, Deallocator deallocator,
                            void* argument) noexcept {
  BufferRef buffer = new_buffer(release_of_plugin, data, size);
  if (!buffer) return buffer;
  buffer->deallocator = deallocator;
  const mtf_plugin_calls* calls = plugin_calls.load(std::memory_order_acquire);
  if (calls != nullptr) buffer->plugin = calls->plugin_of_this_thread();
  buffer->argument = argument;
  return buffer;
}

}  // namespace

BufferRef::~BufferRef() {
  if (buffer_ == nullptr) return;
  if (buffer_->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  buffer_->release(buffer_);
}

void* empty_data() noexcept { return nothing; }

void attach_plugin_calls(const mtf_plugin_calls* calls) {
  plugin_calls.store(calls, std::memory_order_release);
}

BufferRef new_device_buffer(void* data, size_t size, void* owner,
                            const mtf_kernel_place* place) noexcept {
  BufferRef buffer = new_buffer(release_device, data, size);
  if (!buffer) return buffer;
  buffer->owner = owner;
  buffer->place = place;
  buffer->is_own = true;
  buffer->is_on_host = place->is_host != 0;
  return buffer;
}

BufferRef new_lent_buffer(void* data, size_t size, bool is_on_host) noexcept {
  BufferRef buffer = new_buffer(release_lent, data, size);
  if (buffer) buffer->is_on_host = is_on_host;
  return buffer;
}

uint64_t new_keeper() noexcept {
  return last_keeper.fetch_add(1) + 1;
}

int32_t take_released_keepers(uint64_t* numbers, int32_t most) noexcept {
  int32_t taken = 0;
  Buffer* first = released_lent.exchange(nullptr, std::memory_order_acquire);
  for (; taken < most && first != nullptr; ++taken) {
    const std::unique_ptr<Buffer> told(std::exchange(first, first->next));
    numbers[taken] = told->keeper;
  }
  while (first != nullptr) tell_released(std::exchange(first, first->next));
  return taken;
}

bool size_of(const Dims& dims, int32_t type, size_t* size) {
  const int64_t elements = dims.elements();
  return elements >= 0 &&
         !__builtin_mul_overflow(static_cast<size_t>(elements), element_size(type), size);
}

TF_Tensor* new_tensor_handle(Tensor tensor) noexcept {
  auto* object = new (std::nothrow) Tensor(std::move(tensor));
  if (object == nullptr) return nullptr;
  void* handle = new_handle(HandleKind::kTensor, object);
  if (handle == nullptr) delete object;
  return static_cast<TF_Tensor*>(handle);
}

bool allocate_on_host(Tensor* tensor, size_t size) noexcept {
  if (size == 0) return true;
  tensor->buffer = new_host_buffer(size, tensor->type == TF_STRING);
  return static_cast<bool>(tensor->buffer);
}

namespace {

bool is_aligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % kAlignment == 0; }

bool can_have(int32_t type, size_t len, size_t needed) {
  return needed <= len || (needed == 0 && type != 0);
}

// A tensor in memory of a plugin where that is aligned, else in a copy: that memory stays the plugin's.
TF_Tensor* new_tensor(int32_t type, Dims dims, BufferRef* memory) {
  Tensor tensor{{}, type, std::move(dims)};
  size_t needed = 0;
  if (!size_of(tensor.dims, type, &needed) || !can_have(type, (*memory)->size, needed)) return nullptr;
  if (is_aligned((*memory)->data) || is_object(type)) {
    tensor.buffer = *memory;
    return new_tensor_handle(std::move(tensor));
  }
  tensor.buffer = new_host_buffer((*memory)->size, false);
  if (!tensor.buffer) return nullptr;
  std::memcpy(tensor.buffer->data, (*memory)->data, (*memory)->size);
  return new_tensor_handle(std::move(tensor));
}

void bitcast(const Tensor& from, int32_t type, Tensor* to, const Dims& dims, TF_Status* status) {
  size_t size = 0;
  if (is_object(from.type) || is_object(type) || element_size(type) == 0) {
    return fail(status, TF_INVALID_ARGUMENT, "TF_TensorBitcastFrom: %s cannot be read as %s: one of them has elements without a fixed size",
                type_name(from.type), type_name(type));
  }
  size_t held = 0;
  if (!size_of(from.dims, from.type, &held) || !size_of(dims, type, &size) || size != held) {
    return fail(status, TF_INVALID_ARGUMENT,
                "TF_TensorBitcastFrom: %zu bytes as %s%s cannot be read as %zu bytes of %s%s", held,
                type_name(from.type), from.dims.text().c_str(), size, type_name(type),
                dims.text().c_str());
  }
  *to = Tensor{from.buffer, type, dims};
  succeed(status);
}

}  // namespace
}  // namespace mtf::kernels

using namespace mtf::kernels;  // the functions of the C interface

extern "C" {

TF_Tensor* TF_NewTensor(TF_DataType type, const int64_t* dims, int num_dims, void* data, size_t len,
                        void (*deallocator)(void*, size_t, void*), void* argument) {
  return entry<TF_Tensor*>(nullptr, [&]() -> TF_Tensor* {
    BufferRef memory = new_plugin_buffer(data, len, deallocator, argument);  // goes back in any case
    if (memory) return new_tensor(static_cast<int32_t>(type), Dims(dims, num_dims), &memory);
    give_to_deallocator(deallocator, data, len, argument);
    return nullptr;
  });
}

TF_Tensor* TF_AllocateTensor(TF_DataType type, const int64_t* dims, int num_dims, size_t len) {
  return entry<TF_Tensor*>(nullptr, [&]() -> TF_Tensor* {
    Tensor tensor{{}, static_cast<int32_t>(type), Dims(dims, num_dims)};
    size_t needed = 0;
    if (!size_of(tensor.dims, tensor.type, &needed)) return nullptr;
    if (len < needed && TF_DataTypeSize(type) != 0) return nullptr;
    if (!allocate_on_host(&tensor, len > needed ? len : needed)) return nullptr;
    return new_tensor_handle(std::move(tensor));
  });
}

TF_Tensor* TF_TensorMaybeMove(TF_Tensor* handle) {
  const Tensor* tensor = tensor_of(handle, __func__);
  if (tensor == nullptr) return nullptr;
  const bool may = !tensor->buffer || (tensor->buffer->is_own && !tensor->buffer->is_shared());
  return may ? handle : nullptr;
}

void TF_DeleteTensor(TF_Tensor* handle) {
  if (handle == nullptr) return;
  void* object = end_handle(handle, HandleKind::kTensor);
  if (object == nullptr) return report_misuse(__func__, handle, HandleKind::kTensor);
  entry<int>(0, [&] { delete static_cast<Tensor*>(object); return 0; });
}

TF_DataType TF_TensorType(const TF_Tensor* handle) {
  const Tensor* tensor = tensor_of(handle, __func__);
  return static_cast<TF_DataType>(tensor == nullptr ? 0 : tensor->type);
}

int TF_NumDims(const TF_Tensor* handle) {
  const Tensor* tensor = tensor_of(handle, __func__);
  return tensor == nullptr ? 0 : tensor->dims.rank();
}

int64_t TF_Dim(const TF_Tensor* handle, int index) {
  const Tensor* tensor = tensor_of(handle, __func__);
  if (tensor == nullptr) return 0;
  if (index >= 0 && index < tensor->dims.rank()) return tensor->dims[index];
  report_misuse_by(kRuleArguments, "%s: index %d of a tensor with %d dimensions", __func__, index,
                   tensor->dims.rank());
  return 0;
}

int64_t TF_TensorElementCount(const TF_Tensor* handle) {
  const Tensor* tensor = tensor_of(handle, __func__);
  return tensor == nullptr ? 0 : tensor->dims.elements();
}

size_t TF_TensorByteSize(const TF_Tensor* handle) {
  const Tensor* tensor = tensor_of(handle, __func__);
  return tensor == nullptr ? 0 : tensor->size();
}

void* TF_TensorData(const TF_Tensor* handle) {
  const Tensor* tensor = tensor_of(handle, __func__);
  return tensor == nullptr ? nullptr : tensor->data();
}

bool TF_TensorIsAligned(const TF_Tensor* handle) {
  const Tensor* tensor = tensor_of(handle, __func__);
  return tensor != nullptr && is_aligned(tensor->data());
}

void TF_SetShape(TF_Tensor* handle, const int64_t* dims, int num_dims) {
  Tensor* tensor = tensor_of(handle, __func__);
  if (tensor == nullptr) return;
  entry<int>(0, [&] {
    Dims wanted(dims, num_dims);
    size_t size = 0;
    if (size_of(wanted, tensor->type, &size) && size <= tensor->size()) {
      tensor->dims = std::move(wanted);
    } else {
      report_misuse_by(kRuleArguments, "%s: a tensor of %zu bytes cannot have the shape %s", __func__,
                       tensor->size(), wanted.text().c_str());
    }
    return 0;
  });
}

void TF_TensorBitcastFrom(const TF_Tensor* from, TF_DataType type, TF_Tensor* to,
                          const int64_t* new_dims, int num_new_dims, TF_Status* status) {
  const Tensor* source = tensor_of(from, __func__);
  Tensor* target = tensor_of(to, __func__);
  if (source == nullptr || target == nullptr) {
    return fail(status, TF_INVALID_ARGUMENT, "%s: a tensor is not in use", __func__);
  }
  with_status(status, [&] {
    bitcast(*source, static_cast<int32_t>(type), target, Dims(new_dims, num_new_dims), status);
  });
}

size_t TF_TensorDefaultAlignment(void) { return kAlignment; }

}  // extern "C"
