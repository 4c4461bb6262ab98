#include "chosen_defect.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace defective {
namespace {

// In a function: the lists are filled by constructors, in no order that anybody knows.
std::vector<Defect>& known() {
  static std::vector<Defect> defects;
  return defects;
}

}  // namespace

DefectList::DefectList(std::initializer_list<Defect> defects) {
  known().insert(known().end(), defects.begin(), defects.end());
}

void apply_chosen_defect(Tables& tables) {
  const char* chosen = std::getenv("MODULAR_TF_FIXTURE_DEFECT");
  if (chosen == nullptr || *chosen == '\0') return;
  for (const Defect& defect : known()) {
    if (std::strcmp(defect.check, chosen) == 0) return defect.apply(tables);
  }
  std::fprintf(stderr, "MODULAR_TF_FIXTURE_DEFECT: there is no defect %s\n", chosen);
  std::abort();
}

}  // namespace defective
