/* How a fixture plugin tells what it counted, for tests of a process's whole life. */
#pragma once

#include <stddef.h>

/* Defined by each plugin: writes its counters as one line of JSON, and returns its length as
 * snprintf does. It is called when the process ends in order; the line is appended to the file
 * that the environment variable FIXTURE_REPORT names. */
int ledger_describe(char* text, size_t size);

/* The variant's name, defined by each plugin's entry.c. */
extern const char fixture_variant[];
