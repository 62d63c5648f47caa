/** A page that trains a convolutional network on the CPU engine with plans that its visitors keep. */
import '@polygrad/backend-cpu';

export { usePlanCache } from '@polygrad/core/plans';
export { train } from './cnn-step.mjs';
