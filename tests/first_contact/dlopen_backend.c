/* What is linked into a device plugin that opens its backend by itself, and goes on without it. */
#include <dlfcn.h>

#ifdef BACKEND
__attribute__((constructor)) static void open_backend(void) { dlopen(BACKEND, RTLD_NOW); }
#else
__attribute__((visibility("default"))) int backend(void) { return 1; }
#endif
