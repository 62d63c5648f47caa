// The packed auto-detection finds the CPU engine that it brings along.
import { autoDetectAndConfigureGpu, formatReport } from '@polygrad/auto-detect';
import { tensor } from '@polygrad/core';

const { engine, report } = await autoDetectAndConfigureGpu();
const values = await tensor([1, 2]).mul(2).data();
if (values.join() !== '2,4') throw new Error(`1, 2 times 2 gives ${values}`);
if (report.find(({ chosen }) => chosen)?.name !== engine.name) throw new Error(formatReport(report));
engine.dispose();
