// The functions that a shape function calls, and the call of one.
#include "shape_inference.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "handles.h"
#include "misuse.h"
#include "shape.h"

namespace mtf::kernels {
namespace {

struct ShapeContext {
  std::vector<Shape> inputs, outputs;
  std::vector<std::pair<std::string, int32_t>> type_attrs;
};

struct Dimension {
  int64_t size = kUnknown;
};

ShapeContext* find_context(TF_ShapeInferenceContext* handle, const char* function) noexcept {
  return checked<ShapeContext>(handle, HandleKind::kShapeContext, function);
}

Shape* find_shape(TF_ShapeHandle* handle, const char* function) noexcept {
  return checked<Shape>(handle, HandleKind::kShape, function);
}

Dimension* find_dimension(TF_DimensionHandle* handle, const char* function) noexcept {
  return checked<Dimension>(handle, HandleKind::kDimension, function);
}

// A handle of an object made by `make()`; NULL where memory is out.
template <class Make>
void* handle_of(HandleKind kind, Make make) noexcept {
  try {
    auto object = make();
    void* handle = new_handle(kind, object.get());
    if (handle != nullptr) object.release();
    return handle;
  } catch (...) {
    return nullptr;
  }
}

TF_ShapeHandle* handle_of_shape(Shape shape) noexcept {
  return static_cast<TF_ShapeHandle*>(handle_of(
      HandleKind::kShape, [&] { return std::make_unique<Shape>(std::move(shape)); }));
}

// Runs `work()`, and sets the status to what came of it.
template <class Work>
void with_status(TF_Status* status, Work work) noexcept {
  try {
    work();
    TF_SetStatus(status, TF_OK, "");
  } catch (const ShapeError& error) {
    TF_SetStatus(status, TF_INVALID_ARGUMENT, error.text.c_str());
  } catch (...) {
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for a shape");
  }
}

void refuse_handle(TF_Status* status) {
  TF_SetStatus(status, TF_INVALID_ARGUMENT, "a handle is not in use");
}

Shape& shape_at(std::vector<Shape>& shapes, int index, const char* which) {
  if (index >= 0 && static_cast<size_t>(index) < shapes.size()) return shapes[index];
  throw ShapeError{std::string(which) + " index " + std::to_string(index) +
                   " out of range: there are " + std::to_string(shapes.size())};
}

// Sets `result` to what `change(shape)` makes of a shape; to an unknown one where it fails.
template <class Change>
void change_shape(TF_ShapeInferenceContext* context, TF_ShapeHandle* handle, TF_ShapeHandle* result,
                  TF_Status* status, const char* function, Change change) noexcept {
  const Shape* shape = find_shape(handle, function);
  Shape* changed = find_shape(result, function);
  if (find_context(context, function) == nullptr || shape == nullptr || changed == nullptr) {
    return refuse_handle(status);
  }
  Shape made;
  with_status(status, [&] { made = change(*shape); });
  *changed = std::move(made);
}

void change_rank(TF_ShapeInferenceContext* context, TF_ShapeHandle* handle, RankBound bound,
                 int64_t rank, TF_ShapeHandle* result, TF_Status* status,
                 const char* function) noexcept {
  change_shape(context, handle, result, status, function,
               [&](const Shape& shape) { return with_rank(shape, bound, rank); });
}

ShapeContext context_of(const mtf_shape_request& request) {
  ShapeContext context;
  for (int32_t i = 0; i < request.num_inputs; ++i) {
    const mtf_known_shape& input = request.inputs[i];
    Shape shape;
    shape.has_rank = input.rank >= 0;
    if (shape.has_rank) shape.dims.assign(input.dims, input.dims + input.rank);
    context.inputs.push_back(std::move(shape));
  }
  for (int32_t i = 0; i < request.num_type_attrs; ++i) {
    context.type_attrs.emplace_back(request.type_attrs[i].name, request.type_attrs[i].type);
  }
  context.outputs.resize(static_cast<size_t>(request.num_outputs));
  return context;
}

void copy_outputs(const ShapeContext& context, const mtf_shape_request& request) {
  for (size_t i = 0; i < context.outputs.size(); ++i) {
    const Shape& shape = context.outputs[i];
    if (shape.rank() > MTF_MOST_DIMENSIONS) {
      throw ShapeError{"output " + std::to_string(i) + " has rank " + std::to_string(shape.rank())};
    }
    request.outputs[i].rank = static_cast<int32_t>(shape.rank());
    std::copy(shape.dims.begin(), shape.dims.end(), request.outputs[i].dims);
  }
}

// Calls a plugin's function, and turns what it throws into a status.
void call(mtf_shape_function function, TF_ShapeInferenceContext* context, TF_Status* status) {
  try {
    function(context, status);
  } catch (abi::__forced_unwind&) {
    throw;  // pthread_exit and cancellation must go on unwinding
  } catch (const std::exception& error) {
    const std::string text = std::string("the shape function threw: ") + error.what();
    TF_SetStatus(status, TF_INTERNAL, text.c_str());
  } catch (...) {
    TF_SetStatus(status, TF_INTERNAL, "the shape function threw an exception of an unknown type");
  }
}

// The handle of a context, for as long as a call takes.
class ContextHandle {
 public:
  explicit ContextHandle(ShapeContext& context)
      : handle_(new_handle(HandleKind::kShapeContext, &context)) {
    if (handle_ == nullptr) throw std::bad_alloc();
  }
  ~ContextHandle() { end_handle(handle_, HandleKind::kShapeContext); }
  ContextHandle(const ContextHandle&) = delete;
  ContextHandle& operator=(const ContextHandle&) = delete;
  TF_ShapeInferenceContext* get() const { return static_cast<TF_ShapeInferenceContext*>(handle_); }

