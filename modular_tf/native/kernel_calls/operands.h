/* The inputs of a call: arrays of a device in host memory, and numpy's. */
#pragma once

#include "core_functions.h"

enum { MTF_MOST_TENSORS = 8 };

/* Of one input. References are the operand's own. */
typedef struct {
  DLDataType dtype;
  int32_t data_type;  /* of an array: what its elements stand for; 0: themselves */
  PyObject* executor; /* of an array's device; NULL for numpy's */
  PyObject* hold;     /* keeps the memory, whoever closes the array meanwhile */
  void* copy;         /* aligned memory that stands for it; or NULL */
} Operand;

typedef struct {
  int32_t count;
  bool has_arrays; /* of devices */
  Operand all[MTF_MOST_TENSORS];
  mtf_kernel_input inputs[MTF_MOST_TENSORS]; /* without types */
} Operands;

/* Reads the inputs. 1: done; 0: some are not for the short way; -1: an exception. In any case they
 * have to be dropped. */
int mtf_read_operands(PyObject* inputs, Operands* operands);

/* Copies those that kernels could not read where they are. As above. */
int mtf_align_operands(Operands* operands);

/* What keeps the memory of an input as long as a kernel wants; NULL with an exception. */
PyObject* mtf_keep_operand(Operand* operand);

void mtf_drop_operands(Operands* operands);
