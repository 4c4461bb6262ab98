#include "interpreter_end.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_bool is_noted;
static pthread_t finalising; /* written before is_noted */

/* Python counts as not initialised while its modules are cleared, which destroys most objects. Its
 * thread states go last. */
bool mtf_can_take_gil(void) {
  if (Py_IsInitialized()) return true;
  return atomic_load(&is_noted) && pthread_equal(pthread_self(), finalising) &&
         PyGILState_GetThisThreadState() != NULL;
}

PyObject* mtf_note_interpreter_ends(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  finalising = pthread_self();
  atomic_store(&is_noted, true);
  Py_RETURN_NONE;
}
