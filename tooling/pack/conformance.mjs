// A few cases of the packed conformance suite, golden values of its file among them, on the reference engine.
import { runConformance } from '@polygrad/conformance';
import { createReferenceEngine } from '@polygrad/testing';

for (const filter of ['add / [2,3]', 'goldens / add /']) {
  const { passed, failed } = await runConformance({ engine: createReferenceEngine(), filter });
  if (passed < 5 || failed > 0) throw new Error(`${filter}: ${passed} passed, ${failed} failed`);
}
