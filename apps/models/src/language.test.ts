/** lande's own test sentences, and its own network's probabilities, through Polygrad. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import '@polygrad/backend-cpu';
import { type DType, memory, setEngine, tensor } from '@polygrad/core';
import { beforeAll, describe, expect, it } from 'vitest';
import { readLanguageModel } from './language.ts';
import { packageFolder } from './package-folder.ts';

/** Sentences and languages of the package's own tests; those commented out there are known not to be told apart. */
function sentences(): { text: string; language: string }[] {
  const source = readFileSync(join(packageFolder('lande'), 'test/index.js'), 'utf8');
  return [...source.matchAll(/^ *t\.is \( inferLanguage \( '(.*)' \), '(\w+)' \);$/gm)].map(([, text, language]) => ({
    text: text as string,
    language: language as string,
  }));
}

async function probabilities(
  dtype: DType,
  texts: readonly string[],
): Promise<{ rows: number[][]; languages: readonly string[] }> {
  const before = memory().numBuffers;
  const model = await readLanguageModel(dtype);
  const { languages } = model;
  const x = tensor(
    texts.map((text) => model.features(text).map(Math.fround)),
    { dtype },
  );
  const y = model.predict(x);
  expect(y.shape).toEqual([texts.length, languages.length]);
  const rows = (await y.array()) as number[][];
  for (const t of [x, y]) t.dispose();
  model.dispose();
  expect(memory().numBuffers).toBe(before);
  return { rows, languages };
}

describe('lande', () => {
  beforeAll(() => setEngine('cpu'));
  const cases = sentences();

  it('knows the languages of all its sentences', async () => {
    expect(cases.length).toBe(45);
    const { rows, languages } = await probabilities(
      'float32',
      cases.map(({ text }) => text),
    );
    const found = rows.map((row) => languages[row.indexOf(Math.max(...row))]);
    expect(found).toEqual(cases.map(({ language }) => language));
  });

  // Before the softmax stand numbers up to 700, so a unit in the last place of float32 is 6e-5 there: float64 is compared.
  it('finds them as probable as its own network does', async () => {
    const { rows, languages } = await probabilities(
      'float64',
      cases.map(({ text }) => text),
    );
    const { default: lande } = (await import(join(packageFolder('lande'), 'standalone/t50.js'))) as {
      default: (text: string) => [string, number][];
    };
    rows.forEach((row, i) => {
      for (const [language, probability] of lande(cases[i]?.text as string))
        expect(Math.abs(row[languages.indexOf(language)]! - probability)).toBeLessThan(1e-5);
    });
  });
});
