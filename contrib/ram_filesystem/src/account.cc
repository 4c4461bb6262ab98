#include "account.h"

#include <array>
#include <cstddef>
#include <new>
#include <string>
#include <utility>

namespace ram {
namespace {

struct Meaning {
  TF_Code code;
  const char* text;
};

// In the order of Fault.
constexpr std::array<Meaning, 17> kMeanings{{
    {TF_OK, ""},
    {TF_NOT_FOUND, "no such file or directory"},
    {TF_FAILED_PRECONDITION, "a parent is a file, not a directory"},
    {TF_FAILED_PRECONDITION, "is a directory"},
    {TF_FAILED_PRECONDITION, "not a directory"},
    {TF_ALREADY_EXISTS, "exists already"},
    {TF_FAILED_PRECONDITION, "directory not empty"},
    {TF_FAILED_PRECONDITION, "the root cannot be deleted"},
    {TF_INVALID_ARGUMENT, "an empty file has no memory region"},
    {TF_OUT_OF_RANGE, "end of file"},
    {TF_FAILED_PRECONDITION, "the file is closed"},
    {TF_RESOURCE_EXHAUSTED, "capacity_bytes reached"},
    {TF_RESOURCE_EXHAUSTED, "out of memory"},
    {TF_NOT_FOUND, "no such option"},
    {TF_INVALID_ARGUMENT, "option needs exactly one value of its own type"},
    {TF_INVALID_ARGUMENT, "option value out of range"},
    {TF_INTERNAL, "unexpected C++ exception"},
}};
static_assert(kMeanings.size() == static_cast<size_t>(Fault::kInternal) + 1);

const Meaning& meaning_of(Fault fault) { return kMeanings[static_cast<size_t>(fault)]; }

std::string message_for(Fault fault, const Account& account, const char* subject) {
  const std::string label = account.label();
  return (label.empty() ? "" : "[" + label + "] ") + subject + "; " + meaning_of(fault).text;
}

}  // namespace

TF_Code code_of(Fault fault) { return meaning_of(fault).code; }
const char* text_of(Fault fault) { return meaning_of(fault).text; }

std::string Account::label() const {
  const std::lock_guard lock(label_mutex_);
  return label_;
}

void Account::set_label(std::string label) {
  const std::lock_guard lock(label_mutex_);
  label_ = std::move(label);
}

bool Account::charge(size_t bytes) {
  const int64_t more = static_cast<int64_t>(bytes);
  const int64_t limit = capacity_bytes.load();
  int64_t used = used_.load();
  do {
    if (limit > 0 && used > limit - more) return false;
  } while (!used_.compare_exchange_weak(used, used + more));
  return true;
}

void Account::release(size_t bytes) { used_.fetch_sub(static_cast<int64_t>(bytes)); }

void report(Fault fault, const Account& account, const char* subject, TF_Status* status) {
  if (fault == Fault::kNone) return TF_SetStatus(status, TF_OK, "");
  try {
    TF_SetStatus(status, code_of(fault), message_for(fault, account, subject).c_str());
  } catch (const std::bad_alloc&) {
    TF_SetStatus(status, code_of(fault), text_of(fault));
  }
}

}  // namespace ram
