/**
 * One engine's part of a device: streams, memory, modules and kernels, known by number. Knows no JavaScript. All members are called
 * from one thread; failures are thrown as NativeError.
 *
 * Kernels run in one stream, uploads and reads each in another. Marks keep them in order where they touch the same buffer, and only there.
 */
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "checked.h"
#include "commands.h"
#include "context.h"
#include "libraries/cublaslt.h"
#include "libraries/cudnn.h"
#include "graphs.h"
#include "jobs.h"
#include "slots.h"

/** A buffer: no range of it goes to the driver unchecked. */
struct Memory {
  CUdeviceptr at = 0;
  size_t bytes = 0;
  /** The last batch that used it; it may be unfinished. */
  uint64_t used = 0;
  /** The last upload to it, until a kernel waited for that. */
  Mark upload = nullptr;
  /** The last read of it, until a kernel waited for that. */
  Mark reading = nullptr;
};

/** PTX that is being compiled, or was. */
class Compiling : public Job {
 public:
  explicit Compiling(std::shared_ptr<const Context> context) : context_(std::move(context)) {}
  ~Compiling() override;

  CUmodule module = nullptr;

 private:
  const std::shared_ptr<const Context> context_;
};

/** An argument in the block of parameters. */
struct Argument {
  size_t at;
  /** 1, 2, 4 or 8; 0 is a buffer: its address. */
  size_t bytes;
};

struct Kernel {
  CUfunction function = nullptr;
  /** Holds the module. */
  std::shared_ptr<Compiling> module = nullptr;
  unsigned grid[3] = {1, 1, 1};
  unsigned group[3] = {1, 1, 1};
  unsigned sharedBytes = 0;
  size_t parameterBytes = 0;
  std::vector<Argument> arguments;
  /** Cells of a dispatch. */
  size_t cells = 6;
};

/** A read that is on its way to pinned memory. */
struct Reading {
  std::shared_ptr<Pinned> data;
  Mark mark;
};

class Driver {
 public:
  /**
   * `beside`: modules may be compiled on threads; `graphs`: batches that come again may be launched as one; `tf32`: libraries may round float32 to
   * TF32.
   */
  Driver(int device, bool beside, bool graphs, bool tf32);
  ~Driver() { Close(); }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  uint32_t Alloc(double bytes);
  void Free(double buffer);
  /** Copies host bytes; they may change right after. */
  void Upload(double buffer, double offset, const void* data, size_t bytes);
  /** Reads after everything submitted before, waiting for it. */
  void Read(double buffer, double offset, void* into, size_t bytes);
  /** The same without waiting. */
  Reading ReadLater(double buffer, double offset, size_t bytes);
  /** Marks of everything enqueued so far. */
  std::vector<Mark> Everything();
  /** Waits for marks on any thread; 0, or the driver's code. */
  static int WaitFor(const Context& context, const std::vector<Mark>& marks);
  const std::shared_ptr<const Context>& context() const { return context_; }

  /** Starts compiling; code that needs the module waits for it. */
  uint32_t Build(std::string ptx);
  std::shared_ptr<Job> JobOf(double module);
  /** Waits until it is compiled; throws what the driver's compiler said. */
  void Finish(double module);
  void ReleaseModule(double module);
  /** `layout`: grid (3), group (3), bytes of shared memory, bytes of parameters, then place and bytes of each argument, 0 for a buffer. */
  uint32_t MakeKernel(double module, const std::string& name, const double* layout, size_t count);
  void ReleaseKernel(double kernel);
  /** Registers, bytes of spills, bytes of shared memory, most threads. */
  std::vector<double> Facts(double kernel);

  /** Decides on a thread how a product, of matrices or a convolution, is computed. */
  std::shared_ptr<Job> PrepareProduct(const double* cells, size_t count);

  /** Enqueues a batch. On failure the commands before `NativeError::command` have been enqueued. */
  void Submit(const double* cells, size_t count);
  /** Runs a batch and waits for it; nanoseconds of each command on the device. */
  std::vector<double> SubmitTimed(const double* cells, size_t count);

