/**
 * What is measured in a page. Software adapters do about 1 to 5 GFLOP/s: with `quick` the work is small enough for several rounds on
 * them within a minute or two.
 */

const gemm = (n) => ({ id: `gemm ${n}`, work: { kind: 'gemm', m: n, n, k: n } });
const square = (kind, side) => ({ id: `${kind} ${side}x${side}`, work: { kind, n: side * side } });
const conv = (batch, channels, side, filters) => ({
  id: `conv ${batch}x${channels}x${side}x${side} ${filters} filters`,
  work: { kind: 'conv', batch, channels, side, filters },
});

const training = [
  { id: 'mlp step', work: { kind: 'mlp', batch: 128, optimizer: 'adam' } },
  { id: 'cnn step', work: { kind: 'cnn', batch: 64, optimizer: 'adam' } },
];

/** Cases of an engine; the largest last, so that a run that ends early has all others. */
export function casesOf(engine, quick) {
  if (quick) {
    const sizes = engine === 'webgpu' ? [256, 257] : [256, 257, 1024];
    return [...sizes.map(gemm), conv(4, 16, 28, 32), square('softmax', 512), square('layer-norm', 512), ...training];
  }
  const sizes = [256, 257, 511, 512, 768, 1000, 1023, 1024, 1536, 2047, 2048];
  return [
    ...training,
    conv(16, 16, 28, 32),
    conv(8, 64, 32, 64),
    square('softmax', 1024),
    square('softmax', 2048),
    square('layer-norm', 1024),
    square('layer-norm', 2048),
    ...sizes.map(gemm),
  ];
}
