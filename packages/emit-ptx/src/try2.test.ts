import { runConformance } from '@polygrad/conformance';
import { expect, it } from 'vitest';
import { createSimulatedEngine } from './fixtures/simulated-engine.ts';
import { writeFileSync } from 'node:fs';

it('conformance', async () => {
  const texts = new Set<string>();
  let n = 0;
  const engine = createSimulatedEngine({ computeCapability: 75, isa: "6.3" }, (k) => { n++; texts.add(k.text); });
  const start = performance.now();
  const report = await runConformance({ engine, sample: 23, onResult: () => undefined });
  console.log(report.passed, report.failed, report.skipped, report.leftOut, n, texts.size, performance.now() - start);
  for (const r of report.results) if (r.outcome === 'failed') console.log(JSON.stringify(r).slice(0, 600));
  writeFileSync('/tmp/ptxt/texts75.json', JSON.stringify([...texts]));
  expect(report.failed).toBe(0);
});
