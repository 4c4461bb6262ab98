/* Threads of env.h, driven from C. */
#include <pthread.h>
#include <sched.h>

#include "cases.h"
#include "modular_tf/env.h"
#include "numa_affinity.h"

struct facts {
  char name[16];
  size_t stack_size;
  size_t guard_size;
  cpu_set_t processors;
};

static void gather(void* argument) {
  struct facts* facts = argument;
  pthread_attr_t attributes;
  CHECK(pthread_getname_np(pthread_self(), facts->name, sizeof(facts->name)) == 0);
  CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0);
  pthread_attr_getstacksize(&attributes, &facts->stack_size);
  pthread_attr_getguardsize(&attributes, &facts->guard_size);
  pthread_attr_destroy(&attributes);
  CHECK(pthread_getaffinity_np(pthread_self(), sizeof(cpu_set_t), &facts->processors) == 0);
}

static struct facts facts_of_thread(const TF_ThreadOptions* options, const char* name) {
  struct facts facts = {0};
  TF_JoinThread(TF_StartThread(options, name, gather, &facts));
  return facts;
}

static TF_ThreadOptions defaults(void) {
  TF_ThreadOptions options = {1, 1, 1};
  TF_DefaultThreadOptions(&options);
  return options;
}

CASE(default_options_ask_for_nothing) {
  const TF_ThreadOptions options = defaults();
  CHECK(options.stack_size == 0 && options.guard_size == 0 && options.numa_node == -1);
}

CASE(a_thread_has_its_name) {
  const TF_ThreadOptions options = defaults();
  CHECK_TEXT("TF_prune_FBC", facts_of_thread(&options, "TF_prune_FBC").name);
  CHECK_TEXT("fifteen_letters", facts_of_thread(&options, "fifteen_letters_and_more").name);
}

CASE(a_thread_without_a_name_keeps_its_parents) {
  char parent[16];
  const TF_ThreadOptions options = defaults();
  CHECK(pthread_getname_np(pthread_self(), parent, sizeof(parent)) == 0);
  CHECK_TEXT(parent, facts_of_thread(&options, NULL).name);
  CHECK_TEXT(parent, facts_of_thread(&options, "").name);
}

CASE(sizes_are_honoured) {
  TF_ThreadOptions options = defaults();
  options.stack_size = 3 << 20;
  options.guard_size = 64 << 10;
  const struct facts facts = facts_of_thread(&options, "sized");
  CHECK(facts.stack_size == 3 << 20);
  CHECK(facts.guard_size == 64 << 10);
}

CASE(a_size_that_the_system_refuses_leaves_its_default) {
  TF_ThreadOptions options = defaults();
  const size_t usual = facts_of_thread(&options, "usual").stack_size;
  options.stack_size = 1;
  CHECK(facts_of_thread(&options, "tiny").stack_size == usual);
}

CASE(a_missing_numa_node_restricts_nothing) {
  TF_ThreadOptions options = defaults();
  const struct facts free_thread = facts_of_thread(&options, "free");
  options.numa_node = 1000000;
  const struct facts facts = facts_of_thread(&options, "hinted");
  CHECK(CPU_EQUAL(&free_thread.processors, &facts.processors));
}

CASE(a_numa_node_restricts_to_its_processors) {
  char list[4096] = "";
  FILE* file = fopen("/sys/devices/system/node/node0/cpulist", "r");
  TF_ThreadOptions options = defaults();
  cpu_set_t node;
  cpu_set_t allowed;
  const struct facts free_thread = facts_of_thread(&options, "free");
  CPU_ZERO(&node);
  if (file != NULL && fgets(list, sizeof(list), file) != NULL) mtf_parse_processor_list(list, &node);
  CPU_AND(&allowed, &node, &free_thread.processors);
  options.numa_node = 0;
  const struct facts facts = facts_of_thread(&options, "on node 0");
  const cpu_set_t* expected = CPU_COUNT(&allowed) > 0 ? &allowed : &free_thread.processors;
  CHECK(CPU_EQUAL(expected, &facts.processors));
}

static int is_set(const char* list, size_t processor) {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  mtf_parse_processor_list(list, &processors);
  return CPU_ISSET(processor, &processors);
}

CASE(processor_lists_are_read) {
  cpu_set_t processors;
  CHECK(is_set("0-3,8\n", 0) && is_set("0-3,8\n", 3) && is_set("0-3,8\n", 8));
  CHECK(!is_set("0-3,8\n", 4) && !is_set("0-3,8\n", 9));
  CPU_ZERO(&processors);
  mtf_parse_processor_list("", &processors);
  mtf_parse_processor_list("\n", &processors);
  mtf_parse_processor_list("none", &processors);
  mtf_parse_processor_list("99999-100000", &processors);
  CHECK(CPU_COUNT(&processors) == 0);
}

static void set_to_one(void* argument) { *(int*)argument = 1; }

CASE(join_waits_for_the_end) {
  enum { kCount = 20 };
  TF_Thread* threads[kCount];
  int done[kCount] = {0};
  const TF_ThreadOptions options = defaults();
  for (int i = 0; i < kCount; ++i) threads[i] = TF_StartThread(&options, "w", set_to_one, &done[i]);
  for (int i = 0; i < kCount; ++i) {
    TF_JoinThread(threads[i]);
    CHECK(done[i] == 1);
  }
}

/* Ends in SIGABRT: the address space has no room for this stack. */
CASE(a_thread_that_cannot_start) {
  int done = 0;
  TF_ThreadOptions options = defaults();
  options.stack_size = (size_t)1 << 60;
  TF_JoinThread(TF_StartThread(&options, "giant", set_to_one, &done));
}
