#include "report.h"

#include <new>
#include <string>

namespace ram {
namespace {

std::string message_for(Fault fault, const Account& account, const char* subject) {
  const std::string label = account.label();
  return (label.empty() ? "" : "[" + label + "] ") + subject + "; " + text_of(fault);
}

}  // namespace

void report(Fault fault, const Account& account, const char* subject, TF_Status* status) {
  if (fault == Fault::kNone) return TF_SetStatus(status, TF_OK, "");
  try {
    TF_SetStatus(status, code_of(fault), message_for(fault, account, subject).c_str());
  } catch (const std::bad_alloc&) {
    TF_SetStatus(status, code_of(fault), text_of(fault));
  }
}

}  // namespace ram
