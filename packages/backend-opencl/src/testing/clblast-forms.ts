/** For tests: products of given forms before and after a measurement that favours the library, and whether CLBlast is there. */
import { tune } from '@polygrad/core';
import type { OpenClEngine } from '../engine.ts';
import { setUp } from '../setup.ts';
import { type Form, forms, listOf } from './clblast.ts';
import { missing } from './device.ts';

/** What is wrong: each form must be right by kernels, be tuned, and be right by the library, in one product. */
export async function problemsOfForms(
  engine: OpenClEngine,
  products: () => number,
  names: readonly string[],
): Promise<string[]> {
  const problems: string[] = [];
  for (const name of names) {
    const form = await forms[name]!();
    const run = async (): Promise<void> => {
      products();
      const wrong = await wrongValue(form);
      if (wrong !== null) problems.push(`${name}: ${wrong}`);
    };
    await run();
    // Another form of the same class may have been measured.
    if (products() === 0) {
      const chosen = await tune(engine, { budget: 0 });
      if (!chosen.some(({ tile }) => tile === 'library')) problems.push(`${name}: ${JSON.stringify(chosen)}`);
    }
    await run();
    const given = products();
    if (given !== 1) problems.push(`${name}: the library was given ${given} products`);
  }
  return problems;
}

async function wrongValue({ result, expected, depth }: Form): Promise<string | null> {
  const t = result();
  const got = await listOf(t);
  t.dispose();
  if (got.length !== expected.length) return `${got.length} values, not ${expected.length}`;
  // Factors are below 2: the bound on the error of a sum of `depth` products of magnitude 4.
  const bound = depth === 0 ? 1e-12 : 4 * depth * depth * 2 ** -24;
  const wrong = got.findIndex((v, i) => !(Math.abs(v - expected[i]!) <= bound));
  return wrong < 0 ? null : `${got[wrong]} at ${wrong}, not ${expected[wrong]}`;
}

let whyNot: string | null | undefined;

/** Why CLBlast cannot be used, or null; said aloud, and an error where POLYGRAD_REQUIRE names clblast. */
export function clblastMissing(): string | null {
  if (whyNot !== undefined) return whyNot;
  whyNot = missing;
  if (whyNot === null) {
    const { driver, library } = setUp({ cache: false });
    whyNot = library?.missing ?? null;
    driver.dispose();
  }
  if (whyNot === null) return null;
  if ((process.env.POLYGRAD_REQUIRE ?? '').split(',').includes('clblast'))
    throw new Error(`POLYGRAD_REQUIRE names clblast, but ${whyNot}`);
  process.stderr.write(`SKIPPED tests of CLBlast: ${whyNot}\n`);
  return whyNot;
}
