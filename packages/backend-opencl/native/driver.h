/**
 * One context on one device, with its buffers, programs and kernels known by number. Knows no JavaScript. All members are called from one
 * thread; failures are thrown as ClError.
 *
 * Two queues, each in order: what computes, and copies that need not wait for it. Uploads and reads go to the second where the first is busy,
 * behind the last batch that used their buffer and no other; a batch goes behind the copies of the buffers that it uses.
 */
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "builder.h"
#include "checked.h"
#include "commands.h"
#include "slots.h"

/** An event, released with its last holder. */
using Mark = std::shared_ptr<std::remove_pointer_t<cl_event>>;

/** A buffer and how long it is: no range of it goes to the driver unchecked. */
struct Memory {
  cl_mem memory = nullptr;
  size_t bytes = 0;
  /** The last batch of the first queue that uses it. */
  uint64_t used = 0;
  /** Its last copy in the second queue, until a batch waits for that. */
  Mark copied = nullptr;
};

struct Kernel {
  cl_kernel kernel = nullptr;
  cl_uint dimensions = 1;
  size_t global[3] = {1, 1, 1};
  size_t local[3] = {1, 1, 1};
  /** Bytes of each argument: 1, 2, 4 or 8; 0 is a buffer. */
  std::vector<uint8_t> sizes;
};

/** A program, or one that is being compiled. */
struct Program {
  cl_program program = nullptr;
  std::shared_ptr<BuildJob> job = nullptr;
};

class Driver {
 public:
  /** `beside`: programs may be compiled on threads. */
  Driver(DeviceChoice choice, bool unified, bool beside);
  ~Driver() { Close(); }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  uint32_t Alloc(double bytes);
  void Free(double buffer);
  /** Copies host bytes; they may change right after. */
  void Upload(double buffer, double offset, const void* data, size_t bytes);
  /** Reads after everything submitted before, waiting for it. */
  void Read(double buffer, double offset, void* into, size_t bytes);
  /** The same without waiting: `into` must stay until the event is complete. The caller releases the event. */
  cl_event ReadLater(double buffer, double offset, void* into, size_t bytes);
  /** Completes when everything submitted before has. The caller releases the event. */
  cl_event Marker();

  /** Starts compiling; code that needs the program waits for it. `reload`, `lock`: see Builder. */
  uint32_t Build(std::string source, std::string options, bool reload, std::string lock);
  /** Waits for the FileLock on `lock`. */
  uint32_t Load(const uint8_t* data, size_t bytes, const std::string& options, const std::string& lock);
  /** Null if the program is there, or was refused and somebody has been told. */
  std::shared_ptr<BuildJob> JobOf(double program);
  /** The program, once it is compiled; throws what the compiler said. */
  cl_program Compiled(double program);
  std::vector<uint8_t> BinaryOf(double program);
  void ReleaseProgram(double program);
  /** `layout`: grid (3), group (3), then the bytes of each argument, 0 for a buffer. */
  uint32_t MakeKernel(double program, const std::string& name, const double* layout, size_t count);
  void ReleaseKernel(double kernel);

  /** Has CLBlast compile, on a thread, what products like this one need; the cells are those of a command without buffers. */
  std::shared_ptr<Job> PrepareProduct(const double* cells, size_t count, std::string lock);

  /** Enqueues a batch and flushes. On failure the commands before `ClError::command` have been enqueued. */
  void Submit(const double* cells, size_t count);
  /** Runs a batch and waits for it; nanoseconds of each command on the device, negative without a clock. */
  std::vector<double> SubmitTimed(const double* cells, size_t count);
  /** Gives up programs that are not being compiled yet, and waits for those that are. */
  void StopBuilding();
  /** Waits for everything and releases everything. */
  void Close();

 private:
  Memory& Buffer(double number);
  /** The buffer, in which a range must lie. */
  Memory& Find(double number, size_t offset, size_t bytes, const char* call);
  /** The same for a command of the first queue, which goes behind copies of the buffer. */
  cl_mem Within(double number, size_t offset, size_t bytes, const char* call);
  cl_mem Use(Memory& memory);
  /** What a copy in the second queue must wait for; null: nothing. */
  Mark Used(const Memory& memory);
  /** The second queue; the first, where there is no other to be had. */
  cl_command_queue Copies();
  /** The queue for a copy of the buffer, which waits there for `after`. */
  struct Lane {
    cl_command_queue queue;
    Mark after;
    cl_uint Count() const { return after == nullptr ? 0 : 1; }
    cl_event event = nullptr;
  };
  Lane LaneFor(Memory& memory, bool beside);
  /** Notes that a copy was enqueued, with its event, and sends it off. */
  void Copied(Memory& memory, const Lane& lane, cl_event event);
  /** What was enqueued in the first queue since the last time is a batch, over with this event. */
  void EndBatch(cl_event event);
  /** The same where a batch failed after some of its commands. */
  void EndFailed();
  void FinishAll();
  Program& Find(double program);
  /** Enqueues a command of so many cells. */
  void Enqueue(const double* cells, size_t length, cl_event* event);
  /** Cells behind the groups: one for each argument of a dispatch: a buffer's number, or the scalar's bytes. */
  void Dispatch(const double* cells, size_t length, cl_event* event);
  void Copy(const CopyCommand& copy, cl_event* event);
  void Fill(const FillCommand& fill, cl_event* event);
  void Multiply(const double* cells, cl_event* event);
  /** Whether the kernel takes what the layout says, as far as the driver tells. */
  void CheckArguments(const Kernel& kernel);
  /** True where nothing enqueued is unfinished, as far as is known. */
  bool Idle();

  cl_context context_ = nullptr;
  cl_device_id device_ = nullptr;
  cl_command_queue queue_ = nullptr;
  /** A queue that keeps times, made when first asked for. */
  cl_command_queue timed_ = nullptr;
  /** Uploads and reads beside what computes, made when first needed. */
  cl_command_queue copies_ = nullptr;
  /** The last copy in that. */
  Mark lastCopy_ = nullptr;
  /** The batch that is being enqueued, and the ends of those before it, oldest first. */
  uint64_t batch_ = 1;
  std::deque<std::pair<uint64_t, Mark>> running_;
  bool unified_ = false;
  Slots<Memory> buffers_;
  Slots<Program> programs_;
  std::unique_ptr<Builder> builder_;
  Slots<Kernel> kernels_;
  /** Bytes of uploads that wait in separate copies. */
  std::shared_ptr<std::atomic<size_t>> staged_ = std::make_shared<std::atomic<size_t>>(0);
};
