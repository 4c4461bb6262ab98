// The one defect that a switchable plugin has, and how defects are listed.
//
// The environment variable MODULAR_TF_FIXTURE_DEFECT names the defect by the check that must find
// it; without it there is none. What a defect can change is for each plugin to say, in `Tables` of
// its defects.h.
#pragma once

#include <initializer_list>

namespace defective {

struct Tables;

struct Defect {
  const char* check;  // id of the check that must find it
  void (*apply)(Tables& tables);
};

// Makes defects known, while the library is loaded.
struct DefectList {
  DefectList(std::initializer_list<Defect> defects);
};

// Applies the one that the environment asks for; aborts, and says why, where nobody knows it.
void apply_chosen_defect(Tables& tables);

}  // namespace defective

#define DEFECTS(group)       \
  using namespace defective; \
  static const DefectList group##_defects
