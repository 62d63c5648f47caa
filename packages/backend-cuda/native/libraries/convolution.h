/** Convolutions in two dimensions and their gradients as commands. Tensors lie in buffers, and everything counts elements. */
#pragma once
#include <algorithm>
#include <array>

#include "product.h"

/** A tensor of four axes. */
struct Image {
  /** The buffer's number. */
  double buffer;
  size_t offset;
  std::array<size_t, 4> strides;
};

/** Of rows and of columns. */
using Pair = std::array<size_t, 2>;

enum class Pass { forward, input, kernel };

struct Convolution {
  Element element;
  Pass pass;
  /** Channels and features are those of one group. */
  size_t images, groups, channels, features;
  Pair size, kernel, positions, stride, padding, dilation;
  /** The kernel lies the other way round. */
  bool flipped;
  /** x, w, y of `forward`; y, w, x of `input`; x, y, w of `kernel`. The last is written. */
  Image a, b, c;

  using Extents = std::array<size_t, 4>;
  Extents input() const { return {images, groups * channels, size[0], size[1]}; }
  Extents weights() const { return {groups * features, channels, kernel[0], kernel[1]}; }
  Extents output() const { return {images, groups * features, positions[0], positions[1]}; }
  const Image& x() const { return pass == Pass::input ? c : a; }
  const Image& w() const { return pass == Pass::kernel ? c : b; }
  const Image& y() const { return pass == Pass::forward ? c : pass == Pass::input ? a : b; }
};

/** Kind, cells, the format, the pass, four counts, six pairs, 1 if flipped, then of a, b, c: buffer, offset, four strides. */
constexpr size_t kConvolutionCells = 39;
constexpr const char* kConvolutionCall = "convolution";

namespace convolution_cells {

using product_cells::kMostExtent;

inline size_t Extent(double cell, size_t least = 1) {
  const size_t extent = Whole(cell, kConvolutionCall, "an extent", kMostExtent);
  if (extent < least) Refuse(kConvolutionCall, "an extent is 0");
  return extent;
}

inline Pair PairOf(const double* cells, size_t least = 1) { return {Extent(cells[0], least), Extent(cells[1], least)}; }

inline Image ImageOf(const double* cells) {
  Image made = {cells[0], Whole(cells[1], kConvolutionCall, "an offset"), {}};
  for (size_t i = 0; i < 4; i++) {
    made.strides[i] = Whole(cells[2 + i], kConvolutionCall, "a stride", kMostExtent);
    if (made.strides[i] == 0) Refuse(kConvolutionCall, "a stride is 0");
  }
  return made;
}

/** Refuses a result with two elements in one place. */
inline void NeedApart(const Image& image, const Convolution::Extents& extents) {
  std::array<std::pair<size_t, size_t>, 4> axes;
  for (size_t i = 0; i < 4; i++) axes[i] = {extents[i] > 1 ? image.strides[i] : 0, extents[i]};
  std::sort(axes.begin(), axes.end());
  size_t reach = 1;
  for (const auto& [stride, extent] : axes) {
    if (extent == 1) continue;
    if (stride < reach) Refuse(kConvolutionCall, "results overlap");
    reach = Plus(reach, Times(extent - 1, stride, kConvolutionCall), kConvolutionCall);
  }
}

}  // namespace convolution_cells

inline Convolution ConvolutionOf(const double* cells) {
  using namespace convolution_cells;
  const auto& format = product_cells::kFormats[Whole(cells[2], kConvolutionCall, "a format", 5)];
  if (format[0] != format[1]) Refuse(kConvolutionCall, "results are of another type than the factors");
  Convolution made = {format[0],
                      static_cast<Pass>(Whole(cells[3], kConvolutionCall, "a pass", 2)),
                      Extent(cells[4]),
                      Extent(cells[5]),
                      Extent(cells[6]),
                      Extent(cells[7]),
                      PairOf(cells + 8),
                      PairOf(cells + 10),
                      PairOf(cells + 12),
                      PairOf(cells + 14),
                      PairOf(cells + 16, 0),
                      PairOf(cells + 18),
                      cells[20] != 0,
                      ImageOf(cells + 21),
                      ImageOf(cells + 27),
                      ImageOf(cells + 33)};
  for (const size_t inner : {made.channels, made.features})
    if (made.groups * inner > static_cast<size_t>(kMostExtent)) Refuse(kConvolutionCall, "there are too many channels");
  for (size_t i = 0; i < 2; i++) {
    const size_t window = made.dilation[i] * (made.kernel[i] - 1) + 1;
    const size_t room = made.size[i] + 2 * made.padding[i];
    if (window > room || (room - window) / made.stride[i] + 1 != made.positions[i])
      Refuse(kConvolutionCall, "sizes do not fit each other");
  }
  const size_t area = Times(made.kernel[0], made.kernel[1], kConvolutionCall);
  const std::array<size_t, 4> packed = {Times(made.channels, area, kConvolutionCall), area, made.kernel[1], 1};
  if (made.w().strides != packed) Refuse(kConvolutionCall, "the kernel has gaps");
  if (made.pass == Pass::forward) NeedApart(made.c, made.output());
  if (made.pass == Pass::input) NeedApart(made.c, made.input());
  return made;
}

/** Bytes from the start of the buffer up to the last element. */
inline size_t ReachOf(const Image& image, Element element, const Convolution::Extents& extents) {
  size_t last = image.offset;
  for (size_t i = 0; i < 4; i++) last = Plus(last, Times(extents[i] - 1, image.strides[i], kConvolutionCall), kConvolutionCall);
  return Times(Plus(last, 1, kConvolutionCall), BytesOf(element), kConvolutionCall);
}