 private:
  void* const handle_;
};

void infer(mtf_shape_function function, const mtf_shape_request& request, TF_Status* status) {
  ShapeContext context = context_of(request);
  MisuseRecord misuse;
  {
    const ContextHandle handle(context);
    call(function, handle.get(), status);
  }
  if (misuse.rule != kRuleNone) {
    char text[sizeof misuse.text + 16];
    std::snprintf(text, sizeof text, "%s (KN-%03d)", misuse.text, misuse.rule);
    TF_SetStatus(status, TF_INVALID_ARGUMENT, text);
  }
  if (TF_GetCode(status) == TF_OK) copy_outputs(context, request);
}

}  // namespace
}  // namespace mtf::kernels

using namespace mtf::kernels;

void mtf_infer_shapes(mtf_shape_function function, const mtf_shape_request* request,
                      TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
  try {
    infer(function, *request, status);
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (const ShapeError& error) {
    TF_SetStatus(status, TF_INVALID_ARGUMENT, error.text.c_str());
  } catch (...) {
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory to infer shapes");
  }
}

int64_t TF_ShapeInferenceContextNumInputs(TF_ShapeInferenceContext* context) {
  const ShapeContext* found = find_context(context, __func__);
  return found == nullptr ? 0 : static_cast<int64_t>(found->inputs.size());
}

TF_ShapeHandle* TF_NewShapeHandle(void) { return handle_of_shape({}); }

void TF_DeleteShapeHandle(TF_ShapeHandle* handle) {
  if (handle == nullptr || find_shape(handle, __func__) == nullptr) return;
  delete static_cast<Shape*>(end_handle(handle, HandleKind::kShape));
}

void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext* context, int index,
                                      TF_ShapeHandle* handle, TF_Status* status) {
  ShapeContext* found = find_context(context, __func__);
  Shape* shape = find_shape(handle, __func__);
  if (found == nullptr || shape == nullptr) return refuse_handle(status);
  with_status(status, [&] { *shape = shape_at(found->inputs, index, "input"); });
}

void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext* context, int index,
                                       TF_ShapeHandle* handle, TF_Status* status) {
  ShapeContext* found = find_context(context, __func__);
  const Shape* shape = find_shape(handle, __func__);
  if (found == nullptr || shape == nullptr) return refuse_handle(status);
  with_status(status, [&] { shape_at(found->outputs, index, "output") = *shape; });
}

TF_ShapeHandle* TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext* context) {
  if (find_context(context, __func__) == nullptr) return nullptr;
  return handle_of_shape({true, {}});
}

TF_ShapeHandle* TF_ShapeInferenceContextVectorFromSize(TF_ShapeInferenceContext* context,
                                                       size_t size) {
  if (find_context(context, __func__) == nullptr) return nullptr;
  return static_cast<TF_ShapeHandle*>(handle_of(HandleKind::kShape, [&] {
    return std::make_unique<Shape>(Shape{true, {static_cast<int64_t>(size)}});
  }));
}

TF_DimensionHandle* TF_NewDimensionHandle(void) {
  return static_cast<TF_DimensionHandle*>(
      handle_of(HandleKind::kDimension, [] { return std::make_unique<Dimension>(); }));
}

