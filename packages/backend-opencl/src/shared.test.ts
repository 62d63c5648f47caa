/** The tests that every engine with an addon passes, on the OpenCL engine. */
import { availableParallelism } from 'node:os';
import { attentionSuite } from '@polygrad/addon/fixtures/attention';
import { emittedSuite } from '@polygrad/addon/fixtures/emitted';
import { engineSuite } from '@polygrad/addon/fixtures/engine';
import { errorsSuite } from '@polygrad/addon/fixtures/errors';
import { hostileSuite } from '@polygrad/addon/fixtures/hostile';
import type { TestedEngine } from '@polygrad/addon/fixtures/kit';
import { productsSuite } from '@polygrad/addon/fixtures/products';
import { readingSuite } from '@polygrad/addon/fixtures/reading';
import { besideSuite, transfersSuite } from '@polygrad/addon/fixtures/transfers';
import { chooseDevice } from './devices.ts';
import { OpenClEngine } from './engine.ts';
import { kit } from './fixtures/kit.ts';
import { setUp, wishedDevice } from './setup.ts';

/** An engine on the default device that takes its memory for the host's, or not: either works on any device. */
function sharing(shared: boolean): TestedEngine {
  const { addon, device } = chooseDevice(wishedDevice({}));
  const setup = setUp({ cache: false });
  setup.driver.dispose();
  return new OpenClEngine({ ...setup, driver: new addon.Driver(device.index, shared), library: null });
}

engineSuite(kit);
for (const shared of [true, false])
  transfersSuite(kit, `memory shared with the host: ${shared}`, () => sharing(shared));
// A driver for processors has a thread for each: with one, nothing runs beside anything.
if (availableParallelism() > 1)
  for (const shared of [true, false]) besideSuite(kit, 100_000_000, () => sharing(shared));
errorsSuite(kit);
productsSuite(kit);
attentionSuite(kit);
emittedSuite(kit);
readingSuite(kit);
hostileSuite(kit);
