/** Runs the `@example` of every documented function and compares results with what the comments behind them say. */
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { examplesOf, runExample, sourcesIn, withoutTypes } from './fixtures/doc-examples.ts';
import * as core from './index.ts';
import { createReferenceEngine } from './testing/index.ts';

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
      const code = withoutTypes(line);
      const [, declared, expression, comment] = /^(?:const (\w+) = )?([^=].*?); \/\/ (.*)$/.exec(code) ?? [];
      if (expression === undefined || /^\s|^(const|let|return|await) /.test(expression)) return code;
      const quoted = JSON.stringify(comment);
      return declared === undefined
        ? `await check(${expression}, ${quoted});`
        : `const ${declared} = ${expression}; await check(${declared}, ${quoted});`;
    })
    .join('\n');
}

beforeAll(async () => {
  await core.setEngine(createReferenceEngine());
  vi.spyOn(console, 'log').mockImplementation(() => undefined);
});

afterEach(() => {
  core.setEager(false);
});

for (const file of sourcesIn(['ops', 'autodiff', 'tensor', 'graph'])) {
  const examples = examplesOf(file);
  if (examples.length === 0) continue;
  describe(file, () => {
    for (const { name, lines } of examples) {
      it(name, async () => {
        await runExample(script(lines), { ...core, check });
      });
    }
  });
}

it('states results in most examples', () => {
  expect(checked).toBeGreaterThan(180);
});
