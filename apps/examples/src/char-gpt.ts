/** A language model of characters: two transformer blocks learn a rhyme by heart, and write it. */
import {
  arange,
  argMax,
  crossEntropy,
  noGrad,
  reshape,
  scope,
  seed,
  select,
  tensor,
  type Tensor,
} from '@polygrad/core';
import { AdamW, Embedding, LayerNorm, Linear, Module, ModuleList, TransformerBlock } from '@polygrad/nn';
import { type Result, step, train } from './train.ts';

const text = `Twinkle, twinkle, little star, how I wonder what you are.
Up above the world so high, like a diamond in the sky.
When the blazing sun is gone, when he nothing shines upon,
then you show your little light, twinkle, twinkle, all the night.
`;
const characters = [...new Set(text)].sort();
const encode = (s: string): number[] => [...s].map((c) => characters.indexOf(c));
const [context, batch, width] = [32, 16, 64];

class CharGpt extends Module {
  readonly tokens: Embedding = new Embedding(characters.length, width);
  readonly places: Embedding = new Embedding(context, width);
  readonly blocks: ModuleList<TransformerBlock> = new ModuleList(
    [1, 2].map(() => new TransformerBlock(width, 4, { causal: true })),
  );
  readonly norm: LayerNorm = new LayerNorm(width);
  readonly head: Linear = new Linear(width, characters.length);

  /** Logits [batch, length, characters] of what follows each of the characters. */
  forward(ids: Tensor): Tensor {
    const places = arange(ids.shape[1]!, { dtype: 'int32' });
    let x = this.tokens.forward(ids).add(this.places.forward(places));
    for (const block of this.blocks) x = block.forward(x);
    return this.head.forward(this.norm.forward(x));
  }
}

/** Parts of the text, and the same one character later. */
function batchOf(i: number): { ids: Tensor; next: Tensor } {
  const codes = encode(text + text);
  const rows = Array.from({ length: batch }, (_, row) => ((i * batch + row) * 37) % text.length);
  const part = (shift: number): Tensor =>
    tensor(
      rows.map((at) => codes.slice(at + shift, at + shift + context)),
      { dtype: 'int32' },
    );
  return { ids: part(0), next: part(1) };
}

export async function charGpt(steps = 200): Promise<Result> {
  seed(1);
  using model = new CharGpt();
  using optimizer = new AdamW(model.parameters(), { lr: 3e-3 });
  const losses = await train(steps, (i) =>
    step(model, optimizer, () => {
      const { ids, next } = batchOf(i);
      return crossEntropy(reshape(model.forward(ids), [-1, characters.length]), reshape(next, [-1]));
    }),
  );
  let written = 'Twinkle, ';
  for (let i = 0; i < 60; i++) {
    const best = scope(() =>
      noGrad(() => {
        const ids = tensor([encode(written.slice(-context))], { dtype: 'int32' });
        return argMax(select(model.forward(ids), 1, -1), 1);
      }),
    );
    written += characters[Number(await best.item())]!;
    best.dispose();
  }
  return { losses, note: `writes: ${JSON.stringify(written)}` };
}
