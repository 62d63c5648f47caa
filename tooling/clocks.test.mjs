/** What a test finds may not depend on how fast or how busy the machine is: no test has a limit of its own, or judges what a clock says. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from './workspace.mjs';

const rules = [
  [
    /^\s*\},? \d[\d_]{3,}\);?$|^\s+\d[\d_]{3,},\n\s*\);$/m,
    'a limit of its own: the one in vitest.config.ts is for what hangs',
  ],
  [
    /\b(?:test|hook)Timeout\b|\{ timeout: \d[\d_]* \}, (?:async )?\(/,
    'a limit of its own: the one in vitest.config.ts is for what hangs',
  ],
  [
    /expect\([^\n]*(?:milliseconds|elapsed|performance\.now|Date\.now)[^\n]*\)\s*\.to(?:BeLess|BeGreater)Than/i,
    'a judgement of time',
  ],
];

/** What breaks the rules in a source, by line. */
const found = (source) =>
  rules.flatMap(([pattern, what]) => {
    const match = pattern.exec(source);
    return match === null ? [] : [`${source.slice(0, match.index).split('\n').length}: ${what}`];
  });

it('no test reads a clock', () => {
  const words = ['ls-files', '*.test.ts', '*.test.mjs', 'tooling/playground/*.mjs'];
  const { stdout } = spawnSync('git', words, { cwd: root, encoding: 'utf8' });
  const files = stdout.trim().split('\n');
  expect(files.length).toBeGreaterThan(100);
  // This file has what it looks for.
  const others = files.filter((file) => file !== 'tooling/clocks.test.mjs');
  expect(
    others.flatMap((file) => found(readFileSync(join(root, file), 'utf8')).map((text) => `${file}:${text}`)),
  ).toEqual([]);
});

it('what it looks for is found', () => {
  for (const source of [
    "it('x', () => {\n}, 60_000);",
    "  it.skipIf(no)(\n    'x',\n    () => {},\n    1_200_000,\n  );",
    'vi.setConfig({ testTimeout: 5000 });',
    "it('x', { timeout: 9000 }, async () => {})",
    'expect(lost.milliseconds).toBeLessThan(1000);',
    'expect(performance.now() - start).toBeGreaterThan(3);',
  ])
    expect(found(source).length, source).toBe(1);
  expect(found('find(compare, { timeout: 30 }, [cpu]);\nexpect(bytes).toBeLessThan(4000);\n}, 20);')).toEqual([]);
});
