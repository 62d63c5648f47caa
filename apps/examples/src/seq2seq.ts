/**
 * A transformer that turns one sequence into another (Vaswani et al., 2017): sums such as `17+285` become their results, digit by digit. Batches are of like
 * lengths and padded, masks hide the padding, and answers are written with keys and values that are kept.
 */
import {
  arange,
  argMax,
  crossEntropy,
  noGrad,
  notEqual,
  scope,
  seed,
  select,
  tensor,
  type Tensor,
} from '@polygrad/core';
import { Dataset, RandomStream } from '@polygrad/data';
import { AdamW, cosineDecay, Embedding, KVCache, Linear, Module, Transformer } from '@polygrad/nn';
import { type Result, step, take } from './train.ts';

const signs = '.<>0123456789+'; // padding, begin, end, and what sums are made of
const [padding, begin, end] = [0, 1, 2];
const [width, longest] = [64, 8];
const codes = (text: string): Int32Array => Int32Array.from(text, (sign) => signs.indexOf(sign));

function sums(count: number, stream: number): { source: Int32Array; target: Int32Array; result: string }[] {
  const random = new RandomStream(12, stream);
  const number = (): number => random.below(10 ** (1 + random.below(2)));
  return Array.from({ length: count }, () => {
    const [a, b] = [number(), number()];
    return { source: codes(`${a}+${b}`), target: codes(`<${a + b}>`), result: `${a + b}` };
  });
}

class Adder extends Module<[source: Tensor, target: Tensor]> {
  readonly signs: Embedding = new Embedding(signs.length, width, { paddingIdx: padding });
  readonly places: Embedding = new Embedding(longest, width);
  readonly transformer: Transformer = new Transformer({
    ...{ dModel: width, nhead: 4, numEncoderLayers: 2, numDecoderLayers: 2, dimFeedforward: 128 },
    ...{ dropout: 0, normFirst: true, causal: true },
  });
  readonly head: Linear = new Linear(width, signs.length);

  #embedded(ids: Tensor, first: number): Tensor {
    const places = arange(ids.shape[1]!, { dtype: 'int32' }).add(first);
    return this.signs.forward(ids).add(this.places.forward(places));
  }

  /** What the decoder looks at, and which of it is no padding: [N, 1, 1, S]. */
  encode(source: Tensor): { memory: Tensor; mask: Tensor } {
    const mask = notEqual(source, padding).unsqueeze(1).unsqueeze(1);
    return { memory: this.transformer.encoder.forward(this.#embedded(source, 0), { mask }), mask };
  }

  /** Logits [N, L, signs] of what follows each sign of the targets. */
  decode(target: Tensor, memory: Tensor, mask: Tensor, cache: KVCache | null = null): Tensor {
    const x = this.#embedded(target, cache?.length ?? 0);
    return this.head.forward(this.transformer.decoder.forward(x, memory, { memoryMask: mask, cache }));
  }

  forward(source: Tensor, target: Tensor): Tensor {
    const { memory, mask } = this.encode(source);
    return this.decode(target, memory, mask);
  }
}

/** The most likely answers to some sums, sign by sign: each call computes the new ones only. */
async function answers(model: Adder, source: Tensor): Promise<string[]> {
  const { memory, mask } = noGrad(() => scope(() => model.encode(source)));
  using cache = new KVCache({ capacity: longest });
  const texts = Array.from({ length: source.shape[0]! }, () => '');
  let last: number[] = texts.map(() => begin);
  for (let at = 0; at < longest - 1 && last.some((id) => id !== end); at++) {
    const before = last;
    const next = noGrad(() =>
      scope(() => {
        const ids = tensor(
          before.map((id) => [id]),
          { dtype: 'int32' },
        );
        return argMax(select(model.decode(ids, memory, mask, cache), 1, -1), 1);
      }),
    );
    const found = Array.from(await next.data(), Number);
    next.dispose();
    // What has ended stays so.
    last = found.map((id, row) => (before[row] === end ? end : id));
    for (const [row, id] of last.entries()) if (id !== end) texts[row] += signs[id]!;
  }
  memory.dispose();
  mask.dispose();
  return texts;
}

export async function seq2seq(steps = 1200): Promise<Result> {
  seed(11);
  using model = new Adder();
  using optimizer = new AdamW(model.parameters(), { lr: cosineDecay(2e-3, { steps }) });
  const batches = Dataset.from(sums(20_000, 0))
    .map(({ source, target }) => ({ source, target }))
    .shuffle({ seed: 1 })
    .bucket({
      length: ({ source }) => source.length,
      boundaries: [4, 5],
      batchSize: 64,
      pad: { source: padding, target: padding },
    })
    .repeat()
    .take(steps);
  const losses: number[] = [];
  let i = 0;
  for await (const { source, target } of batches) {
    const loss = step(model, optimizer, () => {
      const [x, y] = [tensor(source), tensor(target)];
      const length = y.shape[1]! - 1;
      const logits = model.forward(x, y.narrow(1, 0, length));
      return crossEntropy(logits.reshape([-1, signs.length]), y.narrow(1, 1, length).flatten(), {
        ignoreIndex: padding,
      });
    });
    if (i++ % Math.ceil(steps / 20) === 0 || i === steps) losses.push(await take(loss));
    else loss.dispose();
  }
  model.eval();
  const tests = sums(200, 1);
  const [batch] = await Dataset.from(tests)
    .map(({ source }) => ({ source }))
    .batch(tests.length, { pad: { source: padding } })
    .toArray();
  using source = tensor(batch!.source);
  const found = await answers(model, source);
  const right = tests.filter(({ result }, row) => result === found[row]).length;
  return { losses, note: `right about new sums: ${((100 * right) / tests.length).toFixed(1)} %` };
}
