// The functions that a shape function calls. The host runs kernels one by one, on tensors whose shapes it
// knows, and never runs a shape function: each of these reports its call by name (KN-100).
#include "entry.h"
#include "modular_tf/ops.h"

namespace mtf::kernels {
namespace {

constexpr char kNotOffered[] = "%s: the host runs no shape functions";

// Returns what "unknown" is where a size or a rank is asked for.
int64_t refuse(const char* function) noexcept {
  report_misuse_by(kRuleNoStub, kNotOffered, function);
  return -1;
}

void refuse(const char* function, TF_Status* status) noexcept {
  fail_by(kRuleNoStub, status, TF_UNIMPLEMENTED, kNotOffered, function);
}

std::nullptr_t refuse_handle(const char* function) noexcept {
  refuse(function);
  return nullptr;
}

}  // namespace
}  // namespace mtf::kernels

using namespace mtf::kernels;
using Context = TF_ShapeInferenceContext;
using Shape = TF_ShapeHandle;
using Dimension = TF_DimensionHandle;

int64_t TF_ShapeInferenceContextNumInputs(Context*) { return refuse(__func__); }
Shape* TF_NewShapeHandle(void) { return refuse_handle(__func__); }
void TF_DeleteShapeHandle(Shape* handle) {
  if (handle != nullptr) refuse(__func__);
}
void TF_ShapeInferenceContextGetInput(Context*, int, Shape*, TF_Status* status) {
  refuse(__func__, status);
}
void TF_ShapeInferenceContextSetOutput(Context*, int, Shape*, TF_Status* status) {
  refuse(__func__, status);
}
Shape* TF_ShapeInferenceContextScalar(Context*) { return refuse_handle(__func__); }
Shape* TF_ShapeInferenceContextVectorFromSize(Context*, size_t) { return refuse_handle(__func__); }
Dimension* TF_NewDimensionHandle(void) { return refuse_handle(__func__); }
void TF_DeleteDimensionHandle(Dimension* handle) {
  if (handle != nullptr) refuse(__func__);
}
void TF_ShapeInferenceContext_GetAttrType(Context*, const char*, TF_DataType*, TF_Status* status) {
  refuse(__func__, status);
}
int64_t TF_ShapeInferenceContextRank(Context*, Shape*) { return refuse(__func__); }
int TF_ShapeInferenceContextRankKnown(Context*, Shape*) { return refuse(__func__) >= 0; }
void TF_ShapeInferenceContextWithRank(Context*, Shape*, int64_t, Shape*, TF_Status* status) {
  refuse(__func__, status);
}
void TF_ShapeInferenceContextWithRankAtLeast(Context*, Shape*, int64_t, Shape*, TF_Status* status) {
  refuse(__func__, status);
}
void TF_ShapeInferenceContextWithRankAtMost(Context*, Shape*, int64_t, Shape*, TF_Status* status) {
  refuse(__func__, status);
}
void TF_ShapeInferenceContextDim(Context*, Shape*, int64_t, Dimension*) { refuse(__func__); }
void TF_ShapeInferenceContextSubshape(Context*, Shape*, int64_t, int64_t, Shape*, TF_Status* status) {
  refuse(__func__, status);
}
void TF_ShapeInferenceContextSetUnknownShape(Context*, TF_Status* status) { refuse(__func__, status); }
int TF_DimensionHandleValueKnown(Dimension*) { return refuse(__func__) >= 0; }
int64_t TF_DimensionHandleValue(Dimension*) { return refuse(__func__); }
void TF_ShapeInferenceContextConcatenateShapes(Context*, Shape*, Shape*, Shape*, TF_Status* status) {
  refuse(__func__, status);
}
