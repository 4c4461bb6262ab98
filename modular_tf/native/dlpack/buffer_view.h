/* The buffer protocol over host memory: memoryview(tensor), numpy.asarray(tensor).
 *
 * The limited API of Python 3.10 has no name for it yet, but its interpreters bear it: the slots are
 * accepted since 3.9, and Python 3.11 froze struct and numbers as they had been since 3.3. */
#pragma once

#include "tensor.h"

enum { MTF_BF_GETBUFFER = 1, MTF_BF_RELEASEBUFFER = 2 };

/* Py_buffer. */
typedef struct {
  void* buf;
  PyObject* obj;
  Py_ssize_t len;
  Py_ssize_t itemsize;
  int readonly;
  int ndim;
  char* format;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  Py_ssize_t* suboffsets;
  void* internal;
} BufferView;

int mtf_get_buffer(PyObject* self, BufferView* view, int flags);
void mtf_release_buffer(PyObject* self, BufferView* view);
