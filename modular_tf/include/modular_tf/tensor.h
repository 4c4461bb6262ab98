/* Tensors of kernels: numbers of element types, n-dimensional memory, strings in tensors, buffers.
 *
 * The functions are offered by the host. A handle belongs to the side that a function names
 * to; handles share memory, and the memory lives as long as the last of them. One thread at a time
 * may use a handle; several handles of one memory may be used by several threads. */
#ifndef MODULAR_TF_TENSOR_H_
#define MODULAR_TF_TENSOR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modular_tf/export.h"
#include "modular_tf/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers are part of the ABI. A reference type is the number plus 100. */
typedef enum TF_DataType {
  TF_FLOAT = 1,
  TF_DOUBLE = 2,
  TF_INT32 = 3,
  TF_UINT8 = 4,
  TF_INT16 = 5,
  TF_INT8 = 6,
  TF_STRING = 7,     /* TF_TString each */
  TF_COMPLEX64 = 8,
  TF_COMPLEX = 8,
  TF_INT64 = 9,
  TF_BOOL = 10,
  TF_QINT8 = 11,
  TF_QUINT8 = 12,
  TF_QINT32 = 13,
  TF_BFLOAT16 = 14,
  TF_QINT16 = 15,
  TF_QUINT16 = 16,
  TF_UINT16 = 17,
  TF_COMPLEX128 = 18,
  TF_HALF = 19,
  TF_RESOURCE = 20,  /* the host's own; plugins name it by the index of an input */
  TF_VARIANT = 21,   /* likewise */
  TF_UINT32 = 22,
  TF_UINT64 = 23,
  TF_FLOAT8_E5M2 = 24,
  TF_FLOAT8_E4M3FN = 25,
  TF_FLOAT8_E4M3FNUZ = 26,
  TF_FLOAT8_E4M3B11FNUZ = 27,
  TF_FLOAT8_E5M2FNUZ = 28,
  TF_INT4 = 29,      /* this and the following take a byte each */
  TF_UINT4 = 30,
  TF_INT2 = 31,
  TF_UINT2 = 32,
  TF_FLOAT4_E2M1FN = 33
} TF_DataType;

/* Bytes of one element; 0 for strings, resources, variants and unknown numbers. */
TF_CAPI_EXPORT extern size_t TF_DataTypeSize(TF_DataType type);

/* -- tensors -- */

typedef struct TF_Tensor TF_Tensor;

/* Where a kernel wants a temporary to be. */
typedef struct TF_AllocatorAttributes {
  size_t struct_size;
  unsigned char on_host; /* 1: host memory, wherever the kernel works */
} TF_AllocatorAttributes;

#define TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE \
  (offsetof(TF_AllocatorAttributes, on_host) + sizeof(((TF_AllocatorAttributes*)0)->on_host))

/* Memory of the caller's as a tensor, which the caller owns. `deallocator` is called once: when the
 * last handle has gone, or at once where the memory is copied since it is not aligned. NULL where `len`
 * is too small for the elements; then the deallocator has been called. */
TF_CAPI_EXPORT extern TF_Tensor* TF_NewTensor(TF_DataType type, const int64_t* dims, int num_dims,
                                              void* data, size_t len,
                                              void (*deallocator)(void* data, size_t len, void* arg),
                                              void* deallocator_arg);

/* New host memory, aligned and not cleared; the caller owns the tensor. NULL: no memory, or `len` is too
 * small for the elements. */
TF_CAPI_EXPORT extern TF_Tensor* TF_AllocateTensor(TF_DataType type, const int64_t* dims,
                                                   int num_dims, size_t len);

/* The same handle where nobody else uses the memory and it is the host's own, else NULL. */
TF_CAPI_EXPORT extern TF_Tensor* TF_TensorMaybeMove(TF_Tensor* tensor);

/* Gives a handle back. NULL is allowed. */
TF_CAPI_EXPORT extern void TF_DeleteTensor(TF_Tensor* tensor);

TF_CAPI_EXPORT extern TF_DataType TF_TensorType(const TF_Tensor* tensor);
TF_CAPI_EXPORT extern int TF_NumDims(const TF_Tensor* tensor);
TF_CAPI_EXPORT extern int64_t TF_Dim(const TF_Tensor* tensor, int dim_index);
TF_CAPI_EXPORT extern int64_t TF_TensorElementCount(const TF_Tensor* tensor);
TF_CAPI_EXPORT extern size_t TF_TensorByteSize(const TF_Tensor* tensor);
/* The first element; of device memory the host must not read it. */
TF_CAPI_EXPORT extern void* TF_TensorData(const TF_Tensor* tensor);
TF_CAPI_EXPORT extern bool TF_TensorIsAligned(const TF_Tensor* tensor);

