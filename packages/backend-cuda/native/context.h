/** What engines on one device share: its primary context, held as long as somebody uses it, and whether the device had a fault. */
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "cu.h"

/** True for errors after which no work of the process is done on the device any more. */
bool IsFatal(CUresult code);

class Context {
 public:
  explicit Context(int device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /** Makes it the thread's context. Throws the fault, if the device had one. */
  void Enter() const;
  /** The same without looking for a fault: to give things back. */
  void EnterAnyway() const { cu.CtxSetCurrent(context_); }
  /** Throws for anything but success; a fatal error stays with the device. */
  void Check(CUresult code, const char* call) const;
  /** Notes a fatal error; the error the device has, or the one given. */
  CUresult Note(CUresult code) const;

  CUdevice device() const { return device_; }

 private:
  CUdevice device_ = 0;
  int index_;
  CUcontext context_ = nullptr;
};

/** A point in a stream. The driver's event returns to its pool when it is no longer needed. */
using Mark = std::shared_ptr<CUevent_st>;

class Events : public std::enable_shared_from_this<Events> {
 public:
  explicit Events(std::shared_ptr<const Context> context) : context_(std::move(context)) {}
  ~Events();

  /** A mark at what the stream has been given so far. */
  Mark Record(CUstream stream);

 private:
  const std::shared_ptr<const Context> context_;
  std::mutex guard_;
  std::vector<CUevent> free_;
};

/** True if what came before the mark is done. */
bool IsOver(const Mark& mark);

/** Host memory that the device reads and writes by itself. */
struct Pinned {
  void* data = nullptr;
  size_t bytes = 0;
};

/** Blocks of such memory, by powers of two, kept for the next time up to a limit: making one takes a millisecond. */
class PinnedPool : public std::enable_shared_from_this<PinnedPool> {
 public:
  explicit PinnedPool(std::shared_ptr<const Context> context) : context_(std::move(context)) {}
  ~PinnedPool();

  /** At least so many bytes; goes back by itself. Throws where the system gives none. */
  std::shared_ptr<Pinned> Take(size_t bytes);
  /** Releases unused memory. */
  void Trim();

 private:
  void Return(Pinned block);

  const std::shared_ptr<const Context> context_;
  std::mutex guard_;
  std::vector<Pinned> free_;
  size_t kept_ = 0;
};
