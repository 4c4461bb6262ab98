// Locks of the core between threads, and in forked children. The argument is the case; the process
// ends with 0, or by abort(), or not at all.
#include "fork_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

using mtf::Lock;
using mtf::LockGuard;
using mtf::Signal;
using mtf::UniqueLock;

namespace {

constexpr int kThreads = 4;

void check(bool holds) {
  if (!holds) std::abort();
}

void on_threads(const std::function<void()>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work);
  for (auto& thread : threads) thread.join();
}

// Has a child do `work`, and waits for it.
void in_child(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  check(status == 0);
}

// While a thread of its own holds `lock`, and others wait for it, does `work`.
void while_taken(Lock& lock, const std::function<void()>& work) {
  std::atomic<bool> taken{false}, done{false};
  std::thread holder([&] {
    const LockGuard held(lock);
    taken = true;
    while (!done) std::this_thread::yield();
  });
  while (!taken) std::this_thread::yield();
  std::vector<std::thread> waiting;
  for (int i = 0; i < kThreads; ++i) waiting.emplace_back([&] { const LockGuard held(lock); });
  usleep(20000);  // so that most of them sleep
  work();
  done = true;
  holder.join();
  for (auto& thread : waiting) thread.join();
}

void count_together(Lock& lock) {
  long count = 0;
  on_threads([&] {
    for (int i = 0; i < 100000; ++i) {
      const LockGuard held(lock);
      ++count;
    }
  });
  check(count == kThreads * 100000L);
}

void one_thread_at_a_time() {
  Lock lock;
  count_together(lock);
}

void a_taken_lock_is_not_taken_twice() {
  Lock lock;
  while_taken(lock, [&] { check(!lock.try_lock()); });
  check(lock.try_lock());
  check(!lock.try_lock());
  lock.unlock();
}

void a_child_and_its_child_find_it_free() {
  Lock lock;
  while_taken(lock, [&] {
    in_child([&] {
      count_together(lock);
      while_taken(lock, [&] { in_child([&] { count_together(lock); }); });
    });
    check(!lock.try_lock());
  });
}

void a_child_is_told_that_another_thread_held_it() {
  Lock lock;
  const auto is_abandoned = [&] {
    const LockGuard held(lock);
    return lock.is_abandoned();
  };
  in_child([&] { check(!is_abandoned()); });
  while_taken(lock, [&] {
    in_child([&] {
      check(is_abandoned() && is_abandoned());
      in_child([&] { check(is_abandoned()); });
    });
    in_child([&] {
      check(lock.try_lock() && lock.is_abandoned());
      lock.unlock();
    });
  });
  check(!is_abandoned());
}

void take_turns(Lock& lock, Signal& signal) {
  int turn = 0;
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      for (int i = 0; i < 1000; ++i) {
        UniqueLock held(lock);
        signal.wait(held, [&] { return turn % kThreads == number; });
        ++turn;
        signal.notify_all();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  check(turn == kThreads * 1000);
}

void waiters_are_woken() {
  Lock lock;
  Signal signal;
  take_turns(lock, signal);
}

void a_child_waits_beside_the_waiters_of_its_parent() {
  Lock lock;
  Signal signal;
  bool over = false;
  std::vector<std::thread> waiting;
  for (int i = 0; i < kThreads; ++i) {
    waiting.emplace_back([&] {
      UniqueLock held(lock);
      signal.wait(held, [&] { return over; });
    });
  }
  usleep(20000);
  in_child([&] { take_turns(lock, signal); });
  {
    const LockGuard held(lock);
    over = true;
  }
  signal.notify_all();
  for (auto& thread : waiting) thread.join();
}

void a_wait_ends_with_its_time() {
  Lock lock;
  Signal signal;
  UniqueLock held(lock);
  check(!signal.wait_for(held, std::chrono::milliseconds(20), [] { return false; }));
  check(signal.wait_for(held, std::chrono::milliseconds(0), [] { return true; }));
  check(!lock.try_lock());
}

void a_wait_for_a_lock_ends_with_its_time() {
  Lock lock;
  while_taken(lock, [&] { check(!lock.try_lock_for(std::chrono::milliseconds(20))); });
  check(lock.try_lock_for(std::chrono::milliseconds(0)));
}

void threads_that_give_up_leave_no_other_asleep() {
  Lock lock;
  long count = 0;
  std::atomic<long> taken{0};
  std::atomic<int> number{0};
  on_threads([&] {
    const bool gives_up = number++ % 2 == 0;
    for (int i = 0; i < 100000; ++i) {
      if (!gives_up) lock.lock();
      if (gives_up && !lock.try_lock_for(std::chrono::microseconds(i % 50))) continue;
      ++count;
      ++taken;
      lock.unlock();
    }
  });
  check(count == taken);
}

const std::map<std::string, std::function<void()>> cases = {
    {"one_thread_at_a_time", one_thread_at_a_time},
    {"a_taken_lock_is_not_taken_twice", a_taken_lock_is_not_taken_twice},
    {"a_child_and_its_child_find_it_free", a_child_and_its_child_find_it_free},
    {"a_child_is_told_that_another_thread_held_it", a_child_is_told_that_another_thread_held_it},
    {"waiters_are_woken", waiters_are_woken},
    {"a_child_waits_beside_the_waiters_of_its_parent",
     a_child_waits_beside_the_waiters_of_its_parent},
    {"a_wait_ends_with_its_time", a_wait_ends_with_its_time},
    {"a_wait_for_a_lock_ends_with_its_time", a_wait_for_a_lock_ends_with_its_time},
    {"threads_that_give_up_leave_no_other_asleep", threads_that_give_up_leave_no_other_asleep},
};

}  // namespace

int main(int, char** arguments) {
  check(mtf::watches_forks());
  cases.at(arguments[1])();
}
