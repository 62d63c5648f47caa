/** Products of matrices by CLBlast, as commands. */
#include <algorithm>

#include "clblast.h"
#include "driver.h"

namespace {

size_t Size(double cell) { return static_cast<size_t>(cell); }

Operand OperandOf(const double* cells, cl_mem buffer) {
  return {buffer, Size(cells[1]), Size(cells[2]), Size(cells[3]), cells[4] != 0};
}

/** The command's product, with these buffers. */
Product ProductOf(const double* cells, cl_mem a, cl_mem b, cl_mem c) {
  return {cells[2] != 0,
          Size(cells[3]),
          Size(cells[4]),
          Size(cells[5]),
          Size(cells[6]),
          OperandOf(cells + 7, a),
          OperandOf(cells + 12, b),
          OperandOf(cells + 17, c)};
}

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
  const size_t bytes = p.isDouble ? 8 : 4;
  cl_int code = CL_SUCCESS;
  const cl_command_queue queue = cl.CreateCommandQueue(context, device, 0, &code);
  Check(code, "clCreateCommandQueue");
  ClError failure{CL_SUCCESS, ""};
  for (Operand* operand : {&p.a, &p.b, &p.c}) {
    operand->buffer = cl.CreateBuffer(context, CL_MEM_READ_WRITE, operand->distance * p.batch * bytes, nullptr, &code);
    if (code != CL_SUCCESS) failure = {code, "clCreateBuffer"};
  }
  try {
    if (failure.code == CL_SUCCESS) Enqueue(p, queue, nullptr);
  } catch (const ClError& error) {
    failure = error;
  }
  cl.Finish(queue);
  for (const Operand& operand : {p.a, p.b, p.c})
    if (operand.buffer != nullptr) cl.ReleaseMemObject(operand.buffer);
  cl.ReleaseCommandQueue(queue);
  if (failure.code != CL_SUCCESS) throw failure;
}

}  // namespace

void Driver::Multiply(const double* cells, cl_event* event) {
  ::Enqueue(ProductOf(cells, Buffer(cells[7]), Buffer(cells[12]), Buffer(cells[17])), queue_, event);
}

std::shared_ptr<BuildJob> Driver::PrepareProduct(const double* cells, size_t count) {
  if (count != kProductCells) throw ClError{CL_INVALID_VALUE, "product"};
  const Product product = ProductOf(cells, nullptr, nullptr, nullptr);
  return builder_->Add([product, context = context_, device = device_] { Rehearse(product, context, device); });
}
