// Marks in streams, and the events that point at them.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

namespace host {

// One place in one stream, passed once. [any thread]
class Mark {
 public:
  void pass();
  bool passed() const;
  void wait() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool passed_ = false;
};

using MarkPointer = std::shared_ptr<Mark>;

// Of a place that needs no waiting for.
MarkPointer passed_mark();

// Points at the mark that it was last recorded as. Recording it again leaves those alone who wait
// for the earlier mark, and destroying it nobody. [any thread]
class Event {
 public:
  void set(MarkPointer mark);
  MarkPointer mark() const;  // NULL: never recorded, there is nothing to wait for

 private:
  mutable std::mutex mutex_;
  MarkPointer mark_;
};

}  // namespace host

struct SP_Event_st {
  host::Event event;
};
