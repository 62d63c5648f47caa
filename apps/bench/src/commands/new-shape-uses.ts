/** Uses that meet new sizes: what `new-shapes.ts` measures. Each makes its networks once; `run(size)` is one use at that size, read at the end. */
import type * as Core from '@polygrad/core';
import type * as Nn from '@polygrad/nn';

/** The packages of one checkout. */
export interface Packages {
  readonly core: typeof Core;
  readonly nn: typeof Nn;
}

export interface Use {
  /** Sizes met before anything is measured, in their order. */
  readonly warm: readonly number[];
  /** Sizes measured, in their order. */
  readonly sizes: readonly number[];
  readonly make: (packages: Packages) => (size: number) => Promise<void>;
}

function upTo(last: number, first = 1): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

/** Sizes in a shuffled order: `count` even ones to warm up with, `measured` odd ones between them. */
function batches(count: number, measured: number): Pick<Use, 'warm' | 'sizes'> {
  const mixed = upTo(count).map((i) => 2 + 2 * ((i * 17) % count));
  return { warm: mixed, sizes: mixed.slice(0, measured).map((size) => size + 1) };
}

/** Numbers of no meaning, the same at every call. */
function filling(size: number): Float32Array<ArrayBuffer> {
  return Float32Array.from({ length: size }, (_, i) => (((i * 7919) % 251) - 125) / 125);
}

/** Training steps of a model; `shapeOf` gives the shape of its input at a size. */
function trainer(
  { core, nn }: Packages,
  model: Nn.Module<[x: Core.Tensor], Core.Tensor>,
  shapeOf: (size: number) => readonly [batch: number, ...sample: number[]],
): (size: number) => Promise<void> {
  const optimizer = new nn.Adam(model.parameters(), { lr: 1e-3 });
  return async (size) => {
    const shape = shapeOf(size);
    const [batch] = shape;
    const x = core.tensor(filling(shape.reduce((a, b) => a * b, 1)), { shape });
    const y = core.tensor(Int32Array.from({ length: batch }, (_, i) => i % 10));
    const loss = core.scope(() => {
      const { value, grads } = nn.lossAndGrad(model, () => nn.crossEntropy(model.forward(x), y));
      optimizer.step(grads);
      return value;
    });
    await loss.data();
    for (const t of [x, y, loss]) t.dispose();
  };
}

/** A layer of LSTM over sequences, then a linear one on its last state. */
function lstm(packages: Packages): (size: number) => Promise<void> {
  const { core, nn } = packages;
  class Classifier extends nn.Module<[x: Core.Tensor], Core.Tensor> {
    readonly lstm = new nn.LSTM(32, 64);
    readonly head = new nn.Linear(64, 10);
    forward(x: Core.Tensor): Core.Tensor {
      return this.head.forward(core.select(this.lstm.forward(x).output, 1, -1));
    }
  }
  return trainer(packages, new Classifier(), (length) => [8, length, 32]);
}

/** ResNet-18 for small images, narrow: planned as the published one, and quicker to compute. */
function resnet18(packages: Packages): (size: number) => Promise<void> {
  const { core, nn } = packages;
  const conv = (
    inputs: number,
    outputs: number,
    extent: number,
    stride = 1,
  ): readonly Nn.Module<[x: Core.Tensor], Core.Tensor>[] => [
    new nn.Conv2d(inputs, outputs, extent, { padding: extent >> 1, stride, bias: false }),
    new nn.BatchNorm2d(outputs),
  ];
  class Residual extends nn.Module<[x: Core.Tensor], Core.Tensor> {
    readonly body: Nn.Sequential;
    readonly beside: Nn.Sequential;
    constructor(inputs: number, outputs: number, stride: number) {
      super();
      this.body = new nn.Sequential(...conv(inputs, outputs, 3, stride), new nn.ReLU(), ...conv(outputs, outputs, 3));
      this.beside = inputs === outputs ? new nn.Sequential() : new nn.Sequential(...conv(inputs, outputs, 1, stride));
    }
    forward(x: Core.Tensor): Core.Tensor {
      return core.relu(this.body.forward(x).add(this.beside.forward(x)));
    }
  }
  const stages = [8, 16, 32, 64].flatMap((outputs, stage) => {
    const inputs = stage === 0 ? outputs : outputs / 2;
    return [new Residual(inputs, outputs, stage === 0 ? 1 : 2), new Residual(outputs, outputs, 1)];
  });
  const ends = [new nn.GlobalAvgPool2d(), new nn.Flatten(), new nn.Linear(64, 10)];
  const model = new nn.Sequential(...conv(3, 8, 3), new nn.ReLU(), ...stages, ...ends);
  return trainer(packages, model, (batch) => [batch, 3, 32, 32]);
}

const [width, heads, vocabulary, layers] = [32, 4, 64, 2];

