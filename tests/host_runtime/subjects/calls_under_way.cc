// What is kept of misuse while a call into a plugin is under way: compiled into the program.
#include <cstdint>
#include <cstring>

#include "cases.h"
#include "host_runtime.h"
#include "kernels/host_table.h"
#include "kernels/misuse.h"

using mtf::kernels::MisuseRecord;

static int logged_lines;

extern "C" void mtf_log_line(const mtf_plugin_line*) { ++logged_lines; }
extern "C" int mtf_min_log_level() { return 0; }

static void call_absent_function(const char* name) {
  reinterpret_cast<void (*)()>(mtf_make_absent_function(name, "lib.so"))();
}

CASE(an_absent_function_fails_the_call_under_way) {
  MisuseRecord record;
  CHECK(record.rule == mtf::kernels::kRuleNone);
  call_absent_function("TF_Quux");
  CHECK(record.rule == 100);
  CHECK_TEXT("TF_Quux, which the host does not offer, was called by lib.so", record.text);
  CHECK(logged_lines == 0);
}

CASE(the_first_one_is_kept) {
  MisuseRecord record;
  call_absent_function("TF_First");
  call_absent_function("TF_Second");
  CHECK(std::strstr(record.text, "TF_First") == record.text);
}

CASE(the_innermost_call_fails) {
  MisuseRecord outer;
  {
    MisuseRecord inner;
    call_absent_function("TF_Inner");
    CHECK(inner.rule == 100);
  }
  CHECK(outer.rule == 0);
  call_absent_function("TF_Outer");
  CHECK(std::strstr(outer.text, "TF_Outer") == outer.text);
}

CASE(after_the_call_there_is_a_log_line) {
  { MisuseRecord record; }
  call_absent_function("TF_Quux");
  CHECK(logged_lines == 1);
}
