/** A page that trains a convolutional network on the CPU engine with plans that it brings along, and loads the compiler where one is missing. */
import '@polygrad/backend-cpu/planned';

export { usePlanFile } from '@polygrad/core/plans';
export { train } from './cnn-step.mjs';
