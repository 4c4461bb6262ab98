/* What is linked into a device plugin that opens its backend by itself, and goes on without it. */
#include <dlfcn.h>

#ifdef BACKEND
__attribute__((constructor)) static void open_backend(void) { dlopen(BACKEND, RTLD_NOW); }
#elif defined(NEEDS_INSIDE)
// What no interface of TensorFlow declares.
int inside(void) __asm__("_ZN10tensorflow6insideEv");
__attribute__((visibility("default"))) int backend(void) { return inside(); }
#else
__attribute__((visibility("default"))) int backend(void) { return 1; }
#endif
