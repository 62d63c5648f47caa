/** Products of matrices as commands: c = a b, `batch` times. Matrices lie in buffers, row-major, and everything counts elements. */
#pragma once
#include <utility>

#include "checked.h"

struct Operand {
  /** The buffer's number. */
  double buffer;
  size_t offset;
  size_t stride;
  size_t distance;
  bool transposed;
};

enum class Element { float32, float64, float16, bfloat16 };

constexpr size_t BytesOf(Element element) { return element == Element::float64 ? 8 : element == Element::float32 ? 4 : 2; }

struct Product {
  /** Of the factors, and of the results. Sums of 16-bit floats are of float32. */
  Element factor, result;
  size_t m, n, k, batch;
  Operand a, b, c;

  bool isDouble() const { return factor == Element::float64; }
};

/** Kind, cells, the format, m, n, k, batch, then of a, b, c: buffer, offset, stride, distance, 1 if transposed. */
constexpr size_t kProductCells = 22;
constexpr const char* kProductCall = "product";

namespace product_cells {

/** More than this in one direction no routine counts. */
constexpr double kMostExtent = 2147483647.0;

inline Operand OperandOf(const double* cells) {
  return {cells[0], Whole(cells[1], kProductCall, "an offset"), Whole(cells[2], kProductCall, "a stride", kMostExtent),
          Whole(cells[3], kProductCall, "a distance"), cells[4] != 0};
}

/** By the number of the format (src/product.ts). */
constexpr Element kFormats[][2] = {{Element::float32, Element::float32},   {Element::float64, Element::float64},
                                   {Element::float16, Element::float16},   {Element::float16, Element::float32},
                                   {Element::bfloat16, Element::bfloat16}, {Element::bfloat16, Element::float32}};

inline size_t Extent(double cell) {
  const size_t extent = Whole(cell, kProductCall, "an extent", kMostExtent);
  if (extent == 0) Refuse(kProductCall, "an extent is 0");
  return extent;
}

}  // namespace product_cells

inline Product ProductOf(const double* cells) {
  using namespace product_cells;
  const auto& format = kFormats[Whole(cells[2], kProductCall, "a format", 5)];
  const Product made = {format[0],
                        format[1],
                        Extent(cells[3]),
                        Extent(cells[4]),
                        Extent(cells[5]),
                        Extent(cells[6]),
                        OperandOf(cells + 7),
                        OperandOf(cells + 12),
                        OperandOf(cells + 17)};
  const size_t rows = Plus(Times(made.m - 1, made.c.stride, kProductCall), made.n, kProductCall);
  if (made.batch > 1 && made.c.distance < rows) Refuse(kProductCall, "results overlap");
  return made;
}

/** Bytes from the start of the buffer up to the last element of `batch` matrices of `down` x `across`. */
inline size_t ReachOf(const Product& p, const Operand& o, Element element, size_t down, size_t across) {
  if (o.transposed) std::swap(down, across);
  if (o.stride < across) Refuse(kProductCall, "rows overlap");
  const size_t rows = Plus(Times(down - 1, o.stride, kProductCall), across, kProductCall);
  const size_t before = Plus(o.offset, Times(p.batch - 1, o.distance, kProductCall), kProductCall);
  return Times(Plus(before, rows, kProductCall), BytesOf(element), kProductCall);
}

/** The cells of a product alone, as `prepareProduct` is given them. */
inline Product OnlyProduct(const double* cells, size_t count) {
  if (count != kProductCells) Refuse(kProductCall, "a product has other cells");
  return ProductOf(cells);
}
