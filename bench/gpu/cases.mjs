/**
 * What is measured on a card: names, work, figures and goals. Workers (polygrad_work.mjs, torch_work.py) are given these cases as JSON. With
 * `tiny` everything is small: that says that it works, and its figures mean nothing.
 */

const f32 = 4;

/** GB/s of traffic that is needed at least, GFLOP/s, milliseconds or microseconds: from seconds a run. */
export const figures = {
  'GB/s': ({ bytes }, seconds) => bytes / seconds / 1e9,
  'GFLOP/s': ({ flops }, seconds) => flops / seconds / 1e9,
  ms: (_, seconds) => seconds * 1e3,
  us: (_, seconds) => seconds * 1e6,
};

/** How many times as fast the first is: of times the smaller one is the faster. */
export const ratio = (figure, own, peer) => (figure === 'ms' || figure === 'us' ? peer / own : own / peer);

/** Goals of cases: a share of the bandwidth of a copy, of PyTorch's speed, or the most that the figure may be. */
const ofCopy = { ofCopy: 0.9 };
const overTorch = (least) => ({ overTorch: least });
const atMost = (most) => ({ most });

/**
 * Groups in the order in which they run: what matters most comes first. Each has `cases`, perhaps `options` of the engine (CUDA's own; other
 * engines refuse those that change the numbers), and perhaps `against`: an engine that does the same work instead of PyTorch.
 */
