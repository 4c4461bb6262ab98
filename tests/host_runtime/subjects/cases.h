/* A program of test cases: `program NAME` runs one and prints "passed".
 *
 * A case is written `CASE(name) { ... }`; the Python side finds the names in the source text. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test_case {
  const char* name;
  void (*run)(void);
  struct test_case* next;
};

static struct test_case* all_cases;

#define CASE(case_name)                                                 \
  static void case_name(void);                                          \
  static struct test_case entry_##case_name = {#case_name, case_name, NULL}; \
  __attribute__((constructor)) static void register_##case_name(void) { \
    entry_##case_name.next = all_cases;                                 \
    all_cases = &entry_##case_name;                                     \
  }                                                                     \
  static void case_name(void)

#define CHECK(condition)                                                          \
  do {                                                                            \
    if (!(condition)) {                                                           \
      fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)

#define CHECK_TEXT(expected, found)                                                       \
  do {                                                                                    \
    const char* found_text = (found);                                                     \
    if (strcmp((expected), found_text) != 0) {                                            \
      fprintf(stderr, "%s:%d: expected '%s', found '%s'\n", __FILE__, __LINE__, (expected), \
              found_text);                                                                \
      exit(1);                                                                            \
    }                                                                                     \
  } while (0)

#define CHECK_CODE(expected, status)                                                     \
  do {                                                                                   \
    if ((int)TF_GetCode(status) != (int)(expected)) {                                    \
      fprintf(stderr, "%s:%d: expected code %d, found %d '%s'\n", __FILE__, __LINE__,    \
              (int)(expected), (int)TF_GetCode(status), TF_Message(status));             \
      exit(1);                                                                           \
    }                                                                                    \
  } while (0)

int main(int count, char** arguments) {
  for (struct test_case* entry = all_cases; count == 2 && entry != NULL; entry = entry->next) {
    if (strcmp(entry->name, arguments[1]) != 0) continue;
    entry->run();
    puts("passed");
    return 0;
  }
  fprintf(stderr, "no such case\n");
  return 2;
}
