/** Names that programs rely on: each is exported by the package that documents it, operations are methods too, and what stands for them has its defaults. */
import '@polygrad/backend-cpu';
import * as autoDetect from '@polygrad/auto-detect';
import * as native from '@polygrad/backend-native';
import * as cuda from '@polygrad/backend-cuda';
import * as cpu from '@polygrad/backend-cpu';
import * as core from '@polygrad/core';
import * as functions from '@polygrad/core/functions';
import * as custom from '@polygrad/core/custom';
import * as linearAlgebra from '@polygrad/core/linear-algebra';
import * as data from '@polygrad/data';
import * as files from '@polygrad/data/node';
import * as nn from '@polygrad/nn';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const names = JSON.parse(readFileSync(new URL('./fixtures/public-names.json', import.meta.url), 'utf8'));
const list = (text) => text.split(/\s+/).filter((name) => name !== '');
const packages = {
  core,
  'core/custom': custom,
  'core/linear-algebra': linearAlgebra,
  nn,
  data,
  'data/node': files,
  'auto-detect': autoDetect,
  'backend-cpu': cpu,
  'backend-native': native,
  'backend-cuda': cuda,
};

const missing = (from, text) => list(text).filter((name) => !(name in from));

describe('names of the documentation', () => {
  for (const [name, text] of Object.entries(names.exports))
    it(`are exported by ${name}`, () => expect(missing(packages[name], text)).toEqual([]));

  it('of operations are functions without methods too, and methods', async () => {
    await core.setEngine('cpu');
    const t = core.ones([2, 2]);
    for (const [family, text] of Object.entries(names.operations)) {
      expect([family, missing(core, text)]).toEqual([family, []]);
      expect([family, missing(functions, text)]).toEqual([family, []]);
      const alone = new Set(list(names.noMethods));
      const methods = list(text).filter((name) => !alone.has(name) && typeof t[name] !== 'function');
      expect([family, methods]).toEqual([family, []]);
    }
  });

  it('of tensors are there', async () => {
    const t = core.tensor([1, 2]);
    expect(list(names.tensor).filter((name) => !(name in t))).toEqual([]);
    expect(Symbol.dispose in t).toBe(true);
    expect(Object.keys(core.memory())).toEqual(expect.arrayContaining(list(names.memory)));
  });

  it('of dtypes are those that tensors have', () => {
    for (const dtype of list(names.dtypes)) expect(core.zeros([1], { dtype }).dtype).toBe(dtype);
  });
});
