/** Products of matrices by CLBlast, as commands. */
#include <algorithm>

#include "clblast.h"
#include "driver.h"

namespace {

/** A matrix of `down` x `across` without gaps. */
void Compact(Operand* operand, size_t down, size_t across) {
  operand->offset = 0;
  operand->stride = operand->transposed ? down : across;
  operand->distance = down * across;
}

/** Larger products need the same kernels as those of this size. */
constexpr size_t kLargest = 1024;

void Rehearse(Product p, cl_context context, cl_device_id device) {
  p.m = std::min(p.m, kLargest);
  p.n = std::min(p.n, kLargest);
  p.k = std::min(p.k, kLargest);
  p.batch = std::min<size_t>(p.batch, 2);
  Compact(&p.a, p.m, p.k);
  Compact(&p.b, p.k, p.n);
  Compact(&p.c, p.m, p.n);
  const size_t bytes = BytesOf(p.factor);
  cl_int code = CL_SUCCESS;
  const cl_command_queue queue = cl.CreateCommandQueue(context, device, 0, &code);
  Check(code, "clCreateCommandQueue");
  ClError failure{CL_SUCCESS, ""};
  Matrices matrices = {};
  const auto make = [&](const Operand& operand) {
    const cl_mem made = cl.CreateBuffer(context, CL_MEM_READ_WRITE, operand.distance * p.batch * bytes, nullptr, &code);
    if (code != CL_SUCCESS) failure = {code, "clCreateBuffer"};
    return made;
  };
  matrices.a = make(p.a);
  matrices.b = make(p.b);
  matrices.c = make(p.c);
  try {
    if (failure.code == CL_SUCCESS) Enqueue(p, matrices, queue, nullptr);
  } catch (const ClError& error) {
    failure = error;
  }
  cl.Finish(queue);
  for (const cl_mem matrix : {matrices.a, matrices.b, matrices.c})
    if (matrix != nullptr) cl.ReleaseMemObject(matrix);
  cl.ReleaseCommandQueue(queue);
  if (failure.code != CL_SUCCESS) throw failure;
}

}  // namespace

void Driver::Multiply(const double* cells, cl_event* event) {
  const Product p = ProductOf(cells);
  const auto place = [&](const Operand& o, size_t down, size_t across) {
    return Within(o.buffer, 0, ReachOf(p, o, p.factor, down, across), kProductCall);
  };
  const Matrices matrices = {place(p.a, p.m, p.k), place(p.b, p.k, p.n), place(p.c, p.m, p.n)};
  ::Enqueue(p, matrices, queue_, event);
}

std::shared_ptr<Job> Driver::PrepareProduct(const double* cells, size_t count, std::string lock) {
  const Product product = OnlyProduct(cells, count);
  NeedBlast();
  return builder_->Add([product, context = context_, device = device_] { Rehearse(product, context, device); }, std::move(lock));
}
