/* Whose an allocation is: the plugin's inside of a bracket, the host's otherwise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether the plugin is what allocates in the calling thread now. */
bool is_of_plugin(void);

void count_allocation(size_t size);
void count_free(size_t size);
