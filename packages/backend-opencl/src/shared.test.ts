/** The tests that every engine with an addon passes, on the OpenCL engine. */
import {
  emittedSuite,
  engineSuite,
  errorsSuite,
  hostileSuite,
  productsSuite,
  readingSuite,
  type TestedEngine,
  transfersSuite,
} from '@polygrad/addon/fixtures';
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
errorsSuite(kit);
productsSuite(kit);
emittedSuite(kit);
readingSuite(kit);
hostileSuite(kit);
