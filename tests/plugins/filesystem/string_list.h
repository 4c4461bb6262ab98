/* A list of strings that grows, in memory that the host can free. */
#ifndef FIXTURE_STRING_LIST_H_
#define FIXTURE_STRING_LIST_H_

typedef struct string_list {
  char** items; /* one block of ledger_allocate, as is each item */
  int count;
} string_list;

/* Adds a copy of `text`. */
void string_list_add(string_list* list, const char* text);

#endif
