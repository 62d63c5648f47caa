/**
 * What is measured on a card: names, work and figures. Both workers (polygrad_work.mjs, torch_work.py) are given these cases as JSON. With `tiny`
 * everything is small: that says that it works, and its figures mean nothing.
 */

const f32 = 4;

/** GB/s of traffic that is needed at least, GFLOP/s, milliseconds or microseconds: from seconds a run. */
export const figures = {
  'GB/s': ({ bytes }, seconds) => bytes / seconds / 1e9,
  'GFLOP/s': ({ flops }, seconds) => flops / seconds / 1e9,
  ms: (_, seconds) => seconds * 1e3,
  us: (_, seconds) => seconds * 1e6,
};

/** Groups in the order in which they run: what matters most comes first. */
export function groups(tiny) {
  const size = (whole, small) => (tiny ? small : whole);
  const n = size(1 << 26, 1 << 12);
  const rows = size(16384, 16);
  const columns = size(4096, 64);
  const moved = (name, kind, times, more) => ({ name, kind, n, bytes: times * n * f32, figure: 'GB/s', ...more });
  const overRows = (name, kind, times) => ({
    name,
    kind,
    rows,
    columns,
    bytes: times * rows * columns * f32,
    figure: 'GB/s',
  });
  const product = (m, k, o, batch = 1) => ({
    name: `gemm ${batch > 1 ? `${batch} x ` : ''}${m} x ${k} x ${o}`,
    kind: 'gemm',
    m,
    k,
    n: o,
    batch,
    flops: 2 * m * k * o * batch,
    figure: 'GFLOP/s',
  });
  const convolution = (batch, c, side, o, kernel, stride) => {
    const out = Math.ceil(side / stride);
    return {
      name: `conv ${c} to ${o}, ${kernel} x ${kernel}, ${side} x ${side}${stride > 1 ? `, step ${stride}` : ''}`,
      kind: 'conv',
      batch,
      c,
      side,
      o,
      kernel,
      stride,
      flops: 2 * batch * o * out * out * c * kernel * kernel,
      figure: 'GFLOP/s',
    };
  };
  const batch = size(32, 2);
  const network = (name, spec, rowsOf, length = 1) => ({
    name,
    kind: 'network',
    spec,
    batch: rowsOf,
    length,
    figure: 'ms',
  });
  const gpt = { network: 'gpt', layers: size(4, 1), width: size(256, 32), heads: 4, vocabulary: 77, places: 256 };
  return {
    transfers: [
      { name: 'copy on the card', kind: 'copy', n, bytes: 2 * n * f32, figure: 'GB/s' },
      { name: 'upload', kind: 'upload', n, bytes: n * f32, figure: 'GB/s' },
      { name: 'download', kind: 'download', n, bytes: n * f32, figure: 'GB/s' },
      { name: 'download of 4 bytes', kind: 'download', n: 1, bytes: 4, figure: 'us' },
    ],
    elementwise: [
      moved('a + b', 'add', 3),
      moved('max(a * b + a, 0) * 0.5 - b', 'chain', 3),
      moved('exp(a)', 'exp', 2),
    ],
    reductions: [
      moved('sum of all', 'sum', 1),
      overRows('sum of rows', 'sumRows', 1),
      overRows('sum of columns', 'sumColumns', 1),
      overRows('softmax', 'softmax', 2),
      overRows('layer norm', 'layerNorm', 2),
    ],
    gemm: [
      ...(tiny ? [16, 33] : [256, 512, 1024, 2048, 4096, 8192]).map((s) => product(s, s, s)),
      ...(tiny ? [] : [product(1023, 1023, 1023), product(128, 784, 512), product(256, 256, 256, 64)]),
    ],
    steps: [
      network(
        'MLP 784-512-10, batch 128',
        { network: 'mlp', inputs: 784, hidden: size(512, 16), outputs: 10 },
        size(128, 4),
      ),
      network('MNIST CNN, batch 64', { network: 'cnn' }, size(64, 2)),
      network(
        'ResNet-18 (CIFAR), batch 64',
        { network: 'resnet18', width: size(64, 4), side: size(32, 8) },
        size(64, 2),
      ),
      network('GPT 4 x 256, batch 16 of 128', gpt, size(16, 1), size(128, 8)),
    ],
    convolutions: [
      ...(tiny
        ? [convolution(2, 3, 8, 4, 3, 1)]
        : [
            convolution(batch, 3, 224, 64, 7, 2),
            convolution(batch, 64, 56, 64, 3, 1),
            convolution(batch, 128, 28, 128, 3, 1),
            convolution(batch, 256, 14, 256, 3, 1),
            convolution(batch, 512, 7, 512, 3, 1),
            convolution(batch, 256, 56, 128, 1, 1),
          ]),
    ],
    attention: [
      {
        name: `attention, ${size(16, 2)} heads of 64, ${size(1024, 16)} places, batch ${size(8, 1)}`,
        kind: 'attention',
        batch: size(8, 1),
        heads: size(16, 2),
        places: size(1024, 16),
        width: 64,
        flops: 4 * size(8, 1) * size(16, 2) * size(1024, 16) ** 2 * 64,
        figure: 'GFLOP/s',
      },
    ],
    adam: [
      {
        name: `Adam, ${size(100, 0.001)} M parameters`,
        kind: 'adam',
        n: size(100_000_000, 1000),
        bytes: 7 * size(100_000_000, 1000) * f32,
        figure: 'GB/s',
      },
    ],
    overhead: [
      { name: 'a small addition, computed at once', kind: 'small', figure: 'us' },
      { name: 'an addition of a chain of 100, replayed', kind: 'replayed', length: 100, figure: 'us' },
    ],
    sizes: [
      {
        name: 'GPT, 24 lengths not met before',
        kind: 'sizes',
        spec: gpt,
        batch: size(4, 1),
        length: size(112, 12),
        lengths: Array.from({ length: size(24, 3) }, (_, i) => size(16, 4) + ((i * 37) % size(96, 8))),
        figure: 'ms',
      },
    ],
  };
}
