// The bundled ram plugin's handlers of forks, where there is no memory for them the first time.
#include <cerrno>

#include "fork_gate.h"

extern "C" int pthread_atfork(void (*)(), void (*)(), void (*)()) noexcept {
  static int calls = 0;
  return ++calls == 1 ? ENOMEM : calls - 2;
}

int main() { return !ram::watch_forks() && ram::watch_forks() && ram::watch_forks() ? 0 : 1; }
