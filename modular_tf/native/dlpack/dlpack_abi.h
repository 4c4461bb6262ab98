/* The C interface of DLPack 1.3, as far as this module uses it (dlpack §1.1).
 *
 * Names and layouts are those of the published interface; tests/dlpack/test_layouts.py compares
 * them with the numbers of the sheet. Everything up to and with `flags` keeps its place over major
 * versions, so that a deleter can be called whatever the version. */
#ifndef MODULAR_TF_DLPACK_ABI_H_
#define MODULAR_TF_DLPACK_ABI_H_

#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 3 };

typedef struct {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

enum {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLROCMHost = 11,
  kDLExtDev = 12,
  kDLCUDAManaged = 13,
  kDLOneAPI = 14,
  kDLWebGPU = 15,
  kDLAscend = 21 /* merged after 1.3, as TPU 19 and TPUHost 20 were */
};

typedef struct {
  int32_t device_type;
  int32_t device_id;
} DLDevice;

enum {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLComplex = 5,
  kDLBool = 6,
  kDLFloat4_e2m1fn = 17
};

typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; NULL means compact, in producers before 1.2 */
  uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor*);
} DLManagedTensor;

#define DLPACK_FLAG_READ_ONLY UINT64_C(1)
#define DLPACK_FLAG_IS_COPIED UINT64_C(2)
#define DLPACK_FLAG_SUBBYTE_PADDED UINT64_C(4)

typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

typedef struct DLPackExchangeAPIHeader {
  DLPackVersion version;
  struct DLPackExchangeAPIHeader* prev_api; /* the table of an older major version, or NULL */
} DLPackExchangeAPIHeader;

/* All return 0, or -1 with a Python exception; the allocator reports by its callback instead and
 * may run without the GIL. */
typedef struct {
  DLPackExchangeAPIHeader header;
  int (*managed_tensor_allocator)(DLTensor* prototype, DLManagedTensorVersioned** out,
                                  void* error_context,
                                  void (*set_error)(void* error_context, const char* kind,
                                                    const char* message));
  int (*managed_tensor_from_py_object_no_sync)(void* object, DLManagedTensorVersioned** out);
  int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned* tensor, void** out_object);
  int (*dltensor_from_py_object_no_sync)(void* object, DLTensor* out);
  int (*current_work_stream)(int32_t device_type, int32_t device_id, void** out_stream);
} DLPackExchangeAPI;

#endif
