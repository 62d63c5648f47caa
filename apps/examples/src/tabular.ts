/**
 * Regression on a table: prices of houses from a CSV text with numbers, a column of words, and gaps. Columns are standardised by what the training rows say;
 * words become one column each.
 */
import { mseLoss, noGrad, scope, seed, tensor, type Tensor } from '@polygrad/core';
import { AdamW, Dropout, Linear, ReLU, Sequential } from '@polygrad/nn';
import { type Result, step, take, train } from './train.ts';

/** Rows of text by column. Fields have no quotes. */
function parse(csv: string): Record<string, string>[] {
  const [head, ...lines] = csv
    .trim()
    .split('\n')
    .map((line) => line.split(','));
  return lines.map((fields) => Object.fromEntries(head!.map((name, i) => [name, fields[i] ?? ''])));
}

/** A table as one would find it: made up, with a price that follows from the rest, and noise. */
export function houses(rows: number): string {
  let state = 9;
  const random = (): number => {
    state = (Math.imul(state, 48271) >>> 0) % 0x7fffffff;
    return state / 0x7fffffff;
  };
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
  const rows = parse(houses(1200));
  const seen = rows.slice(0, 1000);
  const numbers = ['area', 'rooms', 'year'];
  const facts = numbers.map((name) => {
    const known = seen
      .map((row) => row[name]!)
      .filter((text) => text !== '')
      .map(Number);
    const mean = known.reduce((a, b) => a + b, 0) / known.length;
    return { name, mean, spread: Math.sqrt(known.reduce((a, b) => a + (b - mean) ** 2, 0) / known.length) };
  });
  const words = [...new Set(seen.map((row) => row['place']!))].sort();
  // A gap is the mean, and says so in a column of its own.
  const features = (row: Record<string, string>): number[] => [
    ...facts.map(({ name, mean, spread }) => (row[name] === '' ? 0 : (Number(row[name]) - mean) / spread)),
    Number(row['rooms'] === ''),
    ...words.map((word) => Number(row['place'] === word)),
  ];
  const table = (list: readonly Record<string, string>[]): { x: Tensor; y: Tensor } => ({
    x: tensor(list.map(features)),
    y: tensor(list.map((row) => [Number(row['price']) / 100])),
  });
  const model = new Sequential(
    new Linear(facts.length + 1 + words.length, 64),
    new ReLU(),
    new Dropout(0.05),
    new Linear(64, 64),
    new ReLU(),
    new Linear(64, 1),
  );
  const optimizer = new AdamW(model.parameters(), { lr: 3e-3 });
  const losses = await train(steps, (i) =>
    step(model, optimizer, () => {
      const { x, y } = table(Array.from({ length: 100 }, (_, k) => seen[(i * 100 + k * 7) % seen.length]!));
      return mseLoss(model.forward(x), y);
    }),
  );
  model.eval();
  const error = scope(() =>
    noGrad(() => {
      const { x, y } = table(rows.slice(1000));
      const rest = model.forward(x).sub(y).square().sum();
      return rest.div(y.sub(y.mean()).square().sum()).neg().add(1);
    }),
  );
  return { losses, note: `R2 on 200 rows it has not seen: ${(await take(error)).toFixed(3)}` };
}
