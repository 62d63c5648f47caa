/**
 * Regression on a table: prices of houses from a CSV text with numbers, a column of words, and gaps. What the training rows say standardises the
 * numbers and fills the gaps; words become one column each.
 */
import { mseLoss, noGrad, scope, seed, tensor, type Tensor } from '@polygrad/core';
import { type DataFrame, fitFeatures, parseCsv, RandomStream } from '@polygrad/data';
import { AdamW, Dropout, Linear, ReLU, Sequential } from '@polygrad/nn';
import { type Result, step, take, train } from './train.ts';

/** A table as one would find it: made up, with a price that follows from the rest, and noise. */
export function houses(rows: number): string {
  const stream = new RandomStream(9);
  const random = (): number => stream.next() / 2 ** 32;
  const places = { centre: 2.2, suburb: 1.3, village: 0.8 };
  const lines = Array.from({ length: rows }, () => {
    const [area, rooms, year] = [40 + 160 * random(), 1 + Math.floor(6 * random()), 1900 + Math.floor(120 * random())];
    const place = Object.keys(places)[Math.floor(3 * random())] as keyof typeof places;
    const price = area * places[place] * (1 + 0.3 * Math.sin(year / 20)) + 9 * rooms + 8 * (random() - 0.5);
    return [area.toFixed(1), random() < 0.05 ? '' : rooms, year, place, price.toFixed(1)].join();
  });
  return `area,rooms,year,place,price\n${lines.join('\n')}\n`;
}

export async function tabular(steps = 600): Promise<Result> {
  seed(9);
  const frame = parseCsv(houses(1200));
  const rows = Array.from({ length: frame.rows }, (_, row) => row);
  const seen = frame.take(rows.slice(0, 1000));
  const features = fitFeatures(seen, { target: 'price', missing: 'mean' });
  const table = (part: DataFrame): { x: Tensor; y: Tensor } => {
    const [x, y] = [features.inputs(part), features.targets(part)];
    return {
      x: tensor(x.data).reshape(x.shape),
      y: tensor(y.data as Float32Array)
        .reshape(y.shape)
        .div(100),
    };
  };
  using model = new Sequential(
    new Linear(features.width, 64),
    new ReLU(),
    new Dropout(0.05),
    new Linear(64, 64),
    new ReLU(),
    new Linear(64, 1),
  );
  using optimizer = new AdamW(model.parameters(), { lr: 3e-3 });
  const losses = await train(steps, (i) =>
    step(model, optimizer, () => {
      const { x, y } = table(seen.take(Array.from({ length: 100 }, (_, k) => (i * 100 + k * 7) % seen.rows)));
      return mseLoss(model.forward(x), y);
    }),
  );
  model.eval();
  const error = scope(() =>
    noGrad(() => {
      const { x, y } = table(frame.take(rows.slice(1000)));
      const rest = model.forward(x).sub(y).square().sum();
      return rest.div(y.sub(y.mean()).square().sum()).neg().add(1);
    }),
  );
  return { losses, note: `R2 on 200 rows it has not seen: ${(await take(error)).toFixed(3)}` };
}
