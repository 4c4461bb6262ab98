/* Keeping a thread on the processors of one NUMA node. */
#pragma once

#include <sched.h>

/* Adds the processors of a list such as "0-3,8" to `processors`. */
void mtf_parse_processor_list(const char* list, cpu_set_t* processors);

/* Restricts the calling thread to a node. A node that does not exist, or is negative, changes
 * nothing: the wish is a hint. */
void mtf_stay_on_numa_node(int node);
