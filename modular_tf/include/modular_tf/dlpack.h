/* Tensors between libraries: the C interface of DLPack 1.3.
 *
 * It is no part of the plugin API, and modular_tf.h does not include it. Names, numbers and layouts are
 * those of the published dlpack.h; both headers have one include guard, so that a source may get
 * either, or both. The package's own tensors are made with it.
 *
 * Everything up to and with DLManagedTensorVersioned.flags keeps its place over major versions: a
 * deleter can be called whatever the version. */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define DLPACK_EXTERN_C extern "C"
#else
#define DLPACK_EXTERN_C
#endif
#define DLPACK_DLL

#define DLPACK_MAJOR_VERSION 1 /* another one has other layouts */
#define DLPACK_MINOR_VERSION 3 /* another one has more or fewer numbers */

#ifdef __cplusplus
extern "C" {
#endif

/* -- devices -- */

/* A consumer that finds another major version calls the deleter and reads nothing else. */
typedef struct {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3, /* host memory, pinned by CUDA */
  kDLOpenCL = 4,   /* `data` is a cl_mem */
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9, /* a Verilog simulator */
  kDLROCM = 10,
  kDLROCMHost = 11,    /* host memory, pinned by ROCm */
  kDLExtDev = 12,      /* means another device to every library */
  kDLCUDAManaged = 13, /* of cudaMallocManaged */
  kDLOneAPI = 14,      /* unified shared memory; oneAPI says of which kind and device */
  kDLWebGPU = 15,
  kDLHexagon = 16,
  kDLMAIA = 17,
  kDLTrn = 18
} DLDeviceType;

typedef struct {
  DLDeviceType device_type;
  int32_t device_id; /* 0 for memory of the host, pinned memory and managed memory */
} DLDevice;

/* -- elements -- */

typedef enum {
  kDLInt = 0U,
  kDLUInt = 1U,
  kDLFloat = 2U,        /* IEEE 754 */
  kDLOpaqueHandle = 3U, /* for tests; both sides have to know what it is */
  kDLBfloat = 4U,
  kDLComplex = 5U, /* real and imaginary part one after the other; `bits` are those of both */
  kDLBool = 6U,    /* stored in 8 bits */
  /* 8 bits each */
  kDLFloat8_e3m4 = 7U,
  kDLFloat8_e4m3 = 8U,
  kDLFloat8_e4m3b11fnuz = 9U,
  kDLFloat8_e4m3fn = 10U,
  kDLFloat8_e4m3fnuz = 11U,
  kDLFloat8_e5m2 = 12U,
  kDLFloat8_e5m2fnuz = 13U,
  kDLFloat8_e8m0fnu = 14U,
  /* 6 bits each; a consumer refuses any other width */
  kDLFloat6_e2m3fn = 15U,
  kDLFloat6_e3m2fn = 16U,
  /* 4 bits; a consumer refuses any other width */
  kDLFloat4_e2m1fn = 17U
} DLDataTypeCode;

/* In the machine's byte order. Elements of less than a byte are packed without gaps, the first one in
 * the lowest bits of the first byte, unless DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED is set. */
typedef struct {
  uint8_t code; /* a DLDataTypeCode */
  uint8_t bits; /* of one lane */
  uint16_t lanes;
} DLDataType;

/* -- tensors -- */

/* Describes memory and owns nothing. */
typedef struct {
  /* An address, or a handle of the device's API. Should be aligned to 256 bytes, which consumers
   * cannot rely on. NULL where there is no element. */
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;   /* may be NULL where ndim is 0 */
  int64_t* strides; /* in elements; may be NULL where ndim is 0, and before 1.2 for C order */
  uint64_t byte_offset; /* from `data` to the first element */
} DLTensor;

/* A tensor that is borrowed; the form before 1.0, which knows no flags. The borrower calls the deleter
 * once, on any thread; it frees the struct too. It may be NULL. */
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx; /* the producer's; may be NULL */
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;

#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
/* The producer made a copy, which is the consumer's alone until it calls the deleter. */
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)
/* Elements of less than a byte have bytes of their own. */
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (1UL << 2UL)

/* A tensor that is borrowed, as DLManagedTensor, with the version of its producer. */
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags; /* DLPACK_FLAG_BITMASK_*; 0 by default */
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

/* -- the table of functions: `__dlpack_c_exchange_api__` of a Python type --
 *
 * The attribute is a capsule "dlpack_exchange_api" around a table that lives as long as the process;
 * consumers may keep it by type. No function throws a C++ exception. All return 0, or -1 with a Python
 * exception, and so need the GIL; the allocator reports by its callback instead and does not.
 *
 * Those whose name ends in no_sync wait for no stream: a consumer asks for the device's current work
 * stream and launches there. Memory of the host is complete. */

/* Makes a new tensor of the producer's like `prototype`, of which dtype, ndim, shape and device count.
 * Calls `SetError` exactly where it fails. */
typedef int (*DLPackManagedTensorAllocator)(DLTensor* prototype, DLManagedTensorVersioned** out,
                                            void* error_ctx,
                                            void (*SetError)(void* error_ctx, const char* kind,
                                                             const char* message));

/* Exports an object of the type that the table is from; who gets it calls the deleter. */
typedef int (*DLPackManagedTensorFromPyObjectNoSync)(void* py_object,
                                                     DLManagedTensorVersioned** out);

/* Describes such an object. What `out` points at stays the producer's, and is valid as long as the
 * consumer does not return. */
typedef int (*DLPackDLTensorFromPyObjectNoSync)(void* py_object, DLTensor* out);

/* The stream on which work comes after the producer's own; NULL for memory of the host. */
typedef int (*DLPackCurrentWorkStream)(DLDeviceType device_type, int32_t device_id,
                                       void** out_current_stream);

/* Makes an object of the type out of a tensor, which it owns from then on. Where it fails, the tensor
 * is still the caller's. */
typedef int (*DLPackManagedTensorToPyObjectNoSync)(DLManagedTensorVersioned* tensor,
                                                   void** out_py_object);

/* The part that all versions share; its version is checked before anything else of the table is used. */
typedef struct DLPackExchangeAPIHeader {
  DLPackVersion version;
  struct DLPackExchangeAPIHeader* prev_api; /* the table of an older major version, or NULL */
} DLPackExchangeAPIHeader;

typedef struct DLPackExchangeAPI {
  DLPackExchangeAPIHeader header;
  DLPackManagedTensorAllocator managed_tensor_allocator;
  DLPackManagedTensorFromPyObjectNoSync managed_tensor_from_py_object_no_sync;
  DLPackManagedTensorToPyObjectNoSync managed_tensor_to_py_object_no_sync;
  DLPackDLTensorFromPyObjectNoSync dltensor_from_py_object_no_sync; /* alone may be NULL */
  DLPackCurrentWorkStream current_work_stream;
} DLPackExchangeAPI;

#ifdef __cplusplus
}
#endif
#endif
