/* A library whose constructor damages what its dynamic section says of its imports: the variable
 * DAMAGE names how. The dynamic linker has read all of it by then. */
#define _GNU_SOURCE
#include <link.h>
#include <stdlib.h>
#include <string.h>

extern ElfW(Dyn) _DYNAMIC[];

static void set(ElfW(Sxword) tag, uintptr_t value) {
  for (ElfW(Dyn)* entry = _DYNAMIC; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == tag) entry->d_un.d_ptr = value;
  }
}

__attribute__((constructor)) static void damage(void) {
  const char* how = getenv("DAMAGE");
  const uintptr_t last = ~(uintptr_t)0;
  if (strcmp(how, "sizes") == 0) {
    set(DT_PLTRELSZ, last);
    set(DT_RELASZ, last);
  } else if (strcmp(how, "relocations") == 0) {
    set(DT_JMPREL, last - 4096);
    set(DT_RELA, last - 4096);
  } else if (strcmp(how, "relocations of nothing") == 0) {
    set(DT_JMPREL, 0);
    set(DT_RELA, 0);
  } else if (strcmp(how, "symbols") == 0) {
    set(DT_SYMTAB, last - 4096);
  } else if (strcmp(how, "names") == 0) {
    set(DT_STRTAB, last - 4096);
  } else if (strcmp(how, "end") == 0) {
    const uintptr_t page_end = ((uintptr_t)_DYNAMIC | 4095) + 1; /* the last page of the library */
    for (ElfW(Dyn)* entry = _DYNAMIC; (uintptr_t)(entry + 1) <= page_end; ++entry) {
      if (entry->d_tag == DT_NULL || entry > _DYNAMIC + 64) entry->d_tag = DT_DEBUG;
    }
  }
}
