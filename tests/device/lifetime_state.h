// What the lifetime plugin makes, and what is noted of it: whether it was given back, what was used
// after that, and at which gates a test holds the plugin.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "modular_tf/device.h"

namespace lifetime {

struct Object {
  const char* kind;
  int device;
  std::atomic<bool> alive{true};
};

struct Block : Object {
  char* start;
  uint64_t size;
};

struct Device : Object {
  std::set<SP_Stream> streams;
};

struct Gate {
  int most;  // how many it holds; others pass
  int held = 0;
};

struct Life {
  std::string faults;
  std::set<Object*> alive;
  std::map<char*, Block*> blocks;  // by address, the last one that was there
  std::map<std::string, Gate> gates;  // the closed ones, by the function that they hold
  std::set<std::string> synchronizing;  // functions that wait for the device first
  void* next_address = nullptr;
  bool use_bfc_allocator = false;
};

inline std::mutex mutex;
inline std::condition_variable changed;
inline std::atomic<int> outstanding{0};  // pieces of work of all streams
inline Life life;

inline void fault(const std::string& text) {
  if (life.faults.find(text) == std::string::npos) life.faults += text + "\n";
}

// Notes a fault where something is used that was given back.
inline void check(const char* slot, const Object* used) {
  if (used->alive) return;
  const std::lock_guard<std::mutex> lock(mutex);
  fault(std::string(slot) + " used a " + used->kind + " that was given back");
}

inline void pass_gate(const std::string& name) {
  std::unique_lock<std::mutex> lock(mutex);
  const auto gate = life.gates.find(name);
  if (gate == life.gates.end() || gate->second.held == gate->second.most) return;
  ++gate->second.held;
  changed.notify_all();
  changed.wait(lock, [&] { return life.gates.count(name) == 0; });
}

template <class Made>
Made* added(Made* made, const char* kind, int device) {
  const std::lock_guard<std::mutex> lock(mutex);
  made->kind = kind;
  made->device = device;
  life.alive.insert(made);
  return made;
}

inline void remove(const char* slot, Object* object) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!object->alive.exchange(false)) fault(std::string(slot) + " of what was given back before");
  life.alive.erase(object);
}

inline Device* device_of(const SP_Device* device) {
  return static_cast<Device*>(device->device_handle);
}

}  // namespace lifetime

struct SP_Stream_st : lifetime::Object {
  std::mutex queue_mutex;
  std::condition_variable queue_changed;
  std::deque<std::function<void()>> queue;
  int unfinished = 0;
  bool ends = false;
  std::thread thread;

  void put(std::function<void()> work) {
    if (!alive) return work();  // noted as a fault, and nobody shall wait for ever
    const std::lock_guard<std::mutex> lock(queue_mutex);
    queue.push_back(std::move(work));
    ++unfinished;
    ++lifetime::outstanding;
    queue_changed.notify_all();
  }
  void run() {
    std::unique_lock<std::mutex> lock(queue_mutex);
    for (;;) {
      queue_changed.wait(lock, [this] { return ends || !queue.empty(); });
      if (queue.empty()) return;
      const std::function<void()> work = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      lifetime::pass_gate("work");
      work();
      lock.lock();
      --unfinished;
      --lifetime::outstanding;
      queue_changed.notify_all();
    }
  }
  void wait() {
    std::unique_lock<std::mutex> lock(queue_mutex);
    queue_changed.wait(lock, [this] { return unfinished == 0; });
  }
};
struct SP_Event_st : lifetime::Object {
  std::atomic<int> pending{0};
};
struct SP_Timer_st : lifetime::Object {};

namespace lifetime {

inline void wait_for_device(Device* device) {
  std::set<SP_Stream> streams;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    streams = device->streams;
  }
  for (SP_Stream stream : streams) stream->wait();
}

// The begin of every function of a device.
inline Device* enter(const char* slot, const SP_Device* device) {
  Device* entered = device_of(device);
  check(slot, entered);
  pass_gate(slot);
  check(slot, entered);
  bool waits;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    waits = life.synchronizing.count(slot) != 0;
  }
  if (waits) wait_for_device(entered);
  return entered;
}

}  // namespace lifetime
