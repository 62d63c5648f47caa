/** Runs the `@example` of every documented function and compares results with what the comments behind them say. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import * as core from './index.ts';
import { createReferenceEngine } from './testing/index.ts';

interface Example {
  readonly name: string;
  readonly lines: readonly string[];
}

function examplesOf(file: string): Example[] {
  const text = readFileSync(file, 'utf8');
  const found: Example[] = [];
  for (const match of text.matchAll(
    /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*(?:export )?(?:async )?(?:function|class|interface) (\w+)/g,
  )) {
    const [, comment = '', name = ''] = match;
    const block = /@example([\s\S]*)$/.exec(comment)?.[1];
    if (block === undefined || block.includes('```')) continue;
    const lines = block
      .split('\n')
      .map((line) => line.replace(/^\s*\* ?/, ''))
      .filter((line) => line.trim() !== '');
    found.push({ name, lines });
  }
  return found;
}

/** Result of an example as plain numbers, for tensors, lists of tensors and shapes. */
async function plain(value: unknown): Promise<unknown> {
  if (core.isTensor(value)) return value.array();
  if (Array.isArray(value)) return Promise.all(value.map(plain));
  return value;
}

function expectNear(actual: unknown, expected: unknown, tolerance: number): void {
  if (Array.isArray(expected)) {
    expect(Array.isArray(actual) && actual.length).toBe(expected.length);
    expected.forEach((item, i) => {
      expectNear((actual as unknown[])[i], item, tolerance);
    });
  } else if (typeof expected === 'number')
    expect(Math.abs(Number(actual) - expected)).toBeLessThanOrEqual(tolerance * Math.max(1, Math.abs(expected)));
  else expect(actual).toEqual(expected);
}

/** The values a comment states, or undefined if it is prose. */
function stated(comment: string): { values: unknown[]; tolerance: number } | undefined {
  const about = comment.startsWith('about ');
  try {
    return {
      values: JSON.parse(`[${about ? comment.slice(6) : comment}]`) as unknown[],
      tolerance: about ? 1e-3 : 1e-6,
    };
  } catch {
    return undefined;
  }
}

let checked = 0;

async function check(value: unknown, comment: string): Promise<void> {
  const wanted = stated(comment);
  if (wanted === undefined) return;
  checked++;
  const { values, tolerance } = wanted;
  expectNear(await plain(value), values.length === 1 ? values[0] : values, tolerance);
}

/** Plain JavaScript with a check behind every line that states a result. */
function script(lines: readonly string[]): string {
  return lines
    .map((line) => {
      const code = line.replaceAll(/: Tensor(\[\])?( \| undefined)?(?=[,)=;])/g, '');
      const [, declared, expression, comment] = /^(?:const (\w+) = )?([^=].*?); \/\/ (.*)$/.exec(code) ?? [];
      if (expression === undefined || /^\s|^(const|let|return|await) /.test(expression)) return code;
      const quoted = JSON.stringify(comment);
      return declared === undefined
        ? `await check(${expression}, ${quoted});`
        : `const ${declared} = ${expression}; await check(${declared}, ${quoted});`;
    })
    .join('\n');
}

const folder = new URL('.', import.meta.url).pathname;
const files = ['ops', 'autodiff', 'tensor', 'graph'].flatMap((part) =>
  readdirSync(join(folder, part))
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => `${part}/${name}`),
);

const AsyncFunction = (async () => undefined).constructor as new (
  ...parts: string[]
) => (...args: unknown[]) => Promise<void>;

beforeAll(async () => {
  await core.setEngine(createReferenceEngine());
  vi.spyOn(console, 'log').mockImplementation(() => undefined);
});

afterEach(() => {
  core.setEager(false);
});

for (const file of files) {
  const examples = examplesOf(join(folder, file));
  if (examples.length === 0) continue;
  describe(file, () => {
    for (const { name, lines } of examples) {
      it(name, async () => {
        const run = new AsyncFunction(...Object.keys(core), 'check', script(lines));
        await run(...Object.values(core), check);
      });
    }
  });
}

it('states results in most examples', () => {
  expect(checked).toBeGreaterThan(180);
});
