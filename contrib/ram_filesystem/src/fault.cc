#include "fault.h"

#include <array>
#include <cstddef>

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

}  // namespace

TF_Code code_of(Fault fault) { return meaning_of(fault).code; }
const char* text_of(Fault fault) { return meaning_of(fault).text; }

}  // namespace ram
