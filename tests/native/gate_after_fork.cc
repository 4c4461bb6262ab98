// Calls that a fork leaves inside of a gate. The process ends with 0, or by abort().
#include "gate.h"

#include <cstdlib>

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

int main() {
  mtf::Gate gate;
  check(gate.enter());
  gate.after_fork();
  check(!gate.leave());  // of the call that began before
  check(!gate.is_closed() && gate.pins() == 0);

  check(gate.enter());
  check(!gate.close());
  check(gate.leave());
  check(!gate.leave() && gate.has_ended());

  mtf::Gate viewed;
  check(viewed.enter());
  viewed.pin();
  viewed.after_fork();
  check(viewed.unpin() && !viewed.leave() && !viewed.leave());
  check(viewed.pins() == 0 && viewed.close());
}
