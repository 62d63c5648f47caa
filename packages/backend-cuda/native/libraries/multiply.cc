/** Products of matrices by cuBLASLt, as commands. */
#include "driver.h"

void Driver::Multiply(const double* cells) {
  const Product p = ProductOf(cells);
  const auto place = [&](const Operand& o, Element element, size_t down, size_t across) -> Memory& {
    return Within(o.buffer, 0, ReachOf(p, o, element, down, across), kProductCall);
  };
  Memory& a = place(p.a, p.factor, p.m, p.k);
  Memory& b = place(p.b, p.factor, p.k, p.n);
  Memory& c = place(p.c, p.result, p.m, p.n);
  if (products_ == nullptr) products_ = std::make_unique<CublasLt>();
  if (productWorkspace_ == 0) productWorkspace_ = AllocBytes(kProductWorkspace);
  const auto at = [&](Memory& memory, const Operand& o, Element element) { return Use(memory) + o.offset * BytesOf(element); };
  products_->Enqueue(p, at(a, p.a, p.factor), at(b, p.b, p.factor), at(c, p.c, p.result), productWorkspace_, compute_);
}

std::shared_ptr<Job> Driver::PrepareProduct(const double* cells, size_t count) {
  if (count == kConvolutionCells) return PrepareConvolution(cells);
  const Product product = OnlyProduct(cells, count);
  NeedCublasLt();
  context_->Enter();
  const auto job = std::make_shared<Job>();
  threads_->Add(job, [context = context_, product](Job&, OfThread&) {
    context->Enter();
    CublasLt().Decide(product);
  });
  return job;
}
