/** The tests that every engine with an addon passes, on the CUDA engine. */
import {
  emittedSuite,
  engineSuite,
  errorsSuite,
  hostileSuite,
  productsSuite,
  readingSuite,
  transfersSuite,
  workersSuite,
} from '@polygrad/addon/fixtures';
import { createCudaEngine } from './engine.ts';
import { kit } from './fixtures/kit.ts';

engineSuite(kit);
transfersSuite(kit, 'data to the card and back', createCudaEngine);
errorsSuite(kit);
productsSuite(kit);
emittedSuite(kit);
readingSuite(kit);
hostileSuite(kit);
workersSuite(kit);
