#include "numa_affinity.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void add_range(cpu_set_t* processors, long first, long last) {
  for (long i = first; i <= last && i >= 0 && i < CPU_SETSIZE; ++i) CPU_SET((size_t)i, processors);
}

void mtf_parse_processor_list(const char* list, cpu_set_t* processors) {
  char* rest = NULL;
  for (;; list = rest + 1) {
    const long first = strtol(list, &rest, 10);
    if (rest == list) return;
    const long last = *rest == '-' ? strtol(rest + 1, &rest, 10) : first;
    add_range(processors, first, last);
    if (*rest != ',') return;
  }
}

/* Leaves `list` empty when the kernel knows no such node. */
static void read_processor_list(int node, char* list, int size) {
  char path[64];
  snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
  FILE* file = fopen(path, "re");
  list[0] = '\0';
  if (file == NULL) return;
  if (fgets(list, size, file) == NULL) list[0] = '\0';
  fclose(file);
}

void mtf_stay_on_numa_node(int node) {
  char list[4096];
  cpu_set_t processors;
  CPU_ZERO(&processors);
  if (node < 0) return;
  read_processor_list(node, list, sizeof(list));
  mtf_parse_processor_list(list, &processors);
  if (CPU_COUNT(&processors) > 0) {
    pthread_setaffinity_np(pthread_self(), sizeof(processors), &processors);
  }
}
