/** The tests that every engine with an addon passes, on the CUDA engine. */
import { attentionSuite } from '@polygrad/addon/fixtures/attention';
import { emittedSuite } from '@polygrad/addon/fixtures/emitted';
import { engineSuite } from '@polygrad/addon/fixtures/engine';
import { errorsSuite } from '@polygrad/addon/fixtures/errors';
import { hostileSuite } from '@polygrad/addon/fixtures/hostile';
import { productsSuite } from '@polygrad/addon/fixtures/products';
import { readingSuite } from '@polygrad/addon/fixtures/reading';
import { besideSuite, transfersSuite } from '@polygrad/addon/fixtures/transfers';
import { workersSuite } from '@polygrad/addon/fixtures/workers';
import { createCudaEngine } from './engine.ts';
import { kit } from './fixtures/kit.ts';

engineSuite(kit);
transfersSuite(kit, 'data to the card and back', createCudaEngine);
besideSuite(kit, 1_000_000, createCudaEngine);
errorsSuite(kit);
productsSuite(kit);
attentionSuite(kit);
emittedSuite(kit);
readingSuite(kit);
hostileSuite(kit);
workersSuite(kit);
