/** Products of every form by CLBlast itself, on both kinds of kernels. */
import { flush, setEngine } from '@polygrad/core';
import { describe, expect, it } from 'vitest';
import { forms, watched } from './fixtures/clblast.ts';
import { clblastMissing, problemsOfForms } from './fixtures/clblast-forms.ts';

describe.skipIf(clblastMissing() !== null)('CLBlast', () => {
  it.each([false, true])('computes every form where it was measured faster, groups of threads: %s', async (simt) => {
    const { engine, products } = watched('real', { simt });
    await setEngine(engine);
    expect(await problemsOfForms(engine, products, Object.keys(forms))).toEqual([]);
    expect(engine.clblastMissing).toBeNull();
    flush();
    await setEngine('cpu').catch(() => {});
    engine.dispose();
  });
});
