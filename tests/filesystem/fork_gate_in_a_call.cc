// The bundled ram plugin's handlers of forks, where a call of the plugin forks: it does not wait for itself,
// and the next fork of the child waits for calls all the same.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "fork_gate.h"

namespace {

using Clock = std::chrono::steady_clock;

int status_of(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// 0: the fork of this thread came after the call of another one.
int fork_beside_a_call() {
  std::atomic<bool> is_in_call{false};
  std::atomic<bool> has_ended{false};
  std::thread other([&] {
    const ram::Call call;
    is_in_call = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    has_ended = true;
  });
  while (!is_in_call) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) _exit(has_ended ? 0 : 3);
  other.join();
  return status_of(child);
}

}  // namespace

int main() {
  if (!ram::watch_forks()) return 1;
  pid_t child;
  const auto begin = Clock::now();
  {
    const ram::Call call;
    child = fork();
  }
  if (child == 0) _exit(fork_beside_a_call());
  if (Clock::now() - begin > std::chrono::seconds(1)) return 2;  // a fork that waits for itself takes 2 s
  const int status = status_of(child);
  return status != 0 ? status : fork_beside_a_call();
}
