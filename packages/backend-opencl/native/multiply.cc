/** Products of matrices by CLBlast, as commands. */
#include <algorithm>
#include <utility>

#include "clblast.h"
#include "driver.h"

namespace {

constexpr const char* kCall = "product";
/** More than this in one direction no routine counts. */
constexpr double kMostExtent = 2147483647.0;

Operand OperandOf(const double* cells) {
  return {nullptr, Whole(cells[1], kCall, "an offset"), Whole(cells[2], kCall, "a stride", kMostExtent),
          Whole(cells[3], kCall, "a distance"), cells[4] != 0};
}

size_t Extent(double cell) {
  const size_t extent = Whole(cell, kCall, "an extent", kMostExtent);
  if (extent == 0) Refuse(kCall, "an extent is 0");
  return extent;
}

/** The command's product, without buffers. */
Product ProductOf(const double* cells) {
  return {cells[2] != 0,
          Extent(cells[3]),
          Extent(cells[4]),
          Extent(cells[5]),
          Extent(cells[6]),
          OperandOf(cells + 7),
          OperandOf(cells + 12),
          OperandOf(cells + 17)};
}

/** Elements up to the last of `batch` matrices of `down` x `across`. */
size_t Reach(const Operand& o, size_t down, size_t across, size_t batch) {
  if (o.transposed) std::swap(down, across);
  if (o.stride < across) Refuse(kCall, "rows overlap");
  const size_t rows = Plus(Times(down - 1, o.stride, kCall), across, kCall);
  return Plus(Plus(o.offset, Times(batch - 1, o.distance, kCall), kCall), rows, kCall);
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
  Product p = ProductOf(cells);
  const size_t bytes = p.isDouble ? 8 : 4;
  const auto place = [&](Operand* o, double buffer, size_t down, size_t across) {
    o->buffer = Within(buffer, 0, Times(Reach(*o, down, across, p.batch), bytes, kCall), kCall);
  };
  place(&p.a, cells[7], p.m, p.k);
  place(&p.b, cells[12], p.k, p.n);
  place(&p.c, cells[17], p.m, p.n);
  ::Enqueue(p, queue_, event);
}

std::shared_ptr<Job> Driver::PrepareProduct(const double* cells, size_t count, std::string lock) {
  if (count != kProductCells) Refuse(kCall, "a product has other cells");
  NeedBlast();
  const Product product = ProductOf(cells);
  return builder_->Add([product, context = context_, device = device_] { Rehearse(product, context, device); }, std::move(lock));
}
