/**
 * Neural style (Gatys, Ecker and Bethge, 2016): a picture gets the texture of another one and keeps its forms. The features are those of a small network that
 * learns to tell textures apart first, as nothing is downloaded; then only the pixels are trained. The style is in the products of features with each other,
 * over all places; the forms are in the features themselves.
 */
import { avgPool2d, crossEntropy, mean, mseLoss, noGrad, relu, scope, seed, tensor, type Tensor } from '@polygrad/core';
import { RandomStream } from '@polygrad/data';
import { Adam, Conv2d, GlobalAvgPool2d, Linear, Module, parameter } from '@polygrad/nn';
import { type Result, step, take, train } from './train.ts';

const [side, batch] = [48, 16];
const random = new RandomStream(8);
const between = (low: number, high: number): number => low + ((high - low) * random.below(10001)) / 1e4;

/** Textures from -1 to 1, by pixel, at any place and of any width. */
const textures: readonly ((x: number, y: number, wide: number) => number)[] = [
  (_, y, wide) => Math.sign(Math.sin(y / wide)),
  (x, _, wide) => Math.sign(Math.sin(x / wide)),
  (x, y, wide) => Math.sign(Math.sin((x + y) / wide)),
  (x, y, wide) => Math.sign(Math.sin(x / wide) * Math.sin(y / wide)),
  (x, y, wide) => 2 * Number(Math.cos(x / wide) + Math.cos(y / wide) > 1) - 1,
  () => between(-1, 1),
];

function picture(of: (x: number, y: number) => number): number[][][] {
  return [Array.from({ length: side }, (_, y) => Array.from({ length: side }, (_, x) => of(x, y)))];
}

function texture(kind: number): number[][][] {
  const [dx, dy, wide, light] = [between(0, side), between(0, side), between(0.8, 1.6), between(0.5, 1)];
  return picture((x, y) => light * textures[kind]!(x + dx, y + dy, wide) + between(-0.1, 0.1));
}

/** What textures are told apart by: three convolutions, and the maps of each. */
class Features extends Module<[x: Tensor]> {
  readonly convs: readonly Conv2d[] = [1, 12, 24].map((n, i) => new Conv2d(n, [12, 24, 24][i]!, 5, { padding: 2 }));
  readonly pool: GlobalAvgPool2d = new GlobalAvgPool2d();
  readonly head: Linear = new Linear(24, textures.length);

  maps(x: Tensor): Tensor[] {
    const found: Tensor[] = [];
    for (const conv of this.convs) found.push(relu(conv.forward(found.length > 0 ? avgPool2d(found.at(-1)!, 2) : x)));
    return found;
  }

  forward(x: Tensor): Tensor {
    return this.head.forward(this.pool.forward(this.maps(x).at(-1)!));
  }
}

/** Products of features with each other, over all places: what is there together, wherever it is. */
function gram(map: Tensor): Tensor {
  const rows = map.reshape([map.shape[1]!, -1]);
  return rows.matmul(rows.transpose()).div(rows.shape[1]!);
}

/** A picture whose pixels are trained. */
class Canvas extends Module<[]> {
  readonly pixels: Tensor;

  constructor(of: Tensor) {
    super();
    this.pixels = parameter(of.add(0));
  }

  forward(): Tensor {
    return this.pixels;
  }
}

export async function neuralStyle(steps = 200): Promise<Result> {
  seed(8);
  using features = new Features();
  using teacher = new Adam(features.parameters(), { lr: 3e-3 });
  await train(steps, () =>
    step(features, teacher, () => {
      const kinds = Array.from({ length: batch }, () => random.below(textures.length));
      return crossEntropy(features.forward(tensor(kinds.map(texture))), tensor(kinds, { dtype: 'int32' }));
    }),
  );
  features.freeze();

  // A ring on a dark ground gets diagonal stripes.
  const kind = 2;
  const ring = picture((x, y) => (Math.abs(Math.hypot(x - side / 2, y - side / 2) - side / 4) < 5 ? 0.8 : -0.6));
  using content = tensor([ring]);
  using style = tensor([texture(kind)]);
  const wanted = scope(() => noGrad(() => features.maps(style).map(gram)));
  const form = scope(() => noGrad(() => features.maps(content).at(-1)!));
  const distance = (maps: readonly Tensor[]): Tensor =>
    maps.map((map, i) => mseLoss(gram(map), wanted[i]!).div(wanted[i]!.square().mean())).reduce((a, b) => a.add(b));

  using canvas = new Canvas(content);
  using painter = new Adam(canvas.parameters(), { lr: 0.03 });
  const losses = await train(steps, () =>
    step(canvas, painter, () => {
      const maps = features.maps(canvas.forward());
      return distance(maps).add(mseLoss(maps.at(-1)!, form).div(mean(form.square())).mul(0.05));
    }),
  );
  const far = async (x: Tensor): Promise<string> =>
    (await take(scope(() => noGrad(() => distance(features.maps(x)))))).toPrecision(2);
  const [before, after] = [await far(content), await far(canvas.pixels)];
  const alike = await take(
    scope(() =>
      noGrad(() => {
        const [a, b] = [content, canvas.pixels].map((t) => avgPool2d(t, 8).sub(t.mean())) as [Tensor, Tensor];
        return a.mul(b).sum().div(a.square().sum().mul(b.square().sum()).sqrt());
      }),
    ),
  );
  const taken = await take(scope(() => noGrad(() => features.forward(canvas.pixels).argMax(1))));
  for (const t of [...wanted, form]) t.dispose();
  return {
    losses,
    note: `distance from the style: ${before} before, ${after} after; forms alike: ${alike.toFixed(2)}; taken for texture ${taken} (style: ${kind})`,
  };
}