export function groups(tiny) {
  const size = (whole, small) => (tiny ? small : whole);
  const n = size(1 << 26, 1 << 12);
  const rows = size(16384, 16);
  const columns = size(4096, 64);
  const batch = size(32, 2);
  const moved = (name, kind, times, more) => ({ name, kind, n, bytes: times * n * f32, figure: 'GB/s', ...more });
  const fused = (name, kind, times) => moved(name, kind, times, { goal: ofCopy });
  const overRows = (name, kind, times) => ({
    name,
    kind,
    rows,
    columns,
    bytes: times * rows * columns * f32,
    figure: 'GB/s',
    goal: ofCopy,
  });
  // Columns of tables too small to fill a card: a group for each uses an eighth of the sectors it loads.
  const gradientsOfBiases = size(
    [
      [128, 512],
      [2048, 1000],
    ],
    [[8, 16]],
  ).map(([m, n]) => ({ name: `sum of columns, ${m} x ${n}`, kind: 'sumColumns', rows: m, columns: n, figure: 'us' }));
  const product = (dtype, label, [m, k, o, many = 1], goal) => ({
    name: `gemm ${label}, ${many > 1 ? `${many} x ` : ''}${m} x ${k} x ${o}`,
    kind: 'gemm',
    dtype,
    tf32: label.startsWith('TF32'),
    m,
    k,
    n: o,
    batch: many,
    flops: 2 * m * k * o * many,
    figure: 'GFLOP/s',
    ...(goal === undefined ? {} : { goal: overTorch(goal) }),
  });
  const squares = (sizes) => sizes.map((s) => [s, s, s]);
  const all = squares(size([256, 512, 1024, 2048, 4096, 8192], [16, 33]));
  const some = squares(size([1024, 4096, 8192], [16]));
  const odd = size(
    [
      [1023, 1023, 1023],
      [128, 784, 512],
      [256, 256, 256, 64],
    ],
    [[4, 5, 6, 2]],
  );
  const convolution = (kind, [c, side, o, kernel, stride], of = batch, label = '') => {
    const out = Math.ceil(side / stride);
    // Backward: the derivatives by the images and by the weights.
    const times = kind === 'convBackward' ? 2 : 1;
    const where = `${c} to ${o}, ${kernel} x ${kernel}, ${side} x ${side}${stride > 1 ? `, step ${stride}` : ''}`;
    return {
      name: `${label}conv ${where}${times === 2 ? ', backward' : ''}`,
      kind,
      batch: of,
      c,
      side,
      o,
      kernel,
      stride,
      flops: times * 2 * of * o * out * out * c * kernel * kernel,
      figure: 'GFLOP/s',
    };
  };
  const resnet = size(
    [
      [3, 224, 64, 7, 2],
      [64, 56, 64, 3, 1],
      [128, 28, 128, 3, 1],
      [128, 56, 128, 3, 2],
      [256, 14, 256, 3, 1],
      [512, 7, 512, 3, 1],
      [256, 56, 128, 1, 1],
    ],
    [[3, 8, 4, 3, 2]],
  );
  const attention = (kind, dtype, causal, [of, heads, places] = size([8, 16, 1024], [1, 2, 16]), label = '') => ({
    name: `${label}attention ${dtype}${causal ? ', causal' : ''}, ${of} x ${heads} heads of 64, ${places} places${kind === 'attentionBackward' ? ', forward and backward' : ''}`,
    kind,
    dtype,
    causal,
    batch: of,
    heads,
    places,
    width: 64,
    // Two products forward, five more backward, which computes the weights anew; half of each where places see those before them only.
    flops: ((kind === 'attentionBackward' ? 7 : 2) * 2 * of * heads * places ** 2 * 64) / (causal ? 2 : 1),
    figure: 'GFLOP/s',
  });
  const network = (name, spec, rowsOf, length, more) => ({
    name,
    kind: 'network',
    spec,
    batch: rowsOf,
    length,
    figure: 'ms',
    ...more,
  });
  const gpt = { network: 'gpt', layers: size(4, 1), width: size(256, 32), heads: 4, vocabulary: 77, places: 256 };
  const mlp = { network: 'mlp', inputs: 784, hidden: size(512, 16), outputs: 10 };
  const steps = [
    ['MLP 784-512-10, batch 128', mlp, size(128, 4), 1],
    ['MNIST CNN, batch 64', { network: 'cnn' }, size(64, 2), 1],
    ['ResNet-18 (CIFAR), batch 64', { network: 'resnet18', width: size(64, 4), side: size(32, 8) }, size(64, 2), 1],
    ['GPT 4 x 256, batch 16 of 128', gpt, size(16, 1), size(128, 8)],
  ];
  // A layer and its gradients at batches that come anew, in one class of sizes: it is known after two of them.
  const batches = (label) =>
    [
      ['linear 1024 to 1024', { layer: 'linear', c: size(1024, 24), o: size(1024, 20) }],
      [
        'conv 64 to 64, 3 x 3, 28 x 28',
        { layer: 'conv', c: size(64, 4), o: size(64, 6), side: size(28, 5), kernel: 3 },
      ],
    ].map(([name, more]) => ({
      name: `${label}${name}, forward and backward, batches not met before`,
      kind: 'batches',
      ...more,
      known: size([129, 250], [33, 41]),
      lengths: Array.from({ length: size(24, 2) }, (_, i) => size(130 + ((i * 37) % 120), 50 + 14 * i)),
      figure: 'ms',
    }));
  // Groups that look at the networks of `steps` in another way: of small work at one of them.
  const measuredAgain = size(steps, steps.slice(0, 1));
  const small = size(1 << 22, 1 << 10);
  const own = { cublasLt: false, cudnn: false };
  return {
    transfers: {
      cases: [
        { name: 'copy on the card', kind: 'copy', n, bytes: 2 * n * f32, figure: 'GB/s' },
        { name: 'upload', kind: 'upload', n, bytes: n * f32, figure: 'GB/s' },
        { name: 'download', kind: 'download', n, bytes: n * f32, figure: 'GB/s' },
        { name: 'download of 4 bytes', kind: 'download', n: 1, bytes: 4, figure: 'us' },
      ],
    },
    gemm: { options: own, cases: [...all, ...odd].map((sizes) => product('float32', 'float32', sizes, 0.8)) },
    steps: { cases: steps.map((step) => network(...step, { goal: overTorch(1) })) },
    elementwise: {
      cases: [fused('a + b', 'add', 3), fused('max(a * b + a, 0) * 0.5 - b', 'chain', 3), fused('exp(a)', 'exp', 2)],
    },
    reductions: {
      cases: [
        fused('sum of all', 'sum', 1),
        overRows('sum of rows', 'sumRows', 1),
        overRows('sum of columns', 'sumColumns', 1),
        ...gradientsOfBiases,
        overRows('softmax', 'softmax', 2),
        overRows('layer norm', 'layerNorm', 2),
      ],
    },
    adam: {
      cases: [
        {
          name: `Adam, ${size(100, 0.001)} M parameters`,
          kind: 'adam',
          n: size(100_000_000, 1000),
          bytes: 7 * size(100_000_000, 1000) * f32,
          figure: 'GB/s',
          goal: ofCopy,
        },
      ],
    },
    gemm16: {
      options: own,
      cases: ['bfloat16', 'float16'].flatMap((dtype) => all.map((sizes) => product(dtype, dtype, sizes, 0.7))),
    },
    overhead: {
      cases: [
        { name: 'a small addition, computed at once', kind: 'small', figure: 'us', goal: atMost(3) },
        {
          name: 'an addition of a chain of 100, replayed',
          kind: 'replayed',
          length: 100,
          figure: 'us',
          goal: atMost(3),
        },
      ],
    },
    attention: {
      cases: ['attention', 'attentionBackward'].flatMap((kind) => [
        ...['float32', 'bfloat16', 'float16'].map((dtype) => attention(kind, dtype, false)),
        attention(kind, 'bfloat16', true),
      ]),
    },
    convolutions: {
      options: own,
      cases: resnet.flatMap((shape) => ['conv', 'convBackward'].map((kind) => convolution(kind, shape))),
    },
    convolutionsLibrary: {
      cases: resnet.flatMap((shape) =>
        ['conv', 'convBackward'].map((kind) => ({
          ...convolution(kind, shape, batch, 'with cuDNN: '),
          goal: overTorch(0.97),
        })),
      ),
    },
    gemmTf32: {
      options: { ...own, float32MatmulPrecision: 'high' },
      cases: all.map((sizes) => product('float32', 'TF32', sizes)),
    },
    gemmLibrary: {
      cases: ['float32', 'bfloat16'].flatMap((dtype) =>
        some.map((sizes) => product(dtype, `${dtype} with cuBLASLt`, sizes, 0.97)),
      ),
    },
    sizes: {
      cases: [
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
    },
    batches: { options: own, cases: batches('') },
    batchesLibrary: { cases: batches('with libraries: ') },
    // The processor does as much as it can in the time: small shapes.
    cpu: {
      against: 'cpu',
      cases: [
        moved('small: a + b', 'add', 3, { n: small, bytes: 3 * small * f32 }),
        moved('small: sum of all', 'sum', 1, { n: small, bytes: small * f32 }),
        { ...product('float32', 'float32', squares(size([1024], [16]))[0]), name: 'small: gemm float32' },
        convolution('conv', size([64, 28, 64, 3, 1], [3, 8, 4, 3, 1]), size(8, 1), 'small: '),
        attention('attention', 'float32', false, size([1, 8, 256], [1, 1, 16]), 'small: '),
        ...measuredAgain
          .filter(([, { network: kind }]) => kind !== 'resnet18')
          .map(([name, ...step]) => network(`small: step of ${name}`, ...step)),
      ],
    },
    // Where the time of a step goes: its kernels, by the card's own clock. Nothing to compare.
    profiles: {
      against: null,
      cases: measuredAgain.map(([name, ...step]) => network(`kernels of ${name}`, ...step, { kind: 'profile' })),
    },
  };
}
