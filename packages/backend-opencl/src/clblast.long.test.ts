/** Products of every form by CLBlast itself, on both kinds of kernels. */
import { forms, problemsOfForms } from '@polygrad/addon/fixtures/forms';
import { watched } from '@polygrad/addon/fixtures/watched';
import { flush, setEngine } from '@polygrad/core';
import { describe, expect, it } from 'vitest';
import { clblastMissing } from './fixtures/clblast.ts';
import { kit } from './fixtures/kit.ts';

describe.skipIf(clblastMissing() !== null)('CLBlast', () => {
  it.each([false, true])(
    'computes every form where it was measured faster, groups of threads: %s',
    async (otherwise) => {
      const { engine, products } = watched(kit, 'real', { otherwise });
      await setEngine(engine);
      expect(await problemsOfForms(engine, products, Object.keys(forms))).toEqual([]);
      expect(kit.products.missing(engine)).toBeNull();
      flush();
      await setEngine('cpu').catch(() => {});
      engine.dispose();
    },
  );
});
