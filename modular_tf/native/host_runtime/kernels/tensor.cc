#include "tensor.h"

#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "entry.h"

namespace mtf::kernels {

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