  /** Graphs made, batches launched as one, kernels of them told of something new, and why none is used: see Graphs::off. */
  std::vector<double> GraphFacts();
  /** Bytes that are free on the device, all of it, and what this engine's pool holds. */
  std::vector<double> MemoryInfo();
  /** Gives unused memory back, after waiting for what runs. */
  void Trim();
  /** Gives up modules that are not being compiled yet, and waits for those that are. */
  void StopBuilding();
  /** Waits for everything and releases everything. */
  void Close();

 private:
  Memory& Buffer(double number);
  /** The buffer, in which a range must lie. */
  Memory& Within(double number, size_t offset, size_t bytes, const char* call);
  std::shared_ptr<Compiling>& Find(double module);
  CUdeviceptr AllocBytes(size_t bytes);
  void Enqueue(const double* cells, size_t length);
  /** Cells behind the groups: for each argument of a dispatch a buffer's number, offset and bytes, or the scalar's bytes. */
  void Dispatch(const double* cells, size_t length);
  /** A dispatch with everything checked, its buffers in use. */
  void Prepare(const double* cells, size_t length, Launch* launch);
  /** Launches a batch as a graph; false where its commands must be enqueued one by one, and none was. */
  bool Replay(const double* cells, size_t count);
  void Copy(const CopyCommand& copy);
  void Fill(const FillCommand& fill);
  void Multiply(const double* cells);
  void Convolve(const double* cells);
  CUdeviceptr ConvolutionWorkspace(size_t bytes);
  std::shared_ptr<Job> PrepareConvolution(const double* cells);
  /** The kernels' stream waits for uploads to the buffer and reads of it; from now on the current batch uses it. */
  CUdeviceptr Use(Memory& memory);
  /** A mark behind the last batch that used the buffer, or null if that is done. */
  Mark Used(const Memory& memory);
  /** A mark behind all batches. */
  Mark Computed();
  void WaitIn(CUstream stream, const Mark& mark);
  /** Unloads unused modules. */
  void Unload();
  /** Forgets the oldest upload, which is over. */
  void Unstage();
  /** Pinned memory for an upload, of at most one block. */
  std::shared_ptr<Pinned> Stage(size_t bytes, size_t* offset);

  std::shared_ptr<const Context> context_;
  std::shared_ptr<Events> events_;
  std::shared_ptr<PinnedPool> pinned_;
  CUstream compute_ = nullptr;
  CUstream uploads_ = nullptr;
  CUstream reads_ = nullptr;
  /** Null where the device has no pools. */
  CUmemoryPool pool_ = nullptr;
  int maxGrid_[3] = {0, 0, 0};
  int maxGroup_ = 0;
  Slots<Memory> buffers_;
  Slots<std::shared_ptr<Compiling>> modules_;
  Slots<Kernel> kernels_;
  std::unique_ptr<JobThreads> threads_;
  /** Modules that were released; kernels of them may run up to this batch. */
  std::deque<std::pair<uint64_t, std::shared_ptr<Compiling>>> leaving_;

  /** The batch that is enqueued now; marks of earlier ones, in their order. */
  uint64_t batch_ = 1;
  uint64_t done_ = 0;
  std::deque<std::pair<uint64_t, Mark>> marks_;
  std::unique_ptr<Graphs> graphs_;
  /** Of the batch that is submitted. */
  std::vector<uint32_t> batchKernels_;
  std::vector<Launch> launches_;
  /** Of the dispatch that is enqueued. */
  Launch launch_;
  /** Null before the first product. */
  std::unique_ptr<CublasLt> products_;
  CUdeviceptr productWorkspace_ = 0;
  /** Null before the first convolution. */
  std::unique_ptr<Cudnn> convolutions_;
  const bool tf32_;

  /** Something was enqueued after the last mark. */
  bool unmarked_ = false;
  /** Commands and batches since then. */
  size_t marked_ = 0;

  /** Uploads on their way, with the memory they come from. */
  struct Staged {
    Mark mark;
    std::shared_ptr<Pinned> block;
    size_t bytes;
  };
  std::deque<Staged> staged_;
  size_t stagedBytes_ = 0;
  std::shared_ptr<Pinned> stage_;
  size_t stageUsed_ = 0;
};
