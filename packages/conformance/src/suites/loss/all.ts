/** All losses: without options at several sizes, and small with every option and reduction. */
import type { OpSpec } from '../../spec.ts';
import { classLosses } from './classes.ts';
import { defaultLossSpecs } from './defaults.ts';
import { elementwiseLosses } from './elementwise.ts';
import { embeddingLosses } from './embeddings.ts';
import { lossOptionSpecs } from './options.ts';

export function lossSpecs(): OpSpec[] {
  return [...defaultLossSpecs(), ...lossOptionSpecs([...elementwiseLosses, ...embeddingLosses, ...classLosses])];
}