/* Gives a tensor other dimensions; the elements stay. */
TF_CAPI_EXPORT extern void TF_SetShape(TF_Tensor* tensor, const int64_t* dims, int num_dims);

/* Has `to` share the memory of `from`, read as elements of `type`; the bytes must be as many. */
TF_CAPI_EXPORT extern void TF_TensorBitcastFrom(const TF_Tensor* from, TF_DataType type,
                                                TF_Tensor* to, const int64_t* new_dims,
                                                int num_new_dims, TF_Status* status);

/* The alignment of the host's memory, in bytes. */
TF_CAPI_EXPORT extern size_t TF_TensorDefaultAlignment(void);

/* -- strings in tensors: 24 bytes, of which the two lowest bits of the first say the kind -- */

typedef enum TF_TString_Type {
  TF_TSTR_SMALL = 0,  /* up to 22 bytes, in place */
  TF_TSTR_LARGE = 1,  /* owned memory */
  TF_TSTR_OFFSET = 2, /* behind the string itself */
  TF_TSTR_VIEW = 3,   /* memory of somebody else's */
  TF_TSTR_TYPE_MASK = 3
} TF_TString_Type;

typedef struct TF_TString_Large {
  size_t size; /* shifted by two bits, beside the kind */
  size_t cap;
  char* ptr;
} TF_TString_Large;

typedef struct TF_TString_View {
  size_t size; /* as above */
  const char* ptr;
} TF_TString_View;

typedef struct TF_TString_Offset {
  uint32_t size; /* as above */
  uint32_t offset;
  uint32_t count;
} TF_TString_Offset;

typedef struct TF_TString_Small {
  uint8_t size; /* as above */
  char str[sizeof(TF_TString_Large) - sizeof(uint8_t)];
} TF_TString_Small;

typedef struct TF_TString {
  union {
    TF_TString_Small smll;
    TF_TString_Large large;
    TF_TString_Offset offset;
    TF_TString_View view;
  } u;
} TF_TString;

TF_CAPI_EXPORT extern void TF_StringInit(TF_TString* string);
/* Replaces the text by a copy of `size` bytes. */
TF_CAPI_EXPORT extern void TF_StringCopy(TF_TString* string, const char* source, size_t size);
/* Replaces the text by a view of `size` bytes, which must outlive it. */
TF_CAPI_EXPORT extern void TF_StringAssignView(TF_TString* string, const char* source, size_t size);
TF_CAPI_EXPORT extern const char* TF_StringGetDataPointer(const TF_TString* string);
TF_CAPI_EXPORT extern TF_TString_Type TF_StringGetType(const TF_TString* string);
TF_CAPI_EXPORT extern size_t TF_StringGetSize(const TF_TString* string);
TF_CAPI_EXPORT extern size_t TF_StringGetCapacity(const TF_TString* string);
/* Frees the text; the string is empty then. */
TF_CAPI_EXPORT extern void TF_StringDealloc(TF_TString* string);

/* -- bytes that one side gives the other -- */

typedef struct TF_Buffer {
  const void* data;
  size_t length;
  void (*data_deallocator)(void* data, size_t length); /* NULL: nobody frees `data` */
} TF_Buffer;

/* An empty buffer of the caller's; NULL: no memory. */
TF_CAPI_EXPORT extern TF_Buffer* TF_NewBuffer(void);
/* A copy of bytes, of the caller's. */
TF_CAPI_EXPORT extern TF_Buffer* TF_NewBufferFromString(const void* bytes, size_t length);
/* Frees a buffer and its bytes. NULL is allowed. */
TF_CAPI_EXPORT extern void TF_DeleteBuffer(TF_Buffer* buffer);
TF_CAPI_EXPORT extern TF_Buffer TF_GetBuffer(TF_Buffer* buffer);

/* Text without a NUL at its end, of the host's. */
typedef struct TF_StringView {
  const char* data;
  size_t len;
} TF_StringView;

/* The release of TensorFlow whose interface the host offers, such as "2.21.0"; static storage. */
TF_CAPI_EXPORT extern const char* TF_Version(void);

/* Fills `to` from a serialized TensorProto; `to` is a tensor of the caller's. */
TF_CAPI_EXPORT extern void TF_TensorFromProto(const TF_Buffer* from, TF_Tensor* to,
                                              TF_Status* status);

#ifdef __cplusplus
}
#endif
#endif
