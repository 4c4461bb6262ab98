/* Whether what may be called on any thread and at any time, as a deleter, can still reach Python. */
#pragma once

#include "tensor.h"

/* Whether PyGILState_Ensure returns on this thread. While Python finalises it does on the thread that
 * finalises, and ends or blocks every other one; afterwards there is nothing to take.
 *
 * A thread that asks while the interpreter runs, and is overtaken by its end before it has the GIL, is
 * ended or blocked by Python: the stable ABI has no means against that. */
bool mtf_can_take_gil(void);

/* note_interpreter_ends(): for atexit, which calls it on the thread that finalises. */
PyObject* mtf_note_interpreter_ends(PyObject* module, PyObject* unused);
