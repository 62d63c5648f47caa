/** Products of matrices by cuBLASLt, as commands. */
#include "driver.h"

void Driver::Multiply(const double* cells) {
  const Product p = ProductOf(cells);
  const auto place = [&](const Operand& o, size_t down, size_t across) -> Memory& {
    return Within(o.buffer, 0, ReachOf(p, o, down, across), kProductCall);
  };
  Memory& a = place(p.a, p.m, p.k);
  Memory& b = place(p.b, p.k, p.n);
  Memory& c = place(p.c, p.m, p.n);
  if (products_ == nullptr) products_ = std::make_unique<CublasLt>();
  if (productWorkspace_ == 0) productWorkspace_ = AllocBytes(kProductWorkspace);
  const auto at = [&](Memory& memory, const Operand& o) { return Use(memory) + o.offset * p.elementBytes(); };
  products_->Enqueue(p, at(a, p.a), at(b, p.b), at(c, p.c), productWorkspace_, compute_);
}

std::shared_ptr<Job> Driver::PrepareProduct(const double* cells, size_t count) {
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
