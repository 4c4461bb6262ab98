/* A list of strings that grows, in memory that the host can free. */
#pragma once

typedef struct string_list {
  char** items; /* one block of ledger_allocate, as is each item */
  int count;
} string_list;

/* Adds a copy of `text`. */
void string_list_add(string_list* list, const char* text);
