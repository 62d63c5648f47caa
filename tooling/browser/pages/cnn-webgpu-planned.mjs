/**
 * A page that trains a convolutional network on WebGPU with plans that it brings along, and loads the compiler where one is missing. Visitors without WebGPU load the
 * CPU engine.
 */
import '@polygrad/backend-cpu/late';
import '@polygrad/backend-webgpu/planned';

export { usePlanFile } from '@polygrad/core/plans';
export { train } from './cnn-step.mjs';
