/** The names that docs/from-pytorch.md gives are there: exports, methods, or options. */
import '@polygrad/backend-cpu';
import * as core from '@polygrad/core';

import * as data from '@polygrad/data';
import * as node from '@polygrad/data/node';
import * as nn from '@polygrad/nn';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const text = readFileSync(new URL('../docs/from-pytorch.md', import.meta.url), 'utf8');
const rows = text
  .slice(text.indexOf('<!-- names -->'), text.indexOf('<!-- /names -->'))
  .split('\n')
  .filter((line) => line.startsWith('| `') || line.startsWith('| p'));

it('names of the table', () => {
  expect(rows.length).toBeGreaterThan(20);
  const methods = [nn.Module, nn.MultiHeadAttention, data.Dataset].flatMap(({ prototype }) =>
    Object.getOwnPropertyNames(prototype),
  );
  const places = { ...core, ...data, ...node, ...nn };
  for (const row of rows) {
    // Options are those of what stands before them, and come behind that word.
    const [names] = row.split(' | ')[1].split(/options? |;/);
    for (const [, name] of names.matchAll(/`(\w+)`/g))
      expect(Object.hasOwn(places, name) || methods.includes(name), name).toBe(true);
  }
});

it('options of the table', async () => {
  await core.setEngine('cpu');
  const parameters = new nn.Linear(2, 2).parameters();
  new nn.MultiHeadAttention(4, 2, { keyWidth: 3, valueWidth: 5 });
  new nn.LSTM(2, 4, { layers: 2, projection: 3 });
  new nn.TransformerEncoder(() => new nn.TransformerEncoderLayer(4, 2, { hidden: 8 }), 2);
  new nn.Embedding(3, 2, { paddingIndex: 0 });
  new nn.Adagrad(parameters, { rateDecay: 0.1, initialAccumulator: 0.1 });
  const optimizer = new nn.LBFGS(parameters, { iterations: 4, history: 3, lineSearch: 'strongWolfe' });
  expect(optimizer.options).toMatchObject({ iterations: 4, history: 3, lineSearch: 'strongWolfe' });
  expect(() => new nn.ReduceOnPlateau(new nn.Adam(parameters), { floor: 1e-4 })).not.toThrow();
  expect(() => new nn.ReduceOnPlateau(new nn.Adam(parameters), { minLr: 1e-4 })).toThrow(/no option 'minLr'/);
});
