/** A page that trains a convolutional network, with WebGPU and the CPU engine on board. */
import '@polygrad/backend-cpu';
import '@polygrad/backend-webgpu';

export { train } from './cnn-step.mjs';
