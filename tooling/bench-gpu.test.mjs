/** The command that measures on a card, on the processor with small work: it runs, and its report has what was measured. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { figures, groups } from '../bench/gpu/cases.mjs';
import { root } from './workspace.mjs';

it('writes a report, whatever is there', () => {
  const out = mkdtempSync(join(tmpdir(), 'polygrad-bench-gpu-'));
  try {
    const words = '--tiny --alone --engines cpu,nothing --only elementwise --sample 30001 --minutes 3 --out'.split(' ');
    const said = execFileSync(process.execPath, [join(root, 'bench/gpu/run.mjs'), ...words, out], {
      encoding: 'utf8',
    });
    expect(said).toMatch(/conformance cpu: \d+ passed, 0 failed/);
    const report = JSON.parse(readFileSync(join(out, 'report.json'), 'utf8'));
    const { elementwise } = groups(true);
    expect(report.rows.map(({ name }) => name)).toEqual(elementwise.map(({ name }) => name));
    for (const { name, by } of report.rows) expect(by.cpu.value, name).toBeGreaterThan(0);
    // Who is not there costs nothing but a remark.
    expect(report.notes.join()).toMatch(/nothing, a \+ b and what follows: .*no engine nothing/);
    expect(readFileSync(join(out, 'report.md'), 'utf8')).toMatch(/\| a \+ b \| GB\/s \| \d/);
  } finally {
    rmSync(out, { recursive: true });
  }
});

it('has figures for every case', () => {
  const cases = Object.values(groups(false)).flat();
  expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
  for (const one of cases) expect(figures[one.figure](one, 0.5), one.name).toBeGreaterThan(0);
});
