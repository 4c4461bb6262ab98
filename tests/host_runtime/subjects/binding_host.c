/* binding_host RUNTIME PLUGIN [IMPOSTOR [deep]]: loads them in host order and runs the plugin.
 *
 * With an impostor, that comes first and is visible to all; the plugin is bound deep on demand. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void* load(const char* path, int flags) {
  void* library = dlopen(path, RTLD_NOW | flags);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror());
  return library;
}

static int call(void* library, const char* name) {
  int (*function)(void) = NULL;
  void* symbol = dlsym(library, name);
  if (symbol == NULL) return 98;
  memcpy(&function, &symbol, sizeof(function));
  return function();
}

int main(int count, char** arguments) {
  const int deep = count > 4 ? RTLD_DEEPBIND : 0;
  if (count > 3 && load(arguments[3], RTLD_GLOBAL) == NULL) return 95;
  if (load(arguments[1], RTLD_LOCAL) == NULL) return 96;
  void* plugin = load(arguments[2], RTLD_LOCAL | deep);
  return plugin == NULL ? 97 : call(plugin, "use_host");
}
