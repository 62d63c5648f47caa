/** The names that docs/from-pytorch.md gives are there: exports, methods, or options. Options of layers and optimizers are PyTorch's own. */
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

const camelCase = (name) => name.replaceAll(/_(\w)/g, (_, letter) => letter.toUpperCase());

/** Parameters of PyTorch that are no options here: of its own workings, or because docs/from-pytorch.md says what is done instead. */
const others = {
  // Where and how it computes; batches stand first always; no operation works in place.
  '*': 'device inplace batch_first foreach capturable differentiable fused sparse',
  ...Object.fromEntries([1, 2, 3].map((n) => [`AdaptiveMaxPool${n}d`, 'return_indices'])),
  AvgPool2d: 'divisor_override',
  AvgPool3d: 'divisor_override',
  // PyTorch takes 'zeros' alone.
  ...Object.fromEntries([1, 2, 3].map((n) => [`ConvTranspose${n}d`, 'padding_mode'])),
  EmbeddingBag: 'include_last_offset _weight',
  Embedding: '_weight',
  Flatten: 'start_dim end_dim',
  MaxPool1d: 'return_indices',
  MaxPool2d: 'return_indices',
  MaxPool3d: 'return_indices',
  Softplus: 'threshold',
  Transformer: 'custom_encoder custom_decoder',
  Upsample: 'recompute_scale_factor',
};

it('options of layers and optimizers are named as in PyTorch', async () => {
  await core.setEngine('cpu');
  const signatures = JSON.parse(readFileSync(new URL('./fixtures/torch-signatures.json', import.meta.url), 'utf8'));
  const ours = new Map(Object.entries(nn).map(([name, value]) => [name.toLowerCase(), value]));
  const checked = [];
  const lacking = [];
  for (const [name, [needed, optional]] of Object.entries(signatures)) {
    const kind = ours.get(name.toLowerCase());
    if (typeof kind !== 'function') continue;
    const args = needed[0] === 'params' ? [new nn.Linear(4, 4).parameters()] : needed.map(() => 4);
    let text = '';
    try {
      new kind(...args, { noSuchOption: 1 });
    } catch (error) {
      text = error.message;
    }
    // Layers of one number take it by place.
    const known = /no option 'noSuchOption'.* known are (.*)/i.exec(text)?.[1]?.split(', ');
    if (known === undefined) continue;
    checked.push(name);
    const excepted = `${others['*']} ${others[name] ?? ''}`.split(' ');
    for (const option of optional)
      if (!known.includes(camelCase(option)) && !excepted.includes(option)) lacking.push(`${name}.${option}`);
  }
  expect(lacking).toEqual([]);
  expect(checked.length, checked.join(' ')).toBeGreaterThan(50);
});

it('options of the table', async () => {
  await core.setEngine('cpu');
  const parameters = new nn.Linear(2, 2).parameters();
  const optimizer = new nn.LBFGS(parameters, { maxIter: 4, historySize: 3, lineSearchFn: 'strongWolfe' });
  expect(optimizer.options).toMatchObject({ maxIter: 4, historySize: 3, lineSearchFn: 'strongWolfe' });
  expect(() => new nn.ReduceOnPlateau(new nn.Adam(parameters), { minLr: 1e-4 })).not.toThrow();
  expect(() => new nn.ReduceOnPlateau(new nn.Adam(parameters), { floor: 1e-4 })).toThrow(/no option 'floor'/);
  new nn.SGD(parameters, { momentum: nn.cyclicMomentum() });
  new nn.Adam(parameters, { betas: [nn.oneCycleMomentum({ steps: 9 }), 0.999] });
});
