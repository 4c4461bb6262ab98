#include "string_list.h"

#include <stdlib.h>
#include <string.h>

#include "ledger.h"

void string_list_add(string_list* list, const char* text) {
  size_t used = (size_t)list->count * sizeof(char*);
  char** grown = ledger_allocate(used + sizeof(char*));
  if (grown == NULL) abort();
  if (used > 0) memcpy(grown, list->items, used);
  ledger_free(list->items);
  grown[list->count] = ledger_string(text);
  list->items = grown;
  list->count += 1;
}
