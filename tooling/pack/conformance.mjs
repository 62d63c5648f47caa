// A few cases of the packed conformance suite, on the reference engine.
import { runConformance } from '@polygrad/conformance';
import { createReferenceEngine } from '@polygrad/core/testing';

const report = await runConformance({ engine: createReferenceEngine(), filter: 'add' });
if (!report.results.some(({ name }) => name.startsWith('goldens / add / '))) throw new Error('no golden cases');
if (report.passed === 0 || report.failed > 0) throw new Error(`${report.passed} passed, ${report.failed} failed`);