/** A causal language model of two blocks, whole sequences at once. */
function gpt({ core, nn }: Packages): (size: number) => Promise<void> {
  const tokens = new nn.Embedding(vocabulary, width);
  const places = new nn.Embedding(512, width);
  const blocks = Array.from({ length: layers }, () => new nn.TransformerBlock(width, heads, { causal: true }));
  const last = new nn.LayerNorm(width);
  const head = new nn.Linear(width, vocabulary);
  return async (length) => {
    const ids = core.tensor(
      Int32Array.from({ length }, (_, i) => (i * 7) % vocabulary),
      { shape: [1, length] },
    );
    const at = core.tensor(
      Int32Array.from({ length }, (_, i) => i),
      { shape: [1, length] },
    );
    const logits = core.scope(() => {
      let x = tokens.forward(ids).add(places.forward(at));
      for (const block of blocks) x = block.forward(x);
      return head.forward(last.forward(x));
    });
    await logits.data();
    for (const t of [ids, at, logits]) t.dispose();
  };
}

interface Kept {
  readonly keys: Core.Tensor;
  readonly values: Core.Tensor;
}

/** One token more at each call, with the keys and values of those before kept; starts again where the size is not one more than the last. */
function generation({ core, nn }: Packages): (size: number) => Promise<void> {
  const tokens = new nn.Embedding(vocabulary, width);
  const blocks = Array.from({ length: layers }, () => ({
    before: new nn.LayerNorm(width),
    query: new nn.Linear(width, width),
    key: new nn.Linear(width, width),
    value: new nn.Linear(width, width),
    out: new nn.Linear(width, width),
    after: new nn.LayerNorm(width),
    up: new nn.Linear(width, 4 * width),
    down: new nn.Linear(4 * width, width),
  }));
  const head = new nn.Linear(width, vocabulary);
  const apart = (x: Core.Tensor): Core.Tensor =>
    core.permute(core.reshape(x, [1, 1, heads, width / heads]), [0, 2, 1, 3]);
  let kept: readonly Kept[] = [];
  let token = 1;
  return async (length) => {
    const known = kept[0]?.keys.shape[2] ?? 0;
    if (known !== length - 1) {
      for (const { keys, values } of kept) for (const t of [keys, values]) t.dispose();
      const shape = [1, heads, length - 1, width / heads];
      const made = (): Core.Tensor => core.tensor(filling(heads * (length - 1) * (width / heads)), { shape });
      kept = length === 1 ? [] : blocks.map(() => ({ keys: made(), values: made() }));
    }
    const ids = core.tensor(Int32Array.of(token), { shape: [1, 1] });
    const results = core.scope(() => {
      let x = tokens.forward(ids);
      const grown: Core.Tensor[] = [];
      blocks.forEach((block, i) => {
        const seen = block.before.forward(x);
        const before = kept[i];
        const [newKeys, newValues] = [apart(block.key.forward(seen)), apart(block.value.forward(seen))];
        const keys = before === undefined ? newKeys : core.concat([before.keys, newKeys], { axis: 2 });
        const values = before === undefined ? newValues : core.concat([before.values, newValues], { axis: 2 });
        grown.push(keys, values);
        const mixed = core.scaledDotProductAttention(apart(block.query.forward(seen)), keys, values);
        x = x.add(block.out.forward(core.reshape(core.permute(mixed, [0, 2, 1, 3]), [1, 1, width])));
        x = x.add(block.down.forward(core.gelu(block.up.forward(block.after.forward(x)))));
      });
      return [core.argMax(core.reshape(head.forward(x), [vocabulary])), ...grown] as const;
    });
    const [next, ...grown] = results;
    token = Number(await next.item());
    for (const { keys, values } of kept) for (const t of [keys, values]) t.dispose();
    kept = blocks.map((_, i) => ({ keys: grown[2 * i] as Core.Tensor, values: grown[2 * i + 1] as Core.Tensor }));
    ids.dispose();
    next.dispose();
  };
}

export const uses: Readonly<Record<string, Use>> = {
  /** A training step of 784-128-10 with Adam, another batch at each. */
  mlp: {
    ...batches(61, 30),
    make: (packages) => {
      const { Sequential, Linear, ReLU } = packages.nn;
      return trainer(packages, new Sequential(new Linear(784, 128), new ReLU(), new Linear(128, 10)), (batch) => [
        batch,
        784,
      ]);
    },
  },
  /** A training step of conv8-pool-conv16-pool-linear on 28x28 with Adam, another batch at each. */
  cnn: {
    ...batches(37, 20),
    make: (packages) => {
      const { Sequential, Conv2d, ReLU, MaxPool2d, Flatten, Linear } = packages.nn;
      const first = [new Conv2d(1, 8, 3, { padding: 'same' }), new ReLU(), new MaxPool2d(2)];
      const second = [new Conv2d(8, 16, 3, { padding: 'same' }), new ReLU(), new MaxPool2d(2)];
      return trainer(packages, new Sequential(...first, ...second, new Flatten(), new Linear(784, 10)), (batch) => [
        batch,
        1,
        28,
        28,
      ]);
    },
  },
  /** Two transformer blocks with embedding and head, forward, another length at each. */
  gpt: { ...batches(53, 30), make: gpt },
  /** A training step of an LSTM and a linear layer with Adam, another length at each. */
  lstm: { ...batches(18, 8), make: lstm },
  /** A training step of ResNet-18 with Adam, another batch at each. */
  resnet18: { ...batches(3, 2), make: resnet18 },
  /** The language model with kept keys and values, token by token. Keys grow by one at each: n and n + 1 stand in one flush. */
  generate: { warm: upTo(64), sizes: upTo(128, 65), make: generation },
};