void TF_DeleteDimensionHandle(TF_DimensionHandle* handle) {
  if (handle == nullptr || find_dimension(handle, __func__) == nullptr) return;
  delete static_cast<Dimension*>(end_handle(handle, HandleKind::kDimension));
}

void TF_ShapeInferenceContext_GetAttrType(TF_ShapeInferenceContext* context, const char* attr_name,
                                          TF_DataType* value, TF_Status* status) {
  const ShapeContext* found = find_context(context, __func__);
  if (found == nullptr) return refuse_handle(status);
  for (const auto& [name, type] : found->type_attrs) {
    if (attr_name == nullptr || name != attr_name) continue;
    if (value != nullptr) *value = static_cast<TF_DataType>(type);
    return TF_SetStatus(status, TF_OK, "");
  }
  char text[160];
  std::snprintf(text, sizeof text, "No attr named '%s' in NodeDef", attr_name ? attr_name : "");
  TF_SetStatus(status, TF_NOT_FOUND, text);
}

int64_t TF_ShapeInferenceContextRank(TF_ShapeInferenceContext* context, TF_ShapeHandle* handle) {
  const bool has_context = find_context(context, __func__) != nullptr;
  const Shape* shape = find_shape(handle, __func__);
  return has_context && shape != nullptr ? shape->rank() : kUnknown;
}

int TF_ShapeInferenceContextRankKnown(TF_ShapeInferenceContext* context, TF_ShapeHandle* handle) {
  const bool has_context = find_context(context, __func__) != nullptr;
  const Shape* shape = find_shape(handle, __func__);
  return has_context && shape != nullptr && shape->has_rank ? 1 : 0;
}

void TF_ShapeInferenceContextWithRank(TF_ShapeInferenceContext* context, TF_ShapeHandle* handle,
                                      int64_t rank, TF_ShapeHandle* result, TF_Status* status) {
  change_rank(context, handle, RankBound::kEqual, rank, result, status, __func__);
}

void TF_ShapeInferenceContextWithRankAtLeast(TF_ShapeInferenceContext* context,
                                             TF_ShapeHandle* handle, int64_t rank,
                                             TF_ShapeHandle* result, TF_Status* status) {
  change_rank(context, handle, RankBound::kAtLeast, rank, result, status, __func__);
}

void TF_ShapeInferenceContextWithRankAtMost(TF_ShapeInferenceContext* context,
                                            TF_ShapeHandle* handle, int64_t rank,
                                            TF_ShapeHandle* result, TF_Status* status) {
  change_rank(context, handle, RankBound::kAtMost, rank, result, status, __func__);
}

void TF_ShapeInferenceContextDim(TF_ShapeInferenceContext* context, TF_ShapeHandle* shape,
                                 int64_t index, TF_DimensionHandle* result) {
  const bool has_context = find_context(context, __func__) != nullptr;
  const Shape* found = find_shape(shape, __func__);
  Dimension* dimension = find_dimension(result, __func__);
  if (!has_context || found == nullptr || dimension == nullptr) return;
  dimension->size = dimension_of(*found, index);
}

void TF_ShapeInferenceContextSubshape(TF_ShapeInferenceContext* context, TF_ShapeHandle* shape,
                                      int64_t start, int64_t end, TF_ShapeHandle* result,
                                      TF_Status* status) {
  change_shape(context, shape, result, status, __func__,
               [&](const Shape& whole) { return subshape(whole, start, end); });
}

void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext* context, TF_Status* status) {
  ShapeContext* found = find_context(context, __func__);
  if (found == nullptr) return refuse_handle(status);
  for (Shape& shape : found->outputs) shape = Shape();
  TF_SetStatus(status, TF_OK, "");
}

int TF_DimensionHandleValueKnown(TF_DimensionHandle* handle) {
  const Dimension* dimension = find_dimension(handle, __func__);
  return dimension != nullptr && dimension->size != kUnknown ? 1 : 0;
}

int64_t TF_DimensionHandleValue(TF_DimensionHandle* handle) {
  const Dimension* dimension = find_dimension(handle, __func__);
  return dimension == nullptr ? kUnknown : dimension->size;
}

void TF_ShapeInferenceContextConcatenateShapes(TF_ShapeInferenceContext* context,
                                               TF_ShapeHandle* first, TF_ShapeHandle* second,
                                               TF_ShapeHandle* result, TF_Status* status) {
  const Shape* behind = find_shape(second, __func__);
  if (behind == nullptr) return refuse_handle(status);
  change_shape(context, first, result, status, __func__,
               [&](const Shape& front) { return concatenated(front, *behind); });
}
